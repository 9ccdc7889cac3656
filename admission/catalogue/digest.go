package catalogue

import (
	"crypto/sha256"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
)

// Digest is the catalogue digest of the rows in their order (recipes-and-locks.md 3). It is computed once.
func (c *Catalogue) Digest() digest.Digest {
	c.once.Do(func() {
		h := sha256.New()
		h.Write([]byte{'['})
		for i, e := range c.entries {
			if i > 0 {
				h.Write([]byte{','})
			}
			row, err := canonical.ASCII(identity(e.Name, e.Version, e.Digest))
			if err != nil {
				row = []byte("null") // no text; no client could read it in an answer either
			}
			h.Write(row)
		}
		h.Write([]byte{']'})
		c.sum = digest.FromHash(digest.SHA256, h)
	})
	return c.sum
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
