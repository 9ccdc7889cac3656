package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Catalogue is what the caller's client release may submit: what ships inside that release, as an administrator
// imported it or as this binary knows it, and the newest enabled version of every recipe pack of the dialect.
func (s *Service) Catalogue(ctx context.Context, p auth.Principal) (*catalogue.Catalogue, error) {
	if err := s.authorize(ctx, p, auth.ReadCatalogue, "", "the catalogue"); err != nil {
		return nil, err
	}
	var c *catalogue.Catalogue
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		c, err = s.catalogue(tx, CallerOf(ctx), "")
		return err
	})
	return c, err
}

// catalogue builds the whole catalogue of a caller. Of the packs' recipes only the one that recipe names keeps what the
// answer to a client does not hold: parameters can be large.
func (s *Service) catalogue(tx Tx, caller Caller, recipe string) (*catalogue.Catalogue, error) {
	builtIn, err := s.releaseCatalogue(tx, caller)
	if err != nil {
		return nil, err
	}
	var packs []catalogue.Entry
	err = byPack(tx, func(versions []Version) error {
		v, ok := newest(inDialect(versions, caller.Dialect), true)
		if !ok || v.Kind != string(pack.KindRecipe) {
			return nil
		}
		v, err := tx.Version(v.Repository, v.Version)
		if err != nil {
			return err
		}
		var e catalogue.Entry
		if err := json.Unmarshal(v.Catalogue, &e); err != nil {
			return fmt.Errorf("stored catalogue entry of %s@%s: %w", v.ID(), v.Version, err)
		}
		if e.Name != recipe && e.Alias() != recipe {
			e.Params, e.Roles, e.Plugins, e.Lifecycle = nil, nil, nil, nil
		}
		packs = append(packs, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all, _ := builtIn.WithPacks(packs)
	return all, nil
}

// releaseCatalogue is what ships inside a client release: the imported snapshot of it, else what the binary knows. A
// release that nobody knows gets the dialect's default one.
func (s *Service) releaseCatalogue(tx Tx, caller Caller) (*catalogue.Catalogue, error) {
	d := caller.Dialect
	for _, release := range []string{caller.Release, catalogue.DefaultRelease(d)} {
		if release == "" {
			continue
		}
		snapshot, err := tx.Snapshot(d, release)
		if err == nil {
			return parseSnapshot(snapshot)
		}
		if !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if c, ok := catalogue.Builtin(d, release); ok {
			return c, nil
		}
	}
	return catalogue.New(d, catalogue.DefaultRelease(d), nil, nil), nil
}

func parseSnapshot(snapshot Snapshot) (*catalogue.Catalogue, error) {
	c, report := catalogue.ParseSnapshot(snapshot.Document, snapshot.Dialect, snapshot.Release)
	if c == nil {
		return nil, fmt.Errorf("stored snapshot of %s %s: %w", snapshot.Dialect, snapshot.Release,
			report.Decide(rule.Submission, rule.Subject{}, nil).Err())
	}
	return c, nil
}

// builtInRecipe reports whether a recipe id ships inside any client release of the dialect that is known.
func (s *Service) builtInRecipe(tx Tx, d dialect.Dialect, id string) (bool, error) {
	for _, release := range catalogue.Releases(d) {
		if c, ok := catalogue.Builtin(d, release); ok {
			if _, has := c.Lookup(id); has {
				return true, nil
			}
		}
	}
	snapshots, err := tx.Snapshots(d)
	if err != nil {
		return false, err
	}
	for _, snapshot := range snapshots {
		c, err := parseSnapshot(snapshot)
		if err != nil {
			return false, err
		}
		if _, has := c.Lookup(id); has {
			return true, nil
		}
	}
	return false, nil
}

// Imported says what an import of a client release did.
type Imported struct {
	Dialect  dialect.Dialect `json:"dialect"`
	Release  string          `json:"release"`
	Recipes  int             `json:"recipes"`
	Bundled  int             `json:"bundled_plugins"`
	Shadowed []string        `json:"shadowed"` // packs whose recipe id the release has too: new jobs get the release's
}

// ImportCatalogue replaces what is known of a client release by a snapshot of an installed one; release "" means the
// dialect's default. Errors: Denied, and a *rule.Denied for a snapshot that is none.
func (s *Service) ImportCatalogue(ctx context.Context, p auth.Principal, d dialect.Dialect, release string, document []byte) (Imported, error) {
	if err := s.authorize(ctx, p, auth.ImportCatalog, "", "the catalogue of "+string(d)); err != nil {
		return Imported{}, err
	}
	if release == "" {
		release = catalogue.DefaultRelease(d)
	}
	c, report := catalogue.ParseSnapshot(document, d, release)
	if c == nil {
		return Imported{}, report.Decide(rule.Submission, rule.Subject{Name: "catalogue " + string(d), Version: release, Dialect: d}, nil).Err()
	}
	out := Imported{Dialect: d, Release: release, Recipes: len(c.Entries()), Bundled: len(c.Bundled()), Shadowed: []string{}}
	err := s.meta.Update(ctx, func(tx Tx) error {
		out.Shadowed = out.Shadowed[:0]
		held, err := tx.RecipeIDs(d)
		if err != nil {
			return err
		}
		for _, h := range held {
			if _, ok := c.Lookup(h.ID); ok {
				out.Shadowed = append(out.Shadowed, h.Pack)
			}
		}
		err = tx.PutSnapshot(Snapshot{Dialect: d, Release: release, Document: document, ImportedBy: p.Account, ImportedAt: s.now()})
		if err != nil {
			return err
		}
		return s.audit(tx, p, "catalogue.import", string(d)+" "+release, fmt.Sprintf("%d recipes", out.Recipes))
	})
	return out, err
}
