package catalogue

import (
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
)

// Digest is the catalogue digest of the rows in their order (recipes-and-locks.md 3). It is computed once.
func (c *Catalogue) Digest() digest.Digest {
	if c.part != nil {
		return c.part.Digest
	}
	c.once.Do(func() {
		h := newRowsHash()
		for _, e := range c.entries {
			h.add(e.Name, e.Version, e.Digest)
		}
		c.sum = h.digest()
	})
	return c.sum
}

// DigestWith is the digest of the catalogue WithPacks: each yields what it covers of their recipes, sorted by id, and its
// error is returned.
func (c *Catalogue) DigestWith(each func(yield func(id, version, digest string)) error) (digest.Digest, error) {
	h := newRowsHash()
	for _, e := range c.entries {
		h.add(e.Name, e.Version, e.Digest)
	}
	err := each(func(id, version, sum string) {
		if _, taken := c.byName[id]; !taken {
			h.add(id, version, sum)
		}
	})
	return h.digest(), err
}

// rowsHash computes a catalogue digest row by row.
type rowsHash struct {
	h     hash.Hash
	begun bool
	row   []byte // of the last one, for its memory
}

func newRowsHash() *rowsHash {
	r := &rowsHash{h: sha256.New()}
	r.h.Write([]byte{'['})
	return r
}

func (r *rowsHash) add(name, version, sum string) {
	if r.begun {
		r.h.Write([]byte{','})
	}
	r.begun = true
	if isPlain(name) && isPlain(version) && isPlain(sum) {
		r.row = append(r.row[:0], `{"digest":"`...)
		r.row = append(append(r.row, sum...), `","name":"`...)
		r.row = append(append(r.row, name...), `","version":"`...)
		r.row = append(append(r.row, version...), `"}`...)
		r.h.Write(r.row)
		return
	}
	row, err := canonical.ASCII(identity(name, version, sum))
	if err != nil {
		row = []byte("null") // no text; no client could read it in an answer either
	}
	r.h.Write(row)
}

// isPlain reports whether a text stands in JSON as it is.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func (r *rowsHash) digest() digest.Digest {
	r.h.Write([]byte{']'})
	return digest.FromHash(digest.SHA256, r.h)
}

// DigestOf is the catalogue digest of the rows of an answer as it came in, whatever types they hold; a part that a row
// lacks counts as null. Both clients compute it so. Canonical is the text that it hashes.
func DigestOf(rows *pyvalue.Value) (sum digest.Digest, form []byte, err error) {
	list := make([]any, len(rows.List))
	for i, row := range rows.List {
		list[i] = identity(part(row, "name"), part(row, "version"), part(row, "digest"))
	}
	if form, err = canonical.ASCII(list); err != nil {
		return digest.Digest{}, nil, fmt.Errorf("catalogue digest: %w", err)
	}
	return digest.FromBytes(form), form, nil
}

// identity is what the digest covers of a row.
func identity(name, version, sum any) canonical.Object {
	return canonical.Object{{Key: "name", Value: name}, {Key: "version", Value: version}, {Key: "digest", Value: sum}}
}

func part(row *pyvalue.Value, key string) any {
	if v := row.Get(key); v != nil {
		return v
	}
	return nil
}
