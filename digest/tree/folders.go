package tree

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// folders opens files below a root one after another. Those of one folder cost one walk to it: os.Root opens every element of
// a path.
type folders struct {
	root *os.Root
	path string   // of the folder that is open
	open *os.Root // nil: none
}

// file opens the file at a path. Errors name the whole path.
func (f *folders) file(name string) (*os.File, error) {
	file, err := f.find(name)
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		failed.Path = name
	}
	return file, err
}

func (f *folders) find(name string) (*os.File, error) {
	dir, base := path.Split(name)
	if dir == "" {
		return f.root.OpenFile(name, openFlags, 0)
	}
	if f.open == nil || f.path != dir {
		f.close()
		below, err := f.root.OpenRoot(dir[:len(dir)-1])
		if err != nil {
			return nil, err
		}
		f.path, f.open = dir, below
	}
	return f.open.OpenFile(base, openFlags, 0)
}

// close closes the folder that is open.
func (f *folders) close() {
	if f.open != nil {
		f.open.Close()
		f.open = nil
	}
}
