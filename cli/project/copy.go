package project

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

// skipped are folders that no copy of a template or an experiment takes along.
var skipped = []string{"__pycache__", ".git"}

// copier copies folders into one other.
type copier struct {
	to    *os.Root
	files int   // still allowed
	bytes int64 // likewise
}

func newCopier(to *os.Root) *copier {
	return &copier{to: to, files: limit.Files, bytes: limit.Unpacked}
}

// copyTree copies the files of the folder dir below from, over what is there, but for the folders named in without at its
// top. A link to a file that stays below from is copied as that file; any other link is an error.
func (c *copier) copyTree(from *os.Root, dir string, without ...string) error {
	return fs.WalkDir(from.FS(), dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(filepath.FromSlash(dir), filepath.FromSlash(name))
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && (slices.Contains(skipped, entry.Name()) || slices.Contains(without, rel)):
			return fs.SkipDir
		case entry.IsDir():
			return c.to.MkdirAll(rel, 0o755)
		}
		return c.copyFile(from, filepath.FromSlash(name), rel)
	})
}

func (c *copier) copyFile(from *os.Root, name, to string) error {
	info, err := from.Stat(name)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(from.Name(), name), err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", filepath.Join(from.Name(), name))
	}
	c.files--
	if c.bytes -= info.Size(); c.files < 0 || c.bytes < 0 {
		return fmt.Errorf("%s holds more than %d files or %d MiB", from.Name(), limit.Files, limit.Unpacked/limit.MiB)
	}
	in, err := from.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := c.to.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, info.Size()))
	return errors.Join(err, out.Chmod(info.Mode().Perm()|0o600), out.Sync(), out.Close())
}

// copyFrom is copyTree of a folder by its path.
func (c *copier) copyFrom(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return c.copyTree(root, ".")
}
