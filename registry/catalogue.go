package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Catalogue is what the caller's client release may submit: what ships inside that release, as an administrator
// imported it or as this binary knows it, and the newest enabled version of every recipe pack of the dialect. With facts
// the entries of packs hold their parameters too, which can be large.
func (s *Service) Catalogue(ctx context.Context, p auth.Principal, facts bool) (*catalogue.Catalogue, error) {
	if err := s.authorize(ctx, p, auth.ReadCatalogue, "", "the catalogue"); err != nil {
		return nil, err
	}
	var c *catalogue.Catalogue
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		c, err = s.wholeCatalogue(tx, CallerOf(ctx), facts)
		return err
	})
	return c, err
}

// catalogue is the caller's catalogue as far as a submission needs it: what ships in the client, the published recipe that
// has the id or the alias, and the digest of the whole. What it costs does not grow with what is published.
func (s *Service) catalogue(tx Tx, caller Caller, recipe string) (*catalogue.Catalogue, error) {
	held, err := s.release(tx, caller)
	if err != nil {
		return nil, err
	}
	sum, err := s.catalogueDigest(tx, held)
	if err != nil {
		return nil, err
	}
	part := catalogue.Part{Digest: sum}
	if _, ok := held.Lookup(recipe); ok {
		return held.WithPart(part), nil
	}
	d := held.Dialect()
	found, err := tx.ShelvedRecipe(d, recipe)
	if err != nil {
		return nil, err
	}
	for _, row := range found {
		e, err := s.entry(tx, row.Repository, row.Version)
		if err != nil {
			return nil, err
		}
		part.Entries = append(part.Entries, e)
	}
	if len(found) == 0 {
		if part.Near, part.Note, err = s.absent(tx, d, recipe); err != nil {
			return nil, err
		}
	}
	return held.WithPart(part), nil
}

// entry is the catalogue's entry of a version. What it says never changes, so it is remembered as it is.
func (s *Service) entry(tx Tx, repository, version string) (catalogue.Entry, error) {
	key := [2]string{repository, version}
	if e, ok := s.catalogues.entry(key); ok {
		return e, nil
	}
	v, err := tx.Version(repository, version)
	if err != nil {
		return catalogue.Entry{}, err
	}
	e, err := entryOf(v)
	if err == nil {
		s.catalogues.keepEntry(key, e)
	}
	return e, err
}

// maxNearRecipes bounds the published recipes that a refusal looks at to find the one that was meant.
const maxNearRecipes = 200

// absent is what can be said of a recipe that is not in the catalogue: which of its framework were published, and whether
// a pack has the id whose versions are all disabled.
func (s *Service) absent(tx Tx, d dialect.Dialect, recipe string) (near []string, note string, err error) {
	framework, _, _ := strings.Cut(recipe, "/")
	if near, err = tx.ShelvedNames(d, framework+"/", maxNearRecipes); err != nil {
		return nil, "", err
	}
	holder, err := tx.ClientIDHolder(d, string(pack.KindRecipe), recipe)
	switch {
	case errors.Is(err, ErrNotFound):
		return near, "", nil
	case err != nil:
		return nil, "", err
	case holder.ID != recipe:
		return near, "it is spelt " + holder.ID, nil
	}
	return near, fmt.Sprintf("the pack %s had it and offers it no longer: all its versions with this recipe are disabled or replaced", holder.Pack), nil
}

// wholeCatalogue is a catalogue with every published recipe.
func (s *Service) wholeCatalogue(tx Tx, caller Caller, facts bool) (*catalogue.Catalogue, error) {
	held, err := s.release(tx, caller)
	if err != nil {
		return nil, err
	}
	d := held.Dialect()
	stamp, err := tx.CatalogueStamp(d, ShelfPart)
	if err != nil {
		return nil, err
	}
	if c := s.catalogues.whole(held, stamp); c != nil && !facts {
		return c, nil
	}
	var packs []catalogue.Entry
	err = tx.ShelvedRecipes(d, func(row Shelved) error {
		var e catalogue.Entry
		if err := json.Unmarshal(row.Entry, &e); err != nil {
			return fmt.Errorf("entry of %s@%s on the shelf: %w", row.ID(), row.Version, err)
		}
		if facts {
			v, err := tx.Version(row.Repository, row.Version)
			if err != nil {
				return err
			}
			if e, err = entryOf(v); err != nil {
				return err
			}
		}
		packs = append(packs, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all, _ := held.WithPacks(packs)
	if !facts && len(packs) <= maxRemembered {
		s.catalogues.keepWhole(held, stamp, all)
	}
	return all, nil
}

// catalogueDigest is the digest of the whole catalogue that a release has with what is published. It is computed once
// after a change.
func (s *Service) catalogueDigest(tx Tx, held *heldRelease) (digest.Digest, error) {
	d := held.Dialect()
	stamp, err := tx.CatalogueStamp(d, ShelfPart)
	if err != nil {
		return digest.Digest{}, err
	}
	if sum, ok := s.catalogues.digest(held, stamp); ok {
		return sum, nil
	}
	sum, err := held.DigestWith(func(yield func(id, version, digest string)) error { return tx.ShelvedDigests(d, yield) })
	if err == nil {
		s.catalogues.keepDigest(held, stamp, sum)
	}
	return sum, err
}

// release is what ships inside a client release: the imported snapshot of it, else what the binary knows. A release that
// nobody knows gets the dialect's default one.
func (s *Service) release(tx Tx, caller Caller) (*heldRelease, error) {
	d := caller.Dialect
	stamp, err := tx.CatalogueStamp(d, ReleasesPart)
	if err != nil {
		return nil, err
	}
	for _, release := range []string{caller.Release, catalogue.DefaultRelease(d)} {
		if release == "" {
			continue
		}
		if held := s.catalogues.release(d, release, stamp); held != nil {
			return held, nil
		}
		c, err := readRelease(tx, d, release)
		if err != nil {
			return nil, err
		}
		if c != nil {
			return s.catalogues.keepRelease(c, stamp), nil
		}
	}
	return s.catalogues.keepRelease(catalogue.New(d, catalogue.DefaultRelease(d), nil, nil), stamp), nil
}

// readRelease is nil for a release that nobody knows.
func readRelease(tx Tx, d dialect.Dialect, release string) (*catalogue.Catalogue, error) {
	snapshot, err := tx.Snapshot(d, release)
	switch {
	case err == nil:
		return parseSnapshot(snapshot)
	case !errors.Is(err, ErrNotFound):
		return nil, err
	}
	c, _ := catalogue.Builtin(d, release)
	return c, nil
}

func parseSnapshot(snapshot Snapshot) (*catalogue.Catalogue, error) {
	c, report := catalogue.ParseSnapshot(snapshot.Document, snapshot.Dialect, snapshot.Release)
	if c == nil {
		return nil, fmt.Errorf("stored snapshot of %s %s: %w", snapshot.Dialect, snapshot.Release,
			report.Decide(rule.Submission, rule.Subject{}, nil).Err())
	}
	return c, nil
}

// builtInRecipe reports whether a recipe id ships inside any client release of the dialect that is known, in any case of
// its letters.
func (s *Service) builtInRecipe(tx Tx, d dialect.Dialect, id string) (bool, error) {
	snapshots, err := tx.Snapshots(d)
	if err != nil {
		return false, err
	}
	releases := catalogue.Releases(d)
	for _, snapshot := range snapshots {
		releases = append(releases, snapshot.Release)
	}
	slices.Sort(releases)
	for _, release := range slices.Compact(releases) {
		held, err := s.release(tx, Caller{Dialect: d, Release: release})
		if err != nil {
			return false, err
		}
		if held.HasFold(id) {
			return true, nil
		}
	}
	return false, nil
}
