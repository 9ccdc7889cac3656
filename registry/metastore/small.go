package metastore

import (
	"errors"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

func noSmall(d digest.Digest) *registry.Error {
	return registry.Errorf(registry.BlobUnknown, "there is no small blob %s", d)
}

// PutSmall implements registry.ContentTx.
func (t *tx) PutSmall(d digest.Digest, content []byte, at time.Time) error {
	if content == nil {
		content = []byte{} // an empty blob has a row too
	}
	_, err := t.exec(`INSERT INTO small_blobs (digest, content, stored_at) VALUES ($1, $2, $3)
		ON CONFLICT (digest) DO UPDATE SET content = excluded.content, stored_at = excluded.stored_at`, d.String(), content, micros(at))
	return err
}

// Small implements registry.ContentTx.
func (t *tx) Small(d digest.Digest) ([]byte, error) {
	return one(t, noSmall(d), func(r row) (content []byte, err error) {
		err = r.Scan(&content)
		return content, err
	}, `SELECT content FROM small_blobs WHERE digest = $1`, d.String())
}

const storedColumns = `digest, length(content), stored_at`

func scanStored(r row) (b registry.StoredBlob, err error) {
	err = r.Scan(digestColumn{&b.Digest}, &b.Size, timeColumn{&b.StoredAt})
	return b, err
}

// StatSmall implements registry.ContentTx.
func (t *tx) StatSmall(d digest.Digest) (registry.StoredBlob, error) {
	return one(t, noSmall(d), scanStored, `SELECT `+storedColumns+` FROM small_blobs WHERE digest = $1`, d.String())
}

// DeleteSmall implements registry.ContentTx.
func (t *tx) DeleteSmall(d digest.Digest) error {
	_, err := t.exec(`DELETE FROM small_blobs WHERE digest = $1`, d.String())
	return err
}

// SmallBlobs implements registry.ContentTx.
func (t *tx) SmallBlobs(after digest.Digest, limit int) ([]registry.StoredBlob, error) {
	return all(t, scanStored, `SELECT `+storedColumns+` FROM small_blobs WHERE digest > $1 ORDER BY digest LIMIT $2`,
		after.String(), atMost(limit))
}

// CloseUpload implements registry.ContentTx.
func (t *tx) CloseUpload(id string, until time.Time) error {
	_, err := t.exec(`INSERT INTO closed_uploads (id, expires_at) VALUES ($1, $2) ON CONFLICT DO NOTHING`, id, micros(until))
	return err
}

// UploadClosed implements registry.ContentTx.
func (t *tx) UploadClosed(id string) (bool, error) {
	_, err := one(t, registry.ErrNotFound, text, `SELECT id FROM closed_uploads WHERE id = $1`, id)
	if errors.Is(err, registry.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// ForgetClosedUploads implements registry.ContentTx.
func (t *tx) ForgetClosedUploads(now time.Time) error {
	_, err := t.exec(`DELETE FROM closed_uploads WHERE expires_at <= $1`, micros(now))
	return err
}
