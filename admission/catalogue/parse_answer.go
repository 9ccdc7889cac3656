package catalogue

import (
	"encoding/json"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/name"
)

// MaxAnswer bounds an answer of GET /api/recipes that is read, in bytes.
const MaxAnswer = 64 << 20

// ParseAnswer is the catalogue that a Gatehouse server answered GET /api/recipes?facts=1 with: every entry is as the
// server has it. An answer without facts, of another dialect or whose digest is not that of its rows is an error, and so are names
// that could lead a path elsewhere: recipes and packs are looked for in folders that are called like them.
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
		if err := row.Gatehouse.Recipe.checkNames(); err != nil {
			return nil, fmt.Errorf("recipes[%d]: %w", i, err)
		}
		entries[i] = *row.Gatehouse.Recipe
	}
	c := New(d, a.Gatehouse.Version, entries, a.Gatehouse.Bundled)
	if c.Digest() != a.CatalogDigest {
		return nil, fmt.Errorf("the catalogue's digest is %s, the answer says %s", c.Digest(), a.CatalogDigest)
	}
	return c, nil
}

// checkNames holds what becomes part of a path.
func (e Entry) checkNames() error {
	if !isRecipeID(e.Name) || framework(e.Name) != e.Framework {
		return fmt.Errorf("the recipe %.100q of the framework %.100q, expected <framework>/<method>", e.Name, e.Framework)
	}
	if p := e.Pack; p != nil && !(name.IsSegment(p.Owner) && name.IsSegment(p.Name)) {
		return fmt.Errorf("the pack %.200q of the recipe %s, expected <owner>/<name>", p.ID(), e.Name)
	}
	return nil
}
