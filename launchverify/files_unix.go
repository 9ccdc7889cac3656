//go:build unix

package launchverify

import (
	"errors"
	"os"
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
