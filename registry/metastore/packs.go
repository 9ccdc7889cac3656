package metastore

import (
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

const (
	versionHead = `repository, version, key, owner, pack_name, dialect, kind, manifest, content, tree,
	layer_media_type, layer_digest, layer_size, config_media_type, config_digest, config_size, `
	versionTail    = `, enabled, created_by, created_at, files, bytes, reason, revoked_at`
	versionColumns = versionHead + `summary, document, catalogue` + versionTail
	// briefColumns leave out what can be large, for lists.
	briefColumns = versionHead + `'', NULL, NULL` + versionTail
)

// versionRow is a version with its place in the order of publishing.
type versionRow struct {
	registry.Version
	seq int64
}

func scanVersionRow(r row) (v versionRow, err error) {
	err = r.Scan(&v.Repository, &v.Version.Version, &v.Key, &v.Owner, &v.PackName, &v.Dialect, &v.Kind,
		digestColumn{&v.Manifest}, digestColumn{&v.Content}, digestColumn{&v.Tree},
		&v.Layer.MediaType, digestColumn{&v.Layer.Digest}, &v.Layer.Size,
		&v.Config.MediaType, digestColumn{&v.Config.Digest}, &v.Config.Size,
		&v.Summary, (*[]byte)(&v.Document), (*[]byte)(&v.Catalogue), &v.Enabled, &v.CreatedBy, timeColumn{&v.CreatedAt},
		&v.Files, &v.Bytes, &v.Reason, timeColumn{&v.RevokedAt}, &v.seq)
	return v, err
}

func scanVersion(r row) (registry.Version, error) {
	v, err := scanVersionRow(r)
	return v.Version, err
}

// InsertVersion implements registry.PackTx. The ledger decides, then the version's own constraints. Errors besides
// Conflict: ErrNameUnknown when the repository does not exist.
func (t *tx) InsertVersion(v registry.Version) error {
	seq, err := t.appendLedger(v.Repository, v.Key, ledgerRow(v))
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO versions (`+versionColumns+`, seq) VALUES
		($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)`,
		v.Repository, v.Version, v.Key, v.Owner, v.PackName, string(v.Dialect), v.Kind,
		v.Manifest.String(), v.Content.String(), v.Tree.String(),
		v.Layer.MediaType, v.Layer.Digest.String(), v.Layer.Size, v.Config.MediaType, v.Config.Digest.String(), v.Config.Size,
		v.Summary, []byte(v.Document), []byte(v.Catalogue), v.Enabled, v.CreatedBy, micros(v.CreatedAt), v.Files, v.Bytes, v.Reason, micros(v.RevokedAt), seq)
	return t.named(err, noRepository(v.Repository))
}

func noVersion(repository, version string) *registry.Error {
	return registry.Errorf(registry.NotFound, "there is no version %.130q of %.300q", version, repository)
}

// Version implements registry.PackTx.
func (t *tx) Version(repository, version string) (registry.Version, error) {
	return one(t, noVersion(repository, version), scanVersion,
		`SELECT `+versionColumns+`, seq FROM versions WHERE repository = $1 AND version = $2`, repository, version)
}

// Versions implements registry.PackTx. Of two with the same time the one that was committed first comes first.
func (t *tx) Versions(repository string) ([]registry.Version, error) {
	return all(t, scanVersion,
		`SELECT `+briefColumns+`, seq FROM versions WHERE repository = $1 ORDER BY created_at, seq`, repository)
}

// LastVersions implements registry.PackTx.
func (t *tx) LastVersions(repository string, limit int) ([]registry.Version, error) {
	return all(t, scanVersion,
		`SELECT `+briefColumns+`, seq FROM versions WHERE repository = $1 ORDER BY created_at DESC, seq DESC LIMIT $2`, repository, atMost(limit))
}

// versionPage is how many versions AllVersions holds in memory at a time.
const versionPage = 200

// AllVersions implements registry.PackTx. yield may use the transaction; its error ends the listing.
func (t *tx) AllVersions(yield func(registry.Version) error) error {
	last := versionRow{}
	for {
		page, err := all(t, scanVersionRow, `SELECT `+briefColumns+`, seq FROM versions
			WHERE (repository, created_at, seq) > ($1, $2, $3) ORDER BY repository, created_at, seq LIMIT $4`,
			last.Repository, micros(last.CreatedAt), last.seq, versionPage)
		if err != nil {
			return err
		}
		for _, v := range page {
			if err := yield(v.Version); err != nil {
				return err
			}
		}
		if len(page) < versionPage {
			return nil
		}
		last = page[len(page)-1]
	}
}

// SetEnabled implements registry.PackTx.
func (t *tx) SetEnabled(repository, version string, enabled bool, reason string) (int, error) {
	n, err := t.exec(`UPDATE versions SET enabled = $3, reason = $4 WHERE repository = $1 AND (version = $2 OR $2 = '') AND revoked_at = 0`,
		repository, version, enabled, reason)
	return int(n), err
}

// VersionsByContent implements registry.PackTx. In the order of publishing.
func (t *tx) VersionsByContent(content digest.Digest) ([]registry.Version, error) {
	return all(t, scanVersion, `SELECT `+briefColumns+`, seq FROM versions WHERE content = $1 ORDER BY seq`, content.String())
}

// VersionByManifest implements registry.PackTx.
func (t *tx) VersionByManifest(repository string, d digest.Digest) (registry.Version, error) {
	return one(t, registry.Errorf(registry.NotFound, "no version of %.300q has the manifest %s", repository, d), scanVersion,
		`SELECT `+versionColumns+`, seq FROM versions WHERE repository = $1 AND manifest = $2 ORDER BY seq LIMIT 1`, repository, d.String())
}
