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

-- Rows that are little more than their key lie in the key's own tree: half the pages for each that is written.
CREATE TABLE linked (
    repository TEXT    NOT NULL REFERENCES repositories (name),
    digest     TEXT    NOT NULL,
    media_type TEXT    NOT NULL,
    size       INTEGER NOT NULL,
    linked_at  INTEGER NOT NULL,
    PRIMARY KEY (repository, digest)
) STRICT, WITHOUT ROWID;
INSERT INTO linked SELECT repository, digest, media_type, size, linked_at FROM repository_blobs;
DROP TABLE repository_blobs;
ALTER TABLE linked RENAME TO repository_blobs;
CREATE INDEX repository_blobs_by_digest ON repository_blobs (digest, repository);

CREATE TABLE named (
    repository TEXT    NOT NULL,
    manifest   TEXT    NOT NULL,
    position   INTEGER NOT NULL,
    digest     TEXT    NOT NULL,
    PRIMARY KEY (repository, manifest, position),
    FOREIGN KEY (repository, manifest) REFERENCES manifests (repository, digest) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO named SELECT repository, manifest, position, digest FROM manifest_references;
DROP TABLE manifest_references;
ALTER TABLE named RENAME TO manifest_references;
CREATE INDEX manifest_references_by_digest ON manifest_references (repository, digest, manifest);

CREATE TABLE pointing (
    repository TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (repository, name),
    FOREIGN KEY (repository, digest) REFERENCES manifests (repository, digest) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO pointing SELECT repository, name, digest, updated_at FROM tags;
DROP TABLE tags;
ALTER TABLE pointing RENAME TO tags;
CREATE INDEX tags_by_digest ON tags (repository, digest);
