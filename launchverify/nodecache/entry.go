package nodecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// The kinds of entries: the folders that hold them.
const (
	trees = "trees"
	blobs = "blobs"
)

// keyOf is where an entry lies in the cache.
func keyOf(kind string, d digest.Digest) string {
	return path.Join(kind, strings.Replace(d.String(), ":", "-", 1))
}

// parseName reads the name of an entry.
func parseName(name string) (digest.Digest, bool) {
	d, err := digest.Parse(strings.Replace(name, "-", ":", 1))
	return d, err == nil
}

// Entry is something in the cache that its user holds: until Release, or the cache's Close, it is not evicted.
type Entry struct {
	c    *Cache
	key  string
	want digest.Descriptor // of a blob
	once sync.Once
}

// Path is where it lies: a folder for a tree, a file for a blob. What is read there must be verified.
func (e *Entry) Path() string { return filepath.Join(e.c.dir, e.key) }

// Release ends the hold.
func (e *Entry) Release() {
	e.once.Do(func() {
		e.c.mu.Lock()
		held := e.c.held
		e.c.mu.Unlock()
		if held != nil {
			held.release(e.key)
		}
	})
}

// Open opens a blob. Reading it fails at its end, at the latest, unless the bytes have the entry's digest.
func (e *Entry) Open() (io.ReadCloser, error) {
	f, info, err := e.c.openFile(e.key)
	if err != nil {
		return nil, err
	}
	want := e.want
	if info.Size() <= want.Size { // the descriptor's size is a bound
		want.Size = info.Size()
	}
	return struct {
		io.Reader
		io.Closer
	}{digest.NewReader(f, want), f}, nil
}

// present holds an entry and reports whether it is there. Its last use is recorded, to a minute.
func (c *Cache) present(key string, folder bool) (*Entry, bool) {
	if c.root == nil || c.isSpoiled(key) {
		return nil, false
	}
	if _, err := c.root.Lstat(key); gone(err) {
		return nil, false
	}
	h := c.holding()
	h.take(key) // before it counts: whoever evicts looks for holds after the entry was taken away, and puts it back
	info, err := c.root.Lstat(key)
	if err != nil || info.IsDir() != folder || !folder && !info.Mode().IsRegular() {
		h.release(key)
		if err == nil {
			_ = c.take(key) // somebody put something else there
		}
		return nil, false
	}
	if d := h.made.Sub(info.ModTime()); !h.made.IsZero() && (d > time.Minute || d < -time.Minute) {
		if f, err := c.root.Open(path.Dir(key)); err == nil {
			touch(f, path.Base(key))
			f.Close()
		}
	}
	return &Entry{c: c, key: key}, true
}

// make brings an entry into the cache: present or, by one process of all that want it, made by fill in a temporary
// folder of the cache that it is given. fill names what is then renamed to the entry. On a full disk what nobody holds
// is evicted and fill called once more.
func (c *Cache) make(ctx context.Context, key string, folder bool, fill func(*Cache, *making) error) (*Entry, error) {
	var entry *Entry
	there := func() (ok bool) {
		entry, ok = c.present(key, folder)
		return ok
	}
	if there() {
		return entry, nil
	}
	if c.root == nil {
		return c.makeInReserve(ctx, key, folder, fill)
	}
	// Another process may remove what was made before this one holds it; that it does so again and again says that it
	// is no cache.
	for range 5 {
		cl, err := c.claim(ctx, key, there)
		if err != nil {
			return nil, err
		}
		if entry != nil || there() {
			cl.end()
			return entry, nil
		}
		err = c.fill(key, fill)
		cl.end()
		if c.unwritable(err) && isWriting(err) {
			return c.makeInReserve(ctx, key, folder, fill)
		}
		if err != nil {
			return nil, err
		}
		if there() {
			return entry, nil
		}
	}
	return nil, fmt.Errorf("%s was removed from the cache %s as soon as it was there", key, c.dir)
}

func (c *Cache) makeInReserve(ctx context.Context, key string, folder bool, fill func(*Cache, *making) error) (*Entry, error) {
	spare, err := c.reserve()
	if err != nil {
		return nil, err
	}
	return spare.make(ctx, key, folder, fill)
}

// making is an entry on its way into the cache.
type making struct {
	tmp   string // a folder of its own, relative to the cache
	made  string // what is renamed to the entry, relative to the cache
	bytes int64  // what is needed on the disk, as far as it is known
	known bool   // bytes is all that is needed
	files []file // further files to put into the cache before
}

// file is a small or finished file that goes along with an entry.
type file struct{ from, to string }

// writing marks an error of putting something into the cache, unlike one of getting it.
type writing struct{ err error }

func (w writing) Error() string { return w.err.Error() }
func (w writing) Unwrap() error { return w.err }

func isWriting(err error) bool {
	_, ok := errors.AsType[writing](err)
	return ok
}

// fill makes one entry, with a second try when the disk was full.
func (c *Cache) fill(key string, fill func(*Cache, *making) error) error {
	m := &making{}
	err := c.fillOnce(key, m, fill)
	if !full(err) {
		return err
	}
	need := m.bytes
	if _, evictErr := c.evict(func(_, freed int64) bool { return !m.known || freed < need+need/4 }); evictErr != nil {
		return errors.Join(err, evictErr)
	}
	again := &making{}
	err = c.fillOnce(key, again, fill)
	if full(err) {
		need = max(need, again.bytes)
		return fmt.Errorf("the disk of the cache %s is full: at least %d bytes (%d MiB) are needed for %s, and nothing more can be evicted: %w",
			c.dir, need, need>>20+1, key, err)
	}
	return err
}

func (c *Cache) fillOnce(key string, m *making, fill func(*Cache, *making) error) (err error) {
	if m.tmp, err = c.temporary("tmp"); err != nil {
		return writing{err}
	}
	defer func() { err = errors.Join(err, c.remove(m.tmp)) }()
	if err := fill(c, m); err != nil {
		return err
	}
	if limit := c.opt.MaxBytes; limit > 0 {
		over := false
		_, err := c.evict(func(used, _ int64) bool {
			over = used+m.bytes > limit
			return over
		})
		if err != nil {
			return writing{err}
		}
		c.mu.Lock()
		c.over = c.over || over
		c.mu.Unlock()
	}
	for _, f := range m.files {
		if err := c.settle(f.from, f.to); err != nil {
			return writing{err}
		}
	}
	if err := c.settle(m.made, key); err != nil {
		return writing{err}
	}
	return nil
}

// settle renames what was made to where it belongs. Somebody else's entry is as good as ours, and what is no entry goes.
func (c *Cache) settle(from, to string) error {
	for range 3 {
		err := c.root.Rename(from, to)
		switch {
		case err == nil:
			return c.syncFolder(path.Dir(to))
		case occupied(err):
			return nil
		case !errors.Is(err, errNotFolder) && !errors.Is(err, errFolder):
			return err
		}
		if err := c.take(to); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s is in the way", to)
}

// take removes an entry, by way of tmp so that nobody sees half of it.
func (c *Cache) take(key string) error {
	tmp, err := c.temporary("tmp")
	if err != nil {
		return err
	}
	err = c.root.Rename(key, path.Join(tmp, "entry"))
	if gone(err) {
		err = nil
	}
	return errors.Join(err, c.remove(tmp))
}

// Drop removes a damaged entry and ends the hold. Where the cache can't be written to the entry is from now on taken from
// elsewhere.
func (c *Cache) Drop(e *Entry) error {
	e.Release()
	err := e.c.take(e.key)
	if e.c.unwritable(err) {
		e.c.mu.Lock()
		defer e.c.mu.Unlock()
		e.c.spoiled[e.key] = true
		return nil
	}
	return err
}

// isSpoiled reports whether an entry is damaged that can't be removed.
func (c *Cache) isSpoiled(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spoiled[key]
}
