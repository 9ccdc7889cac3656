package fs

import (
	"io/fs"
	"os"
	"time"
)

// Fault is asked before every call that writes to the disk or makes something durable, and before folders and uploads are
// opened for that. op is open, create, write, sync, truncate, chmod, rename, mkdir, chtimes or remove, name is the path in the
// store's folder. An error that it gives is that of the call, which then does nothing, but for a write, which writes
// half. It is how tests make a disk fail; nil is the disk as it is.
type Fault func(op, name string) error

// disk is a folder of the file system, seen through Fault. What is only read is opened by root itself.
type disk struct {
	root  *os.Root
	fault Fault
}

// ask gives the fault of a call.
func (d disk) ask(op, name string) error {
	if d.fault == nil {
		return nil
	}
	if err := d.fault(op, name); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

func (d disk) create(name string, mode fs.FileMode) (*file, error) {
	return d.openFile("create", name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}

// openFile opens a file or a folder that is to be changed or synced.
func (d disk) openFile(op, name string, flag int, mode fs.FileMode) (*file, error) {
	if err := d.ask(op, name); err != nil {
		return nil, err
	}
	f, err := d.root.OpenFile(name, flag, mode)
	if err != nil {
		return nil, err
	}
	return &file{f: f, name: name, disk: d}, nil
}

func (d disk) mkdir(name string, mode fs.FileMode) error {
	if err := d.ask("mkdir", name); err != nil {
		return err
	}
	return d.root.Mkdir(name, mode)
}

func (d disk) rename(from, to string) error {
	if err := d.ask("rename", to); err != nil {
		return err
	}
	return d.root.Rename(from, to)
}

func (d disk) remove(name string) error {
	if err := d.ask("remove", name); err != nil {
		return err
	}
	return d.root.Remove(name)
}

func (d disk) chtimes(name string, to time.Time) error {
	if err := d.ask("chtimes", name); err != nil {
		return err
	}
	return d.root.Chtimes(name, to, to)
}

// file is an open file of a disk.
type file struct {
	f    *os.File
	name string
	disk disk
}

// Write implements io.Writer.
func (f *file) Write(p []byte) (int, error) {
	if err := f.disk.ask("write", f.name); err != nil {
		n, _ := f.f.Write(p[:len(p)/2]) // as a disk that fills up
		return n, err
	}
	return f.f.Write(p)
}

func (f *file) sync() error {
	if err := f.disk.ask("sync", f.name); err != nil {
		return err
	}
	return f.f.Sync()
}

func (f *file) chmod(mode fs.FileMode) error {
	if err := f.disk.ask("chmod", f.name); err != nil {
		return err
	}
	return f.f.Chmod(mode)
}

func (f *file) truncate(size int64) error {
	if err := f.disk.ask("truncate", f.name); err != nil {
		return err
	}
	return f.f.Truncate(size)
}

// Close gives the file back to the system, whatever state the disk is in.
func (f *file) Close() error { return f.f.Close() }
