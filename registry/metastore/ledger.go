package metastore

import (
	"database/sql"
	"errors"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

const ledgerColumns = `seq, owner, name, version, dialect, kind, manifest, content, tree, created_by, created_at`

func scanLedgerRow(r row) (l registry.LedgerRow, err error) {
	err = r.Scan(&l.Seq, &l.Owner, &l.Name, &l.Version, &l.Dialect, &l.Kind,
		digestColumn{&l.Manifest}, digestColumn{&l.Content}, digestColumn{&l.Tree}, &l.CreatedBy, timeColumn{&l.CreatedAt})
	return l, err
}

// ledgerRow is what the ledger keeps of a version.
func ledgerRow(v registry.Version) registry.LedgerRow {
	return registry.LedgerRow{Owner: v.Owner, Name: v.PackName, Version: v.Version, Dialect: v.Dialect, Kind: v.Kind,
		Manifest: v.Manifest, Content: v.Content, Tree: v.Tree, CreatedBy: v.CreatedBy, CreatedAt: v.CreatedAt}
}

// appendLedger gives the row a number and appends it. One transaction at a time writes, so the numbers rise in the order
// of commits and have no gaps: who reads the ledger after a number misses no row. A row whose number is set and free
// keeps it. Errors: Conflict when the ledger has the version or its key.
func (t *tx) appendLedger(repository, key string, l registry.LedgerRow) (int64, error) {
	var last int64
	if err := t.get(`SELECT COALESCE(MAX(seq), 0) FROM ledger`, nil, &last); err != nil {
		return 0, err
	}
	if l.Seq <= last {
		l.Seq = last + 1
	}
	n, err := t.exec(`INSERT INTO ledger (repository, key, `+ledgerColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT DO NOTHING`,
		repository, key, l.Seq, l.Owner, l.Name, l.Version, string(l.Dialect), l.Kind,
		l.Manifest.String(), l.Content.String(), l.Tree.String(), l.CreatedBy, micros(l.CreatedAt))
	if err == nil && n == 0 {
		err = t.taken(repository, key, l)
	}
	return l.Seq, err
}

// taken says which row of the ledger holds the version back.
func (t *tx) taken(repository, key string, l registry.LedgerRow) error {
	var version string
	var manifest digest.Digest
	var present bool
	err := t.get(`SELECT l.version, l.manifest, v.version IS NOT NULL FROM ledger l LEFT JOIN versions v ON v.seq = l.seq
		WHERE l.repository = $1 AND (l.version = $2 OR l.key = $3) ORDER BY l.version <> $2, l.seq LIMIT 1`,
		[]any{repository, l.Version, key}, &version, digestColumn{&manifest}, &present)
	if err != nil {
		return err
	}
	id, gone := l.Owner+"/"+l.Name, ""
	if !present {
		gone = "; it is no longer here, but a version is never used twice"
	}
	if version != l.Version {
		return conflict("version %.130q of %.300q equals the taken version %.130q (manifest %s)%s", l.Version, id, version, manifest, gone)
	}
	return conflict("version %.130q of %.300q is taken (manifest %s)%s", version, id, manifest, gone)
}

// Ledger implements registry.PackTx.
func (t *tx) Ledger(afterSeq int64, limit int) ([]registry.LedgerRow, error) {
	return all(t, scanLedgerRow, `SELECT `+ledgerColumns+` FROM ledger WHERE seq > $1 ORDER BY seq LIMIT $2`, afterSeq, atMost(limit))
}

// MergeLedger implements registry.PackTx.
func (t *tx) MergeLedger(repository, key string, l registry.LedgerRow) (added bool, err error) {
	var manifest digest.Digest
	err = t.get(`SELECT manifest FROM ledger WHERE repository = $1 AND version = $2`,
		[]any{repository, l.Version}, digestColumn{&manifest})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		_, err = t.appendLedger(repository, key, l)
		return err == nil, err
	case err != nil:
		return false, err
	case manifest != l.Manifest:
		return false, conflict("version %.130q of %.300q has the manifest %s here and %s in the ledger that is merged",
			l.Version, l.Owner+"/"+l.Name, manifest, l.Manifest)
	}
	return false, nil
}
