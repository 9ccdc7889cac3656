package metastore

import (
	"database/sql"
	"errors"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry"
)

const (
	shelfHead    = `dialect, repository, version, owner, pack_name, kind, content, tree, recipe, alias, recipe_version, recipe_digest`
	shelfColumns = shelfHead + `, entry`
	// shelfBrief is what a client syncs by.
	shelfBrief = `dialect, repository, version, owner, pack_name, kind, content, tree, '', '', '', '', NULL`
)

func scanShelved(r row) (v registry.Shelved, err error) {
	err = r.Scan(&v.Dialect, &v.Repository, &v.Version, &v.Owner, &v.PackName, &v.Kind, digestColumn{&v.Content}, digestColumn{&v.Tree},
		&v.Recipe, &v.Alias, &v.RecipeVersion, &v.RecipeDigest, (*[]byte)(&v.Entry))
	return v, err
}

// CatalogueStamp implements registry.CatalogueTx.
func (t *tx) CatalogueStamp(d dialect.Dialect, part registry.CataloguePart) (stamp string, err error) {
	err = t.get(`SELECT stamp FROM catalogue_stamps WHERE dialect = $1 AND part = $2`, []any{string(d), string(part)}, &stamp)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return stamp, err
}

// PutCatalogueStamp implements registry.CatalogueTx.
func (t *tx) PutCatalogueStamp(d dialect.Dialect, part registry.CataloguePart, stamp string) error {
	_, err := t.exec(`INSERT INTO catalogue_stamps (dialect, part, stamp) VALUES ($1, $2, $3)
		ON CONFLICT (dialect, part) DO UPDATE SET stamp = excluded.stamp`, string(d), string(part), stamp)
	return err
}

// PutShelved implements registry.CatalogueTx.
func (t *tx) PutShelved(v registry.Shelved) error {
	_, err := t.exec(`INSERT INTO shelf (`+shelfColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
		ON CONFLICT (dialect, repository) DO UPDATE SET version = excluded.version, owner = excluded.owner, pack_name = excluded.pack_name,
		kind = excluded.kind, content = excluded.content, tree = excluded.tree, recipe = excluded.recipe, alias = excluded.alias,
		recipe_version = excluded.recipe_version, recipe_digest = excluded.recipe_digest, entry = excluded.entry`,
		string(v.Dialect), v.Repository, v.Version, v.Owner, v.PackName, v.Kind, v.Content.String(), v.Tree.String(),
		v.Recipe, v.Alias, v.RecipeVersion, v.RecipeDigest, []byte(v.Entry))
	return t.named(err, noVersion(v.Repository, v.Version))
}

// TakeOffShelf implements registry.CatalogueTx.
func (t *tx) TakeOffShelf(d dialect.Dialect, repository string) (bool, error) {
	n, err := t.exec(`DELETE FROM shelf WHERE dialect = $1 AND repository = $2`, string(d), repository)
	return n > 0, err
}

// Shelved implements registry.CatalogueTx.
func (t *tx) Shelved(d dialect.Dialect, repository string) (registry.Shelved, error) {
	return one(t, registry.Errorf(registry.NotFound, "no version of %.300q is on the shelf of %s", repository, d), scanShelved,
		`SELECT `+shelfColumns+` FROM shelf WHERE dialect = $1 AND repository = $2`, string(d), repository)
}

// ShelvedRecipe implements registry.CatalogueTx. The conditions on ” are those of the indexes.
func (t *tx) ShelvedRecipe(d dialect.Dialect, id string) ([]registry.Shelved, error) {
	byID, err := all(t, scanShelved, `SELECT `+shelfColumns+` FROM shelf
		WHERE dialect = $1 AND recipe = $2 AND recipe <> ''`, string(d), id)
	if err != nil {
		return nil, err
	}
	byAlias, err := all(t, scanShelved, `SELECT `+shelfColumns+` FROM shelf
		WHERE dialect = $1 AND alias = $2 AND alias <> ''`, string(d), id)
	return append(byID, byAlias...), err
}

// shelfPage is how many rows of the shelf are held in memory at a time.
const shelfPage = 500

// Shelf implements registry.CatalogueTx. yield may use the transaction; its error ends the listing.
func (t *tx) Shelf(d dialect.Dialect, yield func(registry.Shelved) error) error {
	after := ""
	for {
		page, err := all(t, scanShelved, `SELECT `+shelfBrief+` FROM shelf WHERE dialect = $1 AND repository > $2 ORDER BY repository LIMIT $3`,
			string(d), after, shelfPage)
		if err != nil {
			return err
		}
		if err := yieldAll(page, yield); err != nil || len(page) < shelfPage {
			return err
		}
		after = page[len(page)-1].Repository
	}
}

// ShelvedRecipes implements registry.CatalogueTx. yield may use the transaction; its error ends the listing.
func (t *tx) ShelvedRecipes(d dialect.Dialect, yield func(registry.Shelved) error) error {
	after := ""
	for {
		page, err := all(t, scanShelved, `SELECT `+shelfColumns+` FROM shelf WHERE dialect = $1 AND recipe > $2 AND recipe <> '' ORDER BY recipe LIMIT $3`,
			string(d), after, shelfPage)
		if err != nil {
			return err
		}
		if err := yieldAll(page, yield); err != nil || len(page) < shelfPage {
			return err
		}
		after = page[len(page)-1].Recipe
	}
}

func yieldAll(page []registry.Shelved, yield func(registry.Shelved) error) error {
	for _, v := range page {
		if err := yield(v); err != nil {
			return err
		}
	}
	return nil
}

// ShelvedDigests implements registry.CatalogueTx.
func (t *tx) ShelvedDigests(d dialect.Dialect, yield func(id, version, digest string)) error {
	type line struct{ id, version, digest string }
	return each(t, func(r row) (l line, err error) {
		err = r.Scan(&l.id, &l.version, &l.digest)
		return l, err
	}, func(l line) bool {
		yield(l.id, l.version, l.digest)
		return true
	}, `SELECT recipe, recipe_version, recipe_digest FROM shelf WHERE dialect = $1 AND recipe <> '' ORDER BY recipe`, string(d))
}

// ShelvedNames implements registry.CatalogueTx.
func (t *tx) ShelvedNames(d dialect.Dialect, prefix string, limit int) ([]string, error) {
	return all(t, text, `SELECT recipe FROM shelf WHERE dialect = $1 AND recipe >= $2 AND recipe < $3 AND recipe <> '' ORDER BY recipe LIMIT $4`,
		string(d), prefix, prefix+"\x7f", limit)
}

const clientIDColumns = `dialect, kind, id, pack, alias`

func scanClientID(r row) (c registry.ClientID, err error) {
	err = r.Scan(&c.Dialect, &c.Kind, &c.ID, &c.Pack, &c.Alias)
	return c, err
}

// TakeClientID implements registry.CatalogueTx. An id that its own pack had as an alias only becomes its id.
func (t *tx) TakeClientID(c registry.ClientID) error {
	n, err := t.exec(`INSERT INTO client_ids (fold, `+clientIDColumns+`) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		strings.ToLower(c.ID), string(c.Dialect), c.Kind, c.ID, c.Pack, c.Alias)
	if err != nil || n == 1 || c.Alias {
		return err
	}
	holder, err := t.ClientIDHolder(c.Dialect, c.Kind, c.ID)
	switch {
	case err != nil:
		return err
	case holder.Pack != c.Pack:
		return conflict("the %s id %.200q of %s belongs to pack %.200q", c.Kind, c.ID, c.Dialect, holder.Pack)
	case holder.Alias:
		_, err = t.exec(`UPDATE client_ids SET alias = $4, id = $5 WHERE dialect = $1 AND kind = $2 AND fold = $3`,
			string(c.Dialect), c.Kind, strings.ToLower(c.ID), false, c.ID)
	}
	return err
}

// ClientIDHolder implements registry.CatalogueTx.
func (t *tx) ClientIDHolder(d dialect.Dialect, kind, id string) (registry.ClientID, error) {
	return one(t, registry.Errorf(registry.NotFound, "no pack has the %s id %.200q of %s", kind, id, d), scanClientID,
		`SELECT `+clientIDColumns+` FROM client_ids WHERE dialect = $1 AND kind = $2 AND fold = $3`, string(d), kind, strings.ToLower(id))
}

// ClientIDs implements registry.CatalogueTx.
func (t *tx) ClientIDs(d dialect.Dialect, kind string) ([]registry.ClientID, error) {
	return all(t, scanClientID, `SELECT `+clientIDColumns+` FROM client_ids WHERE dialect = $1 AND kind = $2 AND alias = $3 ORDER BY id`, string(d), kind, false)
}

const snapshotColumns = `dialect, client_release, document, imported_by, imported_at`

func scanSnapshot(r row) (s registry.Snapshot, err error) {
	err = r.Scan(&s.Dialect, &s.Release, &s.Document, &s.ImportedBy, timeColumn{&s.ImportedAt})
	return s, err
}

// PutSnapshot implements registry.CatalogueTx.
func (t *tx) PutSnapshot(s registry.Snapshot) error {
	_, err := t.exec(`INSERT INTO snapshots (`+snapshotColumns+`) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (dialect, client_release) DO UPDATE
		SET document = excluded.document, imported_by = excluded.imported_by, imported_at = excluded.imported_at`,
		string(s.Dialect), s.Release, s.Document, s.ImportedBy, micros(s.ImportedAt))
	return err
}

// Snapshot implements registry.CatalogueTx.
func (t *tx) Snapshot(d dialect.Dialect, release string) (registry.Snapshot, error) {
	return one(t, registry.Errorf(registry.NotFound, "no catalogue of %s release %.100q was imported", d, release), scanSnapshot,
		`SELECT `+snapshotColumns+` FROM snapshots WHERE dialect = $1 AND client_release = $2`, string(d), release)
}

// Snapshots implements registry.CatalogueTx.
func (t *tx) Snapshots(d dialect.Dialect) ([]registry.Snapshot, error) {
	return all(t, scanSnapshot, `SELECT dialect, client_release, NULL, imported_by, imported_at FROM snapshots
		WHERE dialect = $1 ORDER BY imported_at, client_release`, string(d))
}
