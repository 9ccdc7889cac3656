//go:build unix

package launchverify

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// copyRoot is the root of ModePrivateCopy: a folder of the agent's, with links to what the job may see of its own.
type copyRoot struct{ path string }

func (c copyRoot) place(p *plan, names []string, root *os.Root) error {
	for _, name := range names {
		if err := root.Symlink(filepath.Join(p.JobDir, name), name); err != nil {
			return err
		}
	}
	return nil
}

// seal takes everybody's right to write, which the owner can give back.
func (c copyRoot) seal() error { return chmodFolders(c.path, 0o555) }

func (c copyRoot) attach() error { return nil }

// hides is nothing: the job sees what its user sees.
func (c copyRoot) hides() []string { return nil }

func (c copyRoot) remove() error { return removeTree(c.path) }

// removeTree removes a tree whose folders may be sealed. One that is not there is no error.
func removeTree(path string) error {
	err := chmodFolders(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, os.RemoveAll(path))
}

func chmodFolders(path string, mode fs.FileMode) error {
	return filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, mode)
	})
}
