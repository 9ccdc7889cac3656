// Package durable writes files that survive a crash at any moment: afterwards a file has its old content or its new
// one, never a part. The sequence is: a temporary file in the same folder, write, fsync, rename (or link), fsync of the
// folder.
package durable

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file in place of what is there. It is on disk when Replace returns nil.
func Replace(path string, content []byte, mode fs.FileMode) error {
	return write(path, content, mode, os.Rename)
}

// Create writes a file that is not there yet; of several that create one path one wins, and the others get an error
// that is fs.ErrExist. It is on disk when Create returns nil.
func Create(path string, content []byte, mode fs.FileMode) error {
	return write(path, content, mode, os.Link)
}

// write prepares the content beside path and puts it there by place.
func write(path string, content []byte, mode fs.FileMode, place func(from, to string) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already after a rename
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := place(f.Name(), path); err != nil {
		return err
	}
	return SyncFolder(dir)
}

// ReplaceIn is Replace for a name in a folder that is open, whatever the folder's own name leads to by now.
func ReplaceIn(dir *os.Root, name string, content []byte, mode fs.FileMode) error {
	temp := "." + name + "." + rand.Text()
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer dir.Remove(temp) // gone already after a rename
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := dir.Rename(temp, name); err != nil {
		return err
	}
	folder, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// SyncFolder makes the names in a folder as durable as the files behind them.
func SyncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
