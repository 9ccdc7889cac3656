package nodecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// Blob gives the file that has the digest, and fetches it with open when it is not there. d.Size bounds it: more bytes
// than that are refused. When it was made its digest is d.Digest; who reads it later does that by Entry.Open, or verifies
// it, and Drops an entry that was damaged and asks again.
func (c *Cache) Blob(ctx context.Context, d digest.Descriptor, open func(context.Context) (io.ReadCloser, error)) (*Entry, error) {
	if d.Digest.Algorithm().New() == nil {
		return nil, fmt.Errorf("%w: %q", digest.ErrMalformed, d.Digest)
	}
	e, err := c.make(ctx, keyOf(blobs, d.Digest), false, func(into *Cache, m *making) error {
		in, err := open(ctx)
		if err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
		defer in.Close()
		if sized, ok := in.(interface{ Size() int64 }); ok {
			m.bytes, m.known = max(0, min(sized.Size(), d.Size)), true
		}
		m.made = path.Join(m.tmp, "blob")
		got, n, err := into.download(m.made, d.Digest.Algorithm(), d.Size, in)
		m.bytes = max(m.bytes, n)
		if err != nil {
			return err
		}
		m.bytes = n
		if got != d.Digest {
			return &digest.MismatchError{Want: d.Digest, Got: got, WantSize: n, GotSize: n}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	e.want = d
	return e, nil
}

// MaxDocument bounds a document, in bytes.
const MaxDocument = 16 << 20

// Document reads a small document that SetDocument wrote; one that is not there is an fs.ErrNotExist. It proves nothing:
// documents are signed, and whoever reads one verifies it. The name is a plain file name.
func (c *Cache) Document(name string) ([]byte, error) {
	return c.document(name, func(fs.FileInfo) bool { return true })
}

// OwnDocument is Document for what carries no signature: a file that another account made is none. On a file server that takes
// root for somebody else nothing is root's own.
func (c *Cache) OwnDocument(name string) ([]byte, error) { return c.document(name, ownFile) }

func (c *Cache) document(name string, accept func(fs.FileInfo) bool) ([]byte, error) {
	if !plain(name) {
		return nil, fmt.Errorf("%.100q is no name of a document", name)
	}
	c.mu.Lock()
	spare := c.spare
	c.mu.Unlock()
	if spare != nil {
		if b, err := spare.document(name, accept); err == nil {
			return b, nil
		}
	}
	f, info, err := c.openFile(path.Join("documents", name))
	if gone(err) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !accept(info) {
		return nil, fs.ErrNotExist
	}
	return readBounded(f, MaxDocument)
}

// SetDocument puts a document in place of the one that is there, at once for every reader.
func (c *Cache) SetDocument(name string, b []byte) error {
	if !plain(name) || len(b) > MaxDocument {
		return fmt.Errorf("%.100q is no name of a document, or it has more than %d bytes", name, MaxDocument)
	}
	to := path.Join("documents", name)
	err := c.write(to, b)
	if errors.Is(err, errFolder) {
		err = errors.Join(c.take(to), c.write(to, b))
	}
	if !c.unwritable(err) {
		return err
	}
	spare, err := c.reserve()
	if err != nil {
		return err
	}
	return spare.SetDocument(name, b)
}

// plain reports whether a name is a file's alone.
func plain(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && len(name) <= 200
}

// path is the absolute path of what lies in the cache.
func (c *Cache) path(name string) string { return filepath.Join(c.dir, name) }
