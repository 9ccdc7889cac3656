package metastore

import (
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

const revocationColumns = `seq, repository, pack, version, content, tree, manifest, layer, reason, revoked_by, at`

func scanRevocation(r row) (v registry.Revocation, err error) {
	err = r.Scan(&v.Seq, &v.Repository, &v.Pack, &v.Version, digestColumn{&v.Content}, digestColumn{&v.Tree}, digestColumn{&v.Manifest},
		digestColumn{&v.Layer}, &v.Reason, &v.By, timeColumn{&v.At})
	return v, err
}

// InsertRevocation implements registry.RevocationTx. Transactions that write follow one another, so numbers follow too.
func (t *tx) InsertRevocation(v registry.Revocation) (registry.Revocation, error) {
	last, err := t.LastRevocation()
	if err != nil {
		return v, err
	}
	v.Seq = last + 1
	err = t.insert(conflict("%s@%s is revoked already", v.Pack, v.Version),
		`INSERT INTO revocations (`+revocationColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING`,
		v.Seq, v.Repository, v.Pack, v.Version, v.Content.String(), v.Tree.String(), v.Manifest.String(), v.Layer.String(), v.Reason, v.By, micros(v.At))
	if err != nil {
		return v, err
	}
	return v, t.change(noVersion(v.Repository, v.Version), `UPDATE versions SET enabled = 0, reason = $3, revoked_at = $4 WHERE repository = $1 AND version = $2`,
		v.Repository, v.Version, v.Reason, micros(v.At))
}

// Revocations implements registry.RevocationTx.
func (t *tx) Revocations(afterSeq int64, limit int) ([]registry.Revocation, error) {
	return all(t, scanRevocation, `SELECT `+revocationColumns+` FROM revocations WHERE seq > $1 ORDER BY seq LIMIT $2`, afterSeq, atMost(limit))
}

// LastRevocation implements registry.RevocationTx.
func (t *tx) LastRevocation() (seq int64, err error) {
	err = t.get(`SELECT COALESCE(MAX(seq), 0) FROM revocations WHERE seq > $1`, []any{0}, &seq)
	return seq, err
}

// RevocationByTree implements registry.RevocationTx.
func (t *tx) RevocationByTree(tree digest.Digest) (registry.Revocation, error) {
	return one(t, registry.Errorf(registry.NotFound, "no revoked version has the tree digest %s", tree), scanRevocation,
		`SELECT `+revocationColumns+` FROM revocations WHERE tree = $1 ORDER BY seq LIMIT 1`, tree.String())
}
