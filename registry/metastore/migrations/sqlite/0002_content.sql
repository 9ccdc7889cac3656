-- Small blobs and manifests lie beside the rows that name them, so that a small artifact costs one commit and no file.
-- Upload ids are signed and say everything else themselves; only those that have ended are kept, until they would have
-- expired.

-- +goose Up
CREATE TABLE small_blobs (
    digest    TEXT    PRIMARY KEY,
    content   BLOB    NOT NULL,
    stored_at INTEGER NOT NULL
) STRICT;

CREATE TABLE closed_uploads (
    id         TEXT    PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX closed_uploads_by_expiry ON closed_uploads (expires_at);

DROP TABLE uploads;
