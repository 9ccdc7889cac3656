package metastore

import (
	"errors"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

func noRepository(name string) *registry.Error {
	return registry.UnknownRepository(name)
}

const repositoryColumns = `name, owner, pack_name, pack_fold, pack_kind, created_at`

func scanRepository(r row) (repo registry.Repository, err error) {
	err = r.Scan(&repo.Name, &repo.Owner, &repo.PackName, &repo.PackFold, &repo.PackKind, timeColumn{&repo.CreatedAt})
	return repo, err
}

// Repository implements registry.ContentTx.
func (t *tx) Repository(name string) (registry.Repository, error) {
	return one(t, noRepository(name), scanRepository, `SELECT `+repositoryColumns+` FROM repositories WHERE name = $1`, name)
}

// EnsureRepository implements registry.ContentTx.
func (t *tx) EnsureRepository(r registry.Repository) error {
	_, err := t.exec(`INSERT INTO repositories (`+repositoryColumns+`) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (name) DO NOTHING`,
		r.Name, r.Owner, r.PackName, r.PackFold, r.PackKind, micros(r.CreatedAt))
	return err
}

// SetPackRepository implements registry.ContentTx. The look at the others gives the conflict its message; the unique
// index is what holds.
func (t *tx) SetPackRepository(name, packName, fold, kind string) error {
	n, err := t.exec(`UPDATE repositories SET pack_name = $2, pack_fold = $3, pack_kind = $4 WHERE name = $1 AND NOT EXISTS
		(SELECT 1 FROM repositories other WHERE other.owner = repositories.owner AND other.pack_fold = $3 AND $3 <> '' AND other.name <> $1)`,
		name, packName, fold, kind)
	if err != nil || n == 1 {
		return err
	}
	r, err := t.Repository(name)
	if err != nil {
		return err
	}
	taken, err := t.PackByFold(r.Owner, fold)
	if err != nil {
		return err
	}
	return conflict("pack name %.130q is taken for %.130q, which %s has already", packName, taken.PackName, r.Owner)
}

// PackByFold implements registry.ContentTx.
func (t *tx) PackByFold(owner, fold string) (registry.Repository, error) {
	return one(t, registry.Errorf(registry.NameUnknown, "%.130q has no pack whose name folds to %.130q", owner, fold), scanRepository,
		`SELECT `+repositoryColumns+` FROM repositories WHERE owner = $1 AND pack_fold = $2 AND pack_fold <> ''`, owner, fold)
}

// Repositories implements registry.ContentTx.
func (t *tx) Repositories(after string, limit int) ([]string, error) {
	return all(t, text, `SELECT name FROM repositories r WHERE name > $1 AND `+hasManifest+` ORDER BY name LIMIT $2`, after, atMost(limit))
}

// hasManifest is the condition that the repository r can be seen.
const hasManifest = `EXISTS (SELECT 1 FROM manifests m WHERE m.repository = r.name)`

// RepositoryVisible implements registry.ContentTx.
func (t *tx) RepositoryVisible(name string) (bool, error) {
	_, err := one(t, noRepository(name), text, `SELECT name FROM repositories r WHERE name = $1 AND `+hasManifest, name)
	if errors.Is(err, registry.ErrNameUnknown) {
		return false, nil
	}
	return err == nil, err
}

// LinkBlob implements registry.ContentTx. A link that is there becomes as young as a new one. Errors: ErrNameUnknown.
func (t *tx) LinkBlob(repository string, b digest.Descriptor, at time.Time) error {
	_, err := t.exec(`INSERT INTO repository_blobs (repository, digest, media_type, size, linked_at)
		VALUES ($1, $2, $3, $4, $5) ON CONFLICT (repository, digest) DO UPDATE SET linked_at = excluded.linked_at`, repository, b.Digest.String(), b.MediaType, b.Size, micros(at))
	return t.named(err, noRepository(repository))
}

func noBlob(repository string, d digest.Digest) *registry.Error {
	return registry.UnknownBlob(repository, d)
}

// LinkedBlob implements registry.ContentTx.
func (t *tx) LinkedBlob(repository string, d digest.Digest) (digest.Descriptor, error) {
	return one(t, noBlob(repository, d), func(r row) (b digest.Descriptor, err error) {
		b.Digest = d
		err = r.Scan(&b.MediaType, &b.Size)
		return b, err
	}, `SELECT media_type, size FROM repository_blobs WHERE repository = $1 AND digest = $2`, repository, d.String())
}

// HeldBlob implements registry.ContentTx.
func (t *tx) HeldBlob(repository string, d digest.Digest) (registry.HeldBlob, error) {
	return one(t, noBlob(repository, d), func(r row) (b registry.HeldBlob, err error) {
		b.Digest = d
		err = r.Scan(&b.MediaType, &b.Size, &b.Revoked, &b.Reason)
		return b, err
	}, `SELECT b.media_type, b.size, COALESCE(v.pack || '@' || v.version, ''), COALESCE(v.reason, '') FROM repository_blobs b
		LEFT JOIN revocations v ON v.repository = b.repository AND v.layer = b.digest WHERE b.repository = $1 AND b.digest = $2 LIMIT 1`, repository, d.String())
}

// UnlinkBlob implements registry.ContentTx.
func (t *tx) UnlinkBlob(repository string, d digest.Digest) error {
	return t.change(noBlob(repository, d), `DELETE FROM repository_blobs WHERE repository = $1 AND digest = $2`, repository, d.String())
}

// BlobRepositories implements registry.ContentTx.
func (t *tx) BlobRepositories(d digest.Digest) ([]string, error) {
	return all(t, text, `SELECT repository FROM repository_blobs WHERE digest = $1 ORDER BY repository`, d.String())
}

// BlobReferences implements registry.ContentTx. A manifest that names d more than once counts once.
func (t *tx) BlobReferences(repository string, d digest.Digest) (n int, err error) {
	err = t.get(`SELECT (SELECT COUNT(DISTINCT manifest) FROM manifest_references WHERE repository = $1 AND digest = $2)
		+ (SELECT COUNT(*) FROM suite_files WHERE repository = $1 AND digest = $2)`,
		[]any{repository, d.String()}, &n)
	return n, err
}

// PutTag implements registry.ContentTx. Errors: ErrManifestUnknown when the repository has no such manifest.
func (t *tx) PutTag(tag registry.Tag) error {
	_, err := t.exec(`INSERT INTO tags (repository, name, digest, updated_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (repository, name) DO UPDATE SET digest = excluded.digest, updated_at = excluded.updated_at`,
		tag.Repository, tag.Name, tag.Digest.String(), micros(tag.UpdatedAt))
	return t.named(err, noManifest(tag.Repository, tag.Digest))
}

func noTag(repository, name string) *registry.Error {
	return registry.Errorf(registry.ManifestUnknown, "repository %.300q has no tag %.130q", repository, name)
}

// Tag implements registry.ContentTx.
func (t *tx) Tag(repository, name string) (registry.Tag, error) {
	return one(t, noTag(repository, name), func(r row) (tag registry.Tag, err error) {
		tag.Repository, tag.Name = repository, name
		err = r.Scan(digestColumn{&tag.Digest}, timeColumn{&tag.UpdatedAt})
		return tag, err
	}, `SELECT digest, updated_at FROM tags WHERE repository = $1 AND name = $2`, repository, name)
}

// DeleteTag implements registry.ContentTx.
func (t *tx) DeleteTag(repository, name string) error {
	return t.change(noTag(repository, name), `DELETE FROM tags WHERE repository = $1 AND name = $2`, repository, name)
}

// Tags implements registry.ContentTx.
func (t *tx) Tags(repository, after string, limit int) ([]string, error) {
	return all(t, text, `SELECT name FROM tags WHERE repository = $1 AND name > $2 ORDER BY name LIMIT $3`,
		repository, after, atMost(limit))
}
