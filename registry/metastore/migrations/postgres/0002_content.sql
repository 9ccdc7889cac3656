-- Small blobs and manifests lie beside the rows that name them, so that a small artifact costs one commit and no file.
-- Upload ids are signed and say everything else themselves; only those that have ended are kept, until they would have
-- expired.

-- +goose Up
CREATE TABLE small_blobs (
    digest    TEXT COLLATE "C" PRIMARY KEY,
    content   BYTEA  NOT NULL,
    stored_at BIGINT NOT NULL
);

CREATE TABLE closed_uploads (
    id         TEXT COLLATE "C" PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX closed_uploads_by_expiry ON closed_uploads (expires_at);

DROP TABLE uploads;
