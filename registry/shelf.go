package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// What clients sync and submit by is kept on a shelf: of every declarative pack the newest enabled version in each
// dialect. Whatever can change which version that is calls reshelve in its own transaction. So no request walks over
// versions, and a stamp says whether anything has changed since a catalogue was computed.

// reshelve puts the newest enabled version of a pack on the shelf of each dialect, or takes it off.
func (s *Service) reshelve(tx Tx, repository string) error {
	versions, err := tx.Versions(repository)
	if err != nil || len(versions) == 0 || !pack.Kind(versions[0].Kind).Declarative() {
		return err
	}
	for _, d := range dialect.All {
		changed := false
		if v, ok := newest(inDialect(versions, d), true); ok {
			changed, err = shelve(tx, v)
		} else {
			changed, err = tx.TakeOffShelf(d, repository)
		}
		if err == nil && changed {
			err = tx.PutCatalogueStamp(d, ShelfPart, randomHex(16))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shelve puts a version on the shelf and reports whether that changed anything.
func shelve(tx Tx, v Version) (bool, error) {
	have, err := tx.Shelved(v.Dialect, v.Repository)
	if err == nil && have.Version == v.Version || err != nil && !errors.Is(err, ErrNotFound) {
		return false, err
	}
	if v, err = tx.Version(v.Repository, v.Version); err != nil {
		return false, err
	}
	row := Shelved{
		Dialect: v.Dialect, Repository: v.Repository, Version: v.Version, Owner: v.Owner, PackName: v.PackName, Kind: v.Kind,
		Content: v.Content, Tree: v.Tree,
	}
	if v.Kind == string(pack.KindRecipe) {
		e, err := entryOf(v)
		if err != nil {
			return false, err
		}
		row.Recipe, row.Alias, row.RecipeVersion, row.RecipeDigest = e.Name, e.Alias(), e.Version, e.Digest
		e.Params = nil
		if row.Entry, err = json.Marshal(e); err != nil {
			return false, err
		}
	}
	return true, tx.PutShelved(row)
}

// entryOf is the catalogue's entry of a version of a recipe pack.
func entryOf(v Version) (e catalogue.Entry, err error) {
	if err = json.Unmarshal(v.Catalogue, &e); err != nil {
		err = fmt.Errorf("stored catalogue entry of %s@%s: %w", v.ID(), v.Version, err)
	}
	return e, err
}

// RecipeID is the id by which jobs name the recipe of a version, and its other spelling; "" for packs of other kinds, and
// where a list has left out the catalogue's entry.
func (v Version) RecipeID() (id, alias string) {
	if len(v.Catalogue) == 0 {
		return "", ""
	}
	e, err := entryOf(v)
	if err != nil {
		return "", "" // whoever needs the entry says so
	}
	return e.Name, e.Alias()
}

// shelfSetting says that every pack was put on the shelf that was published before there was one.
const shelfSetting = "shelf"

// fillShelf puts what was published by an older program on the shelf, once.
func (s *Service) fillShelf(ctx context.Context) error {
	filled := ""
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		filled, err = setting(tx, shelfSetting)
		return err
	})
	if err != nil || filled != "" {
		return err
	}
	return s.always.Update(ctx, func(tx Tx) error {
		if filled, err := setting(tx, shelfSetting); err != nil || filled != "" {
			return err
		}
		err := byPack(tx, func(versions []Version) error {
			for _, v := range versions {
				if err := s.takeOldIDs(tx, v); err != nil {
					return err
				}
			}
			return s.reshelve(tx, versions[0].Repository)
		})
		if err != nil {
			return err
		}
		return tx.PutSetting(shelfSetting, "1")
	})
}

// takeOldIDs takes the ids of a version that was published before they were kept. Of two packs with one id the first one
// has it, as the clients' users have known it.
func (s *Service) takeOldIDs(tx Tx, v Version) error {
	if kind := pack.Kind(v.Kind); kind != pack.KindRecipe && kind != pack.KindBenchmark {
		return nil
	}
	v, err := tx.Version(v.Repository, v.Version)
	if err != nil {
		return err
	}
	ids, err := clientIDs(v)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := tx.TakeClientID(id); err != nil && CodeOf(err) != Conflict {
			return err
		}
	}
	return nil
}

// clientIDs are the ids by which clients find a version.
func clientIDs(v Version) ([]ClientID, error) {
	switch pack.Kind(v.Kind) {
	case pack.KindBenchmark:
		return []ClientID{{Dialect: v.Dialect, Kind: v.Kind, ID: v.Owner + "." + v.PackName, Pack: v.ID()}}, nil
	case pack.KindRecipe:
		e, err := entryOf(v)
		if err != nil {
			return nil, err
		}
		return []ClientID{
			{Dialect: v.Dialect, Kind: v.Kind, ID: e.Name, Pack: v.ID()},
			{Dialect: v.Dialect, Kind: v.Kind, ID: e.Alias(), Pack: v.ID(), Alias: true},
		}, nil
	}
	return nil, nil
}

// maxRemembered bounds how many packs a list may have that is remembered.
const maxRemembered = 10_000

// Extensions lists what a client of the caller's dialect syncs: of every declarative pack its newest enabled version, by
// repository. It fails rather than leave anything out: a client deletes what is not listed (wire.md 5.2). Who may not read
// every declarative pack, as a robot, may not ask. The caller must not change the list.
func (s *Service) Extensions(ctx context.Context, p auth.Principal) ([]Shelved, error) {
	if err := s.authorize(ctx, p, auth.ReadCatalogue, "", "extensions"); err != nil {
		return nil, err
	}
	d := CallerOf(ctx).Dialect
	var list []Shelved
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		list, err = s.shelf(tx, d)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// shelf is what lies on the shelf of a dialect, never nil.
func (s *Service) shelf(tx Tx, d dialect.Dialect) ([]Shelved, error) {
	stamp, err := tx.CatalogueStamp(d, ShelfPart)
	if err != nil {
		return nil, err
	}
	if list, ok := s.catalogues.shelf(d, stamp); ok {
		return list, nil
	}
	list := []Shelved{}
	err = tx.Shelf(d, func(v Shelved) error {
		list = append(list, v)
		return nil
	})
	if err == nil && len(list) <= maxRemembered {
		s.catalogues.keepShelf(d, stamp, list)
	}
	return list, err
}
