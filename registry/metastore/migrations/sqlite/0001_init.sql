-- The first schema. Names and digests are TEXT, which SQLite compares bytewise; times are microseconds since 1970 with
-- 0 for "no time"; documents are the bytes that came, as BLOB. Tables are STRICT, so a column holds its type only.

-- +goose Up
CREATE TABLE accounts (
    name          TEXT    PRIMARY KEY,
    role          TEXT    NOT NULL CHECK (role IN ('admin', 'operator', 'auditor', 'viewer')),
    email         TEXT    NOT NULL,
    password_hash TEXT    NOT NULL,
    disabled      INTEGER NOT NULL,
    max_gpus      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    quota         BLOB
) STRICT;

CREATE TABLE tokens (
    id         TEXT    PRIMARY KEY,
    account    TEXT    NOT NULL REFERENCES accounts (name),
    hash       BLOB    NOT NULL UNIQUE,
    label      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL
) STRICT;
CREATE INDEX tokens_of_account ON tokens (account, created_at);

CREATE TABLE repositories (
    name       TEXT    PRIMARY KEY,
    owner      TEXT    NOT NULL,
    pack_name  TEXT    NOT NULL,
    pack_fold  TEXT    NOT NULL,
    pack_kind  TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX repositories_by_fold ON repositories (owner, pack_fold) WHERE pack_fold <> '';

CREATE TABLE repository_blobs (
    repository TEXT    NOT NULL REFERENCES repositories (name),
    digest     TEXT    NOT NULL,
    media_type TEXT    NOT NULL,
    size       INTEGER NOT NULL,
    linked_at  INTEGER NOT NULL,
    PRIMARY KEY (repository, digest)
) STRICT;
CREATE INDEX repository_blobs_by_digest ON repository_blobs (digest, repository);

CREATE TABLE manifests (
    repository    TEXT    NOT NULL REFERENCES repositories (name),
    digest        TEXT    NOT NULL,
    media_type    TEXT    NOT NULL,
    size          INTEGER NOT NULL,
    artifact_type TEXT    NOT NULL,
    subject       TEXT    NOT NULL,
    annotations   BLOB,
    pushed_at     INTEGER NOT NULL,
    PRIMARY KEY (repository, digest)
) STRICT;
CREATE INDEX manifests_by_subject ON manifests (repository, subject, digest) WHERE subject <> '';

-- What a manifest names, in document order; a digest may come more than once.
CREATE TABLE manifest_references (
    repository TEXT    NOT NULL,
    manifest   TEXT    NOT NULL,
    position   INTEGER NOT NULL,
    digest     TEXT    NOT NULL,
    PRIMARY KEY (repository, manifest, position),
    FOREIGN KEY (repository, manifest) REFERENCES manifests (repository, digest) ON DELETE CASCADE
) STRICT;
CREATE INDEX manifest_references_by_digest ON manifest_references (repository, digest, manifest);

CREATE TABLE tags (
    repository TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (repository, name),
    FOREIGN KEY (repository, digest) REFERENCES manifests (repository, digest) ON DELETE CASCADE
) STRICT;
CREATE INDEX tags_by_digest ON tags (repository, digest);

CREATE TABLE uploads (
    id         TEXT    PRIMARY KEY,
    repository TEXT    NOT NULL,
    account    TEXT    NOT NULL,
    started_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX uploads_by_expiry ON uploads (expires_at);

-- What was ever published. Rows are never changed and never removed, so that no version is used twice.
CREATE TABLE ledger (
    seq        INTEGER PRIMARY KEY,
    repository TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    owner      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    dialect    TEXT    NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    kind       TEXT    NOT NULL,
    manifest   TEXT    NOT NULL,
    content    TEXT    NOT NULL,
    tree       TEXT    NOT NULL,
    created_by TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    UNIQUE (repository, version),
    UNIQUE (repository, key)
) STRICT;

-- +goose StatementBegin
CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE ON ledger
BEGIN
    SELECT RAISE(ABORT, 'a row of the ledger is never changed');
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER ledger_is_never_removed BEFORE DELETE ON ledger
BEGIN
    SELECT RAISE(ABORT, 'a row of the ledger is never removed');
END;
-- +goose StatementEnd

CREATE TABLE versions (
    repository        TEXT    NOT NULL REFERENCES repositories (name),
    version           TEXT    NOT NULL,
    key               TEXT    NOT NULL,
    seq               INTEGER NOT NULL UNIQUE REFERENCES ledger (seq),
    owner             TEXT    NOT NULL,
    pack_name         TEXT    NOT NULL,
    dialect           TEXT    NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    kind              TEXT    NOT NULL,
    manifest          TEXT    NOT NULL,
    content           TEXT    NOT NULL,
    tree              TEXT    NOT NULL,
    layer_media_type  TEXT    NOT NULL,
    layer_digest      TEXT    NOT NULL,
    layer_size        INTEGER NOT NULL,
    config_media_type TEXT    NOT NULL,
    config_digest     TEXT    NOT NULL,
    config_size       INTEGER NOT NULL,
    summary           TEXT    NOT NULL,
    document          BLOB,
    catalogue         BLOB,
    enabled           INTEGER NOT NULL,
    created_by        TEXT    NOT NULL,
    created_at        INTEGER NOT NULL,
    files             INTEGER NOT NULL,
    bytes             INTEGER NOT NULL,
    PRIMARY KEY (repository, version),
    UNIQUE (repository, key)
) STRICT;
CREATE INDEX versions_by_time ON versions (repository, created_at, seq);
CREATE INDEX versions_by_manifest ON versions (repository, manifest);
CREATE INDEX versions_by_content ON versions (content);

CREATE TABLE recipe_ids (
    dialect TEXT NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    id      TEXT NOT NULL,
    pack    TEXT NOT NULL,
    PRIMARY KEY (dialect, id)
) STRICT;

CREATE TABLE snapshots (
    dialect        TEXT    NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    client_release TEXT    NOT NULL,
    document       BLOB,
    imported_by    TEXT    NOT NULL,
    imported_at    INTEGER NOT NULL,
    PRIMARY KEY (dialect, client_release)
) STRICT;

CREATE TABLE activations (
    kind       TEXT    PRIMARY KEY,
    generation INTEGER NOT NULL,
    reference  BLOB
) STRICT;

CREATE TABLE jobs (
    id                 TEXT    PRIMARY KEY,
    account            TEXT    NOT NULL REFERENCES accounts (name),
    dialect            TEXT    NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    exp                TEXT    NOT NULL,
    name               TEXT    NOT NULL,
    project            TEXT    NOT NULL,
    status             TEXT    NOT NULL,
    gpus               INTEGER NOT NULL,
    spec               BLOB,
    spec_digest        TEXT    NOT NULL,
    package_media_type TEXT    NOT NULL,
    package_digest     TEXT    NOT NULL,
    package_size       INTEGER NOT NULL,
    meta               BLOB,
    decision           BLOB,
    receipt            BLOB,
    key                TEXT    NOT NULL,
    submitted_at       INTEGER NOT NULL,
    lease_until        INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX jobs_by_key ON jobs (account, key) WHERE key <> '';
CREATE INDEX jobs_by_time ON jobs (submitted_at, id);
CREATE INDEX jobs_of_account ON jobs (account, submitted_at, id);
CREATE INDEX jobs_by_lease ON jobs (account, lease_until);

CREATE TABLE package_uploads (
    id              TEXT    PRIMARY KEY,
    account         TEXT    NOT NULL,
    token_hash      BLOB    NOT NULL,
    want_media_type TEXT    NOT NULL,
    want_digest     TEXT    NOT NULL,
    want_size       INTEGER NOT NULL,
    stored          INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX package_uploads_by_expiry ON package_uploads (expires_at);

CREATE TABLE previews (
    id         TEXT    PRIMARY KEY,
    account    TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    document   BLOB,
    expires_at INTEGER NOT NULL,
    job_id     TEXT    NOT NULL
) STRICT;
CREATE INDEX previews_by_expiry ON previews (expires_at);

CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    account TEXT    NOT NULL,
    action  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    outcome TEXT    NOT NULL,
    detail  TEXT    NOT NULL
) STRICT;

CREATE TABLE settings (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;
