package nodecache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Whatever lies in the folder may have been put there by somebody else: links are followed within the folder at most, no
// open waits, no read goes on for longer than its bound.

const (
	// maxSmall bounds what is read of a record, a hold or a claim, in bytes.
	maxSmall = 64 << 10
	// maxNames bounds how many names of one folder are looked at; the rest is left to a later run.
	maxNames = 200_000
	// maxHolds bounds how many processes' holds are looked at.
	maxHolds = 20_000
	// maxSwept bounds it for what every use looks at.
	maxSwept = 1000
)

// openFile opens a regular file.
func (c *Cache) openFile(name string) (*os.File, fs.FileInfo, error) {
	if c.root == nil {
		return nil, nil, fs.ErrNotExist
	}
	f, err := c.root.OpenFile(name, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s in the cache is no regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readFile reads a regular file of at most max bytes.
func (c *Cache) readFile(name string, max int64) ([]byte, error) {
	f, _, err := c.openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f, max)
}

// readBounded reads an open file of at most max bytes.
func readBounded(f *os.File, max int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if gone(err) {
		err = fs.ErrNotExist
	}
	if err == nil && int64(len(b)) > max {
		err = fmt.Errorf("%s in the cache has more than %d bytes", f.Name(), max)
	}
	return b, err
}

// names lists a folder of the cache, at most max names, in no order. One that can't be read is empty.
func (c *Cache) names(sub string, max int) []string {
	if c.root == nil {
		return nil
	}
	f, err := c.root.OpenFile(sub, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	var all []string
	for len(all) < max {
		some, err := f.Readdirnames(min(1024, max-len(all)))
		all = append(all, some...)
		if err != nil || len(some) == 0 {
			break
		}
	}
	return all
}

// write puts a small file in place of what is there, at once for every reader.
func (c *Cache) write(name string, b []byte) error {
	if c.root == nil {
		return fs.ErrNotExist
	}
	c.holding()
	tmp := filepath.Join("tmp", c.ownName())
	f, err := c.root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = c.root.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(err, c.root.Remove(tmp))
	}
	return c.syncFolder(filepath.Dir(name))
}

// syncFolder makes the names in a folder as durable as what they name.
func (c *Cache) syncFolder(name string) error {
	f, err := c.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// remove removes what lies at a path of the cache, whatever it is. What is not there is no error.
func (c *Cache) remove(name string) error {
	if c.root == nil {
		return nil
	}
	return removeBelow(c.root, name)
}

// removeBelow removes what lies at a path below root. Folders may be sealed.
func removeBelow(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if errors.Is(err, fs.ErrPermission) {
		if err = unseal(root, name); err == nil {
			err = root.RemoveAll(name)
		}
	}
	if gone(err) {
		return nil
	}
	return err
}

// unseal gives us the right to remove what lies in folders that were sealed.
func unseal(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return err
	}
	folder, err := root.OpenRoot(name)
	if err != nil {
		return err
	}
	defer folder.Close()
	// What was opened must be what was looked at: a link put there in between leads elsewhere.
	if opened, err := folder.Stat("."); err != nil || !os.SameFile(info, opened) {
		return errors.Join(err, fs.ErrPermission)
	}
	if err := folder.Chmod(".", 0o700); err != nil {
		return err
	}
	return fs.WalkDir(folder.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && p != "." {
			err = folder.Chmod(p, 0o700)
		}
		return err
	})
}

// reservePrefix begins the name of a temporary cache in the system's temporary folder.
const reservePrefix = "gatehouse-cache-"

// removeReserve removes a temporary cache.
func removeReserve(dir string) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(removeBelow(parent, filepath.Base(dir)), parent.Close())
}

// sweepReserves removes the temporary caches that killed processes of this node left behind. What is somebody else's stays.
func sweepReserves(me owner) {
	f, err := os.Open(os.TempDir())
	if err != nil {
		return
	}
	defer f.Close()
	all, _ := f.Readdirnames(10 * maxSwept)
	for _, name := range all {
		text, ours := strings.CutPrefix(name, reservePrefix)
		if o, _, ok := parseOwner(text); ours && ok && o.node == me.node && o.dead() {
			_ = removeReserve(filepath.Join(os.TempDir(), name)) // the next one tries again
		}
	}
}
