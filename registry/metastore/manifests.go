package metastore

import (
	"encoding/json"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

func noManifest(repository string, d digest.Digest) *registry.Error {
	return registry.Errorf(registry.ManifestUnknown, "repository %.300q has no manifest %s", repository, d)
}

const manifestColumns = `repository, digest, media_type, size, artifact_type, subject, annotations, pushed_at`

// scanManifest reads a manifest without its references.
func scanManifest(r row) (m registry.Manifest, err error) {
	var annotations []byte
	err = r.Scan(&m.Repository, digestColumn{&m.Digest}, &m.MediaType, &m.Size, &m.ArtifactType,
		digestColumn{&m.Subject}, &annotations, timeColumn{&m.PushedAt})
	if err == nil && annotations != nil {
		err = json.Unmarshal(annotations, &m.Annotations)
	}
	return m, err
}

// PutManifest implements registry.ContentTx. A manifest that is there keeps its time. Errors: ErrNameUnknown.
func (t *tx) PutManifest(m registry.Manifest) error {
	var annotations []byte
	if m.Annotations != nil {
		var err error
		if annotations, err = json.Marshal(m.Annotations); err != nil {
			return err
		}
	}
	n, err := t.exec(`INSERT INTO manifests (`+manifestColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
		m.Repository, m.Digest.String(), m.MediaType, m.Size, m.ArtifactType, m.Subject.String(), annotations, micros(m.PushedAt))
	if err != nil {
		return t.named(err, noRepository(m.Repository))
	}
	if n == 0 { // pushed again: a collection begins to wait anew
		_, err := t.exec(`UPDATE manifests SET loose_since = 0 WHERE repository = $1 AND digest = $2 AND loose_since <> 0`, m.Repository, m.Digest.String())
		return err
	}
	for position, d := range m.References {
		if _, err := t.exec(`INSERT INTO manifest_references (repository, manifest, position, digest) VALUES ($1, $2, $3, $4)`,
			m.Repository, m.Digest.String(), position, d.String()); err != nil {
			return err
		}
	}
	return nil
}

// Manifest implements registry.ContentTx.
func (t *tx) Manifest(repository string, d digest.Digest) (registry.Manifest, error) {
	m, err := one(t, noManifest(repository, d), scanManifest,
		`SELECT `+manifestColumns+` FROM manifests WHERE repository = $1 AND digest = $2`, repository, d.String())
	if err != nil {
		return m, err
	}
	m.References, err = all(t, func(r row) (to digest.Digest, err error) {
		err = r.Scan(digestColumn{&to})
		return to, err
	}, `SELECT digest FROM manifest_references WHERE repository = $1 AND manifest = $2 ORDER BY position`, repository, d.String())
	return m, err
}

// FindManifest implements registry.ContentTx.
func (t *tx) FindManifest(repository string, ref registry.Reference) (registry.Manifest, error) {
	if ref.Tag == "" {
		return one(t, noManifest(repository, ref.Digest), scanManifest,
			`SELECT `+manifestColumns+` FROM manifests WHERE repository = $1 AND digest = $2`, repository, ref.Digest.String())
	}
	return one(t, noTag(repository, ref.Tag), scanManifest, `SELECT m.repository, m.digest, m.media_type, m.size, m.artifact_type,
		m.subject, m.annotations, m.pushed_at FROM tags t JOIN manifests m ON m.repository = t.repository AND m.digest = t.digest
		WHERE t.repository = $1 AND t.name = $2`, repository, ref.Tag)
}

// DeleteManifest implements registry.ContentTx.
func (t *tx) DeleteManifest(repository string, d digest.Digest) error {
	return t.change(noManifest(repository, d), `DELETE FROM manifests WHERE repository = $1 AND digest = $2`, repository, d.String())
}

// Referrers implements registry.ContentTx.
func (t *tx) Referrers(repository string, subject digest.Digest, artifactType string, after digest.Digest, yield func(registry.Manifest) bool) error {
	return each(t, scanManifest, yield, `SELECT `+manifestColumns+` FROM manifests
		WHERE repository = $1 AND subject = $2 AND subject <> '' AND (artifact_type = $3 OR $3 = '') AND digest > $4 ORDER BY digest`,
		repository, subject.String(), artifactType, after.String())
}
