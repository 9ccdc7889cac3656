//go:build unix

package nodecache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// noFollow opens no link as the last element, and blocks on no FIFO.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// errNotEmpty is how renaming a folder onto one that exists fails.
const errNotEmpty = syscall.ENOTEMPTY

// alive reports whether a process of this node has the id. Doubt counts as life.
func alive(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err != nil || n <= 0 || !errors.Is(syscall.Kill(n, 0), syscall.ESRCH)
}

// syncFolder makes a folder's entries durable.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeTree removes a tree whose folders may be sealed. One that is not there is no error.
func removeTree(path string) error {
	err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, os.RemoveAll(path))
}

// processSpace tells process namespaces apart, in which one number means different processes; "" where there is one.
func processSpace() string {
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return link[len("pid:[") : len(link)-1]
}
