package moving

import (
	"context"
	"errors"
	"io"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// namedBatch is how many rows are held at a time.
const namedBatch = 1000

// NamedBlob is a blob that the metadata name.
type NamedBlob struct {
	digest.Descriptor
	Small bool // its bytes lie beside its rows
}

// EachBlob yields the blobs that the metadata name, until yield fails. It is the one list that everything here copies and
// checks.
func EachBlob(ctx context.Context, meta registry.MetaStore, yield func(NamedBlob) error) error {
	var after digest.Digest
	for {
		var batch []NamedBlob
		err := meta.View(ctx, func(tx registry.Tx) error {
			batch = nil
			named, err := tx.NamedBlobs(after, namedBatch)
			if err != nil {
				return err
			}
			for _, d := range named {
				_, err := tx.StatSmall(d.Digest)
				if err != nil && !errors.Is(err, registry.ErrBlobUnknown) {
					return err
				}
				batch = append(batch, NamedBlob{d, err == nil})
			}
			return nil
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, c := range batch {
			if err := yield(c); err != nil {
				return err
			}
		}
		after = batch[len(batch)-1].Digest
	}
}

// CheckSmall reads every small blob again and compares it with its digest. It gives how many there are, and those that are
// damaged and that a row names.
func CheckSmall(ctx context.Context, meta registry.MetaStore) (n int, damaged []digest.Digest, err error) {
	for after := (digest.Digest{}); ; {
		var list []registry.StoredBlob
		var bad []digest.Digest
		err := meta.View(ctx, func(tx registry.Tx) (err error) {
			bad = nil
			if list, err = tx.SmallBlobs(after, limit.KiB); err != nil {
				return err
			}
			for _, b := range list {
				content, err := tx.Small(b.Digest)
				if err != nil {
					return err
				}
				if b.Digest.Algorithm().FromBytes(content) == b.Digest {
					continue
				}
				named, err := tx.BlobNamed(b.Digest)
				if err != nil {
					return err
				}
				if named {
					bad = append(bad, b.Digest)
				}
			}
			return nil
		})
		if err != nil || len(list) == 0 {
			return n, damaged, err
		}
		n, damaged, after = n+len(list), append(damaged, bad...), list[len(list)-1].Digest
	}
}

// isLost reports whether a blob's store does not hold it, or holds other bytes.
func isLost(err error) bool {
	_, damaged := errors.AsType[*digest.MismatchError](err)
	return damaged || registry.CodeOf(err) == registry.BlobUnknown
}

// copyBlob copies a blob, verified, unless it is there with its size.
func copyBlob(ctx context.Context, from, to registry.BlobStore, d digest.Descriptor, p Progress) error {
	if size, err := to.Stat(ctx, d.Digest); err == nil && size == d.Size {
		return nil
	}
	body, _, err := from.Open(ctx, d.Digest)
	if err != nil {
		return err
	}
	defer body.Close()
	p.Found(d.Size)
	return to.Put(ctx, d, &counter{body, p.Moved})
}

// counter tells how many bytes are read.
type counter struct {
	r     io.Reader
	moved func(int64)
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.moved(int64(n))
	return n, err
}
