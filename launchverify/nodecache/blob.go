package nodecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
)

// Blob gives the file that has the digest, and fetches it with open when it is not there. d.Size bounds it: more bytes
// than that are refused. Whoever reads the file verifies it: a damaged one is Dropped and asked for again.
func (c *Cache) Blob(ctx context.Context, d digest.Descriptor, open func(context.Context) (io.ReadCloser, error)) (*Entry, error) {
	entry := &Entry{c.place("blobs", d.Digest)}
	if info, err := os.Lstat(entry.path); err == nil && info.Mode().IsRegular() {
		return entry, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	tmp, err := c.temporary("tmp")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	file := filepath.Join(tmp, "blob")
	if err := c.fillBlob(ctx, file, d, open); err != nil {
		return nil, err
	}
	if err := os.Rename(file, entry.path); err != nil {
		return nil, err
	}
	return entry, syncFolder(filepath.Dir(entry.path))
}

func (c *Cache) fillBlob(ctx context.Context, file string, d digest.Descriptor, open func(context.Context) (io.ReadCloser, error)) error {
	in, err := open(ctx)
	if err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	sum := d.Digest.Algorithm().New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(in, d.Size+1))
	got := digest.FromHash(d.Digest.Algorithm(), sum)
	if err == nil && (n > d.Size || got != d.Digest) {
		err = &digest.MismatchError{Want: d.Digest, Got: got, WantSize: d.Size, GotSize: n}
	}
	if err = errors.Join(err, out.Chmod(0o444), out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("fetch: %w", err)
	}
	return nil
}

// MaxDocument bounds a document, in bytes.
const MaxDocument = 16 << 20

// Document reads a small document that SetDocument wrote; one that is not there is an fs.ErrNotExist. It proves nothing:
// documents are signed, and whoever reads one verifies it. The name is a plain file name.
func (c *Cache) Document(name string) ([]byte, error) {
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return nil, fmt.Errorf("%.100q is no name of a document", name)
	}
	f, err := os.OpenFile(filepath.Join(c.dir, "documents", name), os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > MaxDocument {
		return nil, fmt.Errorf("document %s in the cache: no regular file of at most %d bytes", name, MaxDocument)
	}
	return io.ReadAll(io.LimitReader(f, info.Size()))
}

// SetDocument puts a document in place of the one that is there, at once for every reader.
func (c *Cache) SetDocument(name string, b []byte) error {
	if !filepath.IsLocal(name) || filepath.Base(name) != name || len(b) > MaxDocument {
		return fmt.Errorf("%.100q is no name of a document, or it has more than %d bytes", name, MaxDocument)
	}
	return durable.Replace(filepath.Join(c.dir, "documents", name), b, 0o644)
}
