package archive

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// UnpackOptions changes how files are written.
type UnpackOptions struct {
	ReadOnly bool // files get mode 0444 or, with an x bit, 0555; else 0644 or 0755
	Sync     bool // files and folders are on disk when Unpack returns
}

// Unpack writes the counted files of a tree below root, an empty folder: regular files only, each created anew and
// verified as it is written; folders have mode 0755. Whatever is in the way, or differs from what was hashed, is an
// error, and then nothing that Unpack made is left behind. A tree that breaks a rule that can't be softened is a
// *rule.Denied.
func Unpack(t tree.Tree, root *os.Root, opt UnpackOptions) (err error) {
	if report := CheckTree(t, lenient()); !report.OK() {
		return denied(t, report.Violations)
	}
	u := unpacking{root: root, opt: opt, made: map[string]bool{".": true}}
	defer func() {
		if err != nil {
			err = errors.Join(err, u.undo())
		}
	}()
	if err := tree.Each(t, u.file); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	if opt.Sync {
		return u.sync()
	}
	return nil
}

// unpacking is one Unpack.
type unpacking struct {
	root    *os.Root
	opt     UnpackOptions
	made    map[string]bool // folders
	folders []string        // in the order they were made
	files   []string
}

func (u *unpacking) file(e tree.Entry, r io.Reader) error {
	if err := u.folder(path.Dir(e.Path)); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if u.opt.ReadOnly {
		mode = 0o444
	}
	if e.Executable {
		mode |= 0o111
	}
	f, err := u.root.OpenFile(e.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	u.files = append(u.files, e.Path)
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Chmod(mode) // no umask applies
	}
	if err == nil && u.opt.Sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// folder makes dir and what is above it.
func (u *unpacking) folder(dir string) error {
	if u.made[dir] {
		return nil
	}
	if err := u.folder(path.Dir(dir)); err != nil {
		return err
	}
	if err := u.root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	u.made[dir] = true
	u.folders = append(u.folders, dir)
	return nil
}

// sync puts the folders on disk, the inner ones first.
func (u *unpacking) sync() error {
	inner := slices.Clone(u.folders)
	slices.Reverse(inner)
	for _, dir := range append(inner, ".") {
		f, err := u.root.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// undo removes what was made.
func (u *unpacking) undo() error {
	var errs []error
	for _, list := range [][]string{u.files, u.folders} {
		for _, name := range slices.Backward(list) {
			if err := u.root.Remove(name); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
