package metastore

import (
	"database/sql"
	"errors"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry"
)

const snapshotColumns = `dialect, client_release, document, imported_by, imported_at`

func scanSnapshot(r row) (s registry.Snapshot, err error) {
	err = r.Scan(&s.Dialect, &s.Release, &s.Document, &s.ImportedBy, timeColumn{&s.ImportedAt})
	return s, err
}

// PutSnapshot implements registry.PackTx.
func (t *tx) PutSnapshot(s registry.Snapshot) error {
	_, err := t.exec(`INSERT INTO snapshots (`+snapshotColumns+`) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (dialect, client_release) DO UPDATE
		SET document = excluded.document, imported_by = excluded.imported_by, imported_at = excluded.imported_at`,
		string(s.Dialect), s.Release, s.Document, s.ImportedBy, micros(s.ImportedAt))
	return err
}

// Snapshot implements registry.PackTx.
func (t *tx) Snapshot(d dialect.Dialect, release string) (registry.Snapshot, error) {
	return one(t, registry.Errorf(registry.NotFound, "no catalogue of %s release %.100q was imported", d, release), scanSnapshot,
		`SELECT `+snapshotColumns+` FROM snapshots WHERE dialect = $1 AND client_release = $2`, string(d), release)
}

// Snapshots implements registry.PackTx.
func (t *tx) Snapshots(d dialect.Dialect) ([]registry.Snapshot, error) {
	return all(t, scanSnapshot, `SELECT `+snapshotColumns+` FROM snapshots WHERE dialect = $1 ORDER BY imported_at, client_release`, string(d))
}

// Activation implements registry.PackTx.
func (t *tx) Activation(kind string) (registry.Activation, error) {
	a := registry.Activation{Kind: kind}
	err := t.get(`SELECT generation, reference FROM activations WHERE kind = $1`, []any{kind}, &a.Generation, (*[]byte)(&a.Reference))
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return a, err
}

// PutActivation implements registry.PackTx. It stores a as it is: the caller counts a.Generation.
func (t *tx) PutActivation(a registry.Activation, expected int64) error {
	n, err := t.exec(`UPDATE activations SET generation = $2, reference = $3 WHERE kind = $1 AND generation = $4`,
		a.Kind, a.Generation, []byte(a.Reference), expected)
	if err == nil && n == 0 && expected == 0 {
		n, err = t.exec(`INSERT INTO activations (kind, generation, reference) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			a.Kind, a.Generation, []byte(a.Reference))
	}
	if err != nil || n == 1 {
		return err
	}
	found, err := t.Activation(a.Kind)
	if err != nil {
		return err
	}
	return registry.Errorf(registry.Precondition, "the active %.60q has generation %d by now, expected was %d: read it again", a.Kind, found.Generation, expected)
}
