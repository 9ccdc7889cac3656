package catalogue

import (
	"encoding/json"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// MaxAnswer bounds an answer of GET /api/recipes that is read, in bytes.
const MaxAnswer = 64 << 20

// ParseAnswer is the catalogue that a Gatehouse server answered GET /api/recipes?facts=1 with: every entry is as the
// server has it. An answer without facts, of another dialect or whose digest is not that of its rows is an error.
func ParseAnswer(src []byte, d dialect.Dialect) (*Catalogue, error) {
	var a Answer
	if len(src) > MaxAnswer {
		return nil, fmt.Errorf("the catalogue has %d bytes, expected at most %d", len(src), MaxAnswer)
	}
	if err := json.Unmarshal(src, &a); err != nil {
		return nil, fmt.Errorf("the catalogue can't be read: %w", err)
	}
	switch {
	case a.APIVersion != d.Names().Catalogue:
		return nil, fmt.Errorf("the catalogue has the apiVersion %.100q, expected %s", a.APIVersion, d.Names().Catalogue)
	case a.Gatehouse == nil || !a.Gatehouse.Facts:
		return nil, fmt.Errorf("the catalogue holds no facts: the server is no Gatehouse, or an older one")
	}
	entries := make([]Entry, len(a.Recipes))
	for i, row := range a.Recipes {
		if row.Gatehouse == nil || row.Gatehouse.Recipe == nil || row.Gatehouse.Recipe.Name != row.Name {
			return nil, fmt.Errorf("recipes[%d]: the facts of %.100q are missing", i, row.Name)
		}
		entries[i] = *row.Gatehouse.Recipe
	}
	c := New(d, a.Gatehouse.Version, entries, a.Gatehouse.Bundled)
	if c.Digest() != a.CatalogDigest {
		return nil, fmt.Errorf("the catalogue's digest is %s, the answer says %s", c.Digest(), a.CatalogDigest)
	}
	return c, nil
}
