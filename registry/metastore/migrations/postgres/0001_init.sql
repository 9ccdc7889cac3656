-- The first schema, as SQLite's: the same tables, columns and constraints. Text compares bytewise whatever the database's
-- locale, booleans are 0 and 1 in a BIGINT, and rows that are numbered get their number from the statement that inserts them,
-- since a sequence leaves gaps.

-- +goose Up
CREATE TABLE accounts (
    name          TEXT COLLATE "C" PRIMARY KEY,
    role          TEXT COLLATE "C" NOT NULL CHECK (role IN ('admin', 'operator', 'auditor', 'viewer')),
    email         TEXT COLLATE "C" NOT NULL,
    password_hash TEXT COLLATE "C" NOT NULL,
    disabled      BIGINT NOT NULL,
    max_gpus      BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    quota         BYTEA
);

CREATE TABLE tokens (
    id         TEXT COLLATE "C" PRIMARY KEY,
    account    TEXT COLLATE "C" NOT NULL REFERENCES accounts (name),
    hash       BYTEA NOT NULL UNIQUE,
    label      TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL
);
CREATE INDEX tokens_of_account ON tokens (account, created_at);

CREATE TABLE repositories (
    name       TEXT COLLATE "C" PRIMARY KEY,
    owner      TEXT COLLATE "C" NOT NULL,
    pack_name  TEXT COLLATE "C" NOT NULL,
    pack_fold  TEXT COLLATE "C" NOT NULL,
    pack_kind  TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX repositories_by_fold ON repositories (owner, pack_fold) WHERE pack_fold <> '';

CREATE TABLE repository_blobs (
    repository TEXT COLLATE "C" NOT NULL REFERENCES repositories (name),
    digest     TEXT COLLATE "C" NOT NULL,
    media_type TEXT COLLATE "C" NOT NULL,
    size       BIGINT NOT NULL,
    linked_at  BIGINT NOT NULL,
    PRIMARY KEY (repository, digest)
);
CREATE INDEX repository_blobs_by_digest ON repository_blobs (digest, repository);

CREATE TABLE manifests (
    repository    TEXT COLLATE "C" NOT NULL REFERENCES repositories (name),
    digest        TEXT COLLATE "C" NOT NULL,
    media_type    TEXT COLLATE "C" NOT NULL,
    size          BIGINT NOT NULL,
    artifact_type TEXT COLLATE "C" NOT NULL,
    subject       TEXT COLLATE "C" NOT NULL,
    annotations   BYTEA,
    pushed_at     BIGINT NOT NULL,
    PRIMARY KEY (repository, digest)
);
CREATE INDEX manifests_by_subject ON manifests (repository, subject, digest) WHERE subject <> '';

-- What a manifest names, in document order; a digest may come more than once.
CREATE TABLE manifest_references (
    repository TEXT COLLATE "C" NOT NULL,
    manifest   TEXT COLLATE "C" NOT NULL,
    position   BIGINT NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (repository, manifest, position),
    FOREIGN KEY (repository, manifest) REFERENCES manifests (repository, digest) ON DELETE CASCADE
);
CREATE INDEX manifest_references_by_digest ON manifest_references (repository, digest, manifest);

CREATE TABLE tags (
    repository TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (repository, name),
    FOREIGN KEY (repository, digest) REFERENCES manifests (repository, digest) ON DELETE CASCADE
);
CREATE INDEX tags_by_digest ON tags (repository, digest);

CREATE TABLE uploads (
    id         TEXT COLLATE "C" PRIMARY KEY,
    repository TEXT COLLATE "C" NOT NULL,
    account    TEXT COLLATE "C" NOT NULL,
    started_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX uploads_by_expiry ON uploads (expires_at);

-- What was ever published. Rows are never changed and never removed, so that no version is used twice.
CREATE TABLE ledger (
    seq        BIGINT PRIMARY KEY,
    repository TEXT COLLATE "C" NOT NULL,
    key        TEXT COLLATE "C" NOT NULL,
    owner      TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    version    TEXT COLLATE "C" NOT NULL,
    dialect    TEXT COLLATE "C" NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    kind       TEXT COLLATE "C" NOT NULL,
    manifest   TEXT COLLATE "C" NOT NULL,
    content    TEXT COLLATE "C" NOT NULL,
    tree       TEXT COLLATE "C" NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    UNIQUE (repository, version),
    UNIQUE (repository, key)
);

-- +goose StatementBegin
CREATE FUNCTION ledger_is_forever() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a row of the ledger is never changed or removed' USING ERRCODE = 'integrity_constraint_violation';
END
$$;
-- +goose StatementEnd
CREATE TRIGGER ledger_is_never_changed BEFORE UPDATE OR DELETE ON ledger FOR EACH ROW EXECUTE FUNCTION ledger_is_forever();
CREATE TRIGGER ledger_is_never_emptied BEFORE TRUNCATE ON ledger FOR EACH STATEMENT EXECUTE FUNCTION ledger_is_forever();

CREATE TABLE versions (
    repository        TEXT COLLATE "C" NOT NULL REFERENCES repositories (name),
    version           TEXT COLLATE "C" NOT NULL,
    key               TEXT COLLATE "C" NOT NULL,
    seq               BIGINT NOT NULL UNIQUE REFERENCES ledger (seq),
    owner             TEXT COLLATE "C" NOT NULL,
    pack_name         TEXT COLLATE "C" NOT NULL,
    dialect           TEXT COLLATE "C" NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    kind              TEXT COLLATE "C" NOT NULL,
    manifest          TEXT COLLATE "C" NOT NULL,
    content           TEXT COLLATE "C" NOT NULL,
    tree              TEXT COLLATE "C" NOT NULL,
    layer_media_type  TEXT COLLATE "C" NOT NULL,
    layer_digest      TEXT COLLATE "C" NOT NULL,
    layer_size        BIGINT NOT NULL,
    config_media_type TEXT COLLATE "C" NOT NULL,
    config_digest     TEXT COLLATE "C" NOT NULL,
    config_size       BIGINT NOT NULL,
    summary           TEXT COLLATE "C" NOT NULL,
    document          BYTEA,
    catalogue         BYTEA,
    enabled           BIGINT NOT NULL,
    created_by        TEXT COLLATE "C" NOT NULL,
    created_at        BIGINT NOT NULL,
    files             BIGINT NOT NULL,
    bytes             BIGINT NOT NULL,
    PRIMARY KEY (repository, version),
    UNIQUE (repository, key)
);
CREATE INDEX versions_by_time ON versions (repository, created_at, seq);
CREATE INDEX versions_by_manifest ON versions (repository, manifest);
CREATE INDEX versions_by_content ON versions (content);

CREATE TABLE recipe_ids (
    dialect TEXT COLLATE "C" NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    id      TEXT COLLATE "C" NOT NULL,
    pack    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (dialect, id)
);

CREATE TABLE snapshots (
    dialect        TEXT COLLATE "C" NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    client_release TEXT COLLATE "C" NOT NULL,
    document       BYTEA,
    imported_by    TEXT COLLATE "C" NOT NULL,
    imported_at    BIGINT NOT NULL,
    PRIMARY KEY (dialect, client_release)
);

CREATE TABLE activations (
    kind       TEXT COLLATE "C" PRIMARY KEY,
    generation BIGINT NOT NULL,
    reference  BYTEA
);

CREATE TABLE jobs (
    id                 TEXT COLLATE "C" PRIMARY KEY,
    account            TEXT COLLATE "C" NOT NULL REFERENCES accounts (name),
    dialect            TEXT COLLATE "C" NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    exp                TEXT COLLATE "C" NOT NULL,
    name               TEXT COLLATE "C" NOT NULL,
    project            TEXT COLLATE "C" NOT NULL,
    status             TEXT COLLATE "C" NOT NULL,
    gpus               BIGINT NOT NULL,
    spec               BYTEA,
    spec_digest        TEXT COLLATE "C" NOT NULL,
    package_media_type TEXT COLLATE "C" NOT NULL,
    package_digest     TEXT COLLATE "C" NOT NULL,
    package_size       BIGINT NOT NULL,
    meta               BYTEA,
    decision           BYTEA,
    receipt            BYTEA,
    key                TEXT COLLATE "C" NOT NULL,
    submitted_at       BIGINT NOT NULL,
    lease_until        BIGINT NOT NULL
);
CREATE UNIQUE INDEX jobs_by_key ON jobs (account, key) WHERE key <> '';
CREATE INDEX jobs_by_time ON jobs (submitted_at, id);
CREATE INDEX jobs_of_account ON jobs (account, submitted_at, id);
CREATE INDEX jobs_by_lease ON jobs (account, lease_until);

CREATE TABLE package_uploads (
    id              TEXT COLLATE "C" PRIMARY KEY,
    account         TEXT COLLATE "C" NOT NULL,
    token_hash      BYTEA NOT NULL,
    want_media_type TEXT COLLATE "C" NOT NULL,
    want_digest     TEXT COLLATE "C" NOT NULL,
    want_size       BIGINT NOT NULL,
    stored          BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL
);
CREATE INDEX package_uploads_by_expiry ON package_uploads (expires_at);

CREATE TABLE previews (
    id         TEXT COLLATE "C" PRIMARY KEY,
    account    TEXT COLLATE "C" NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,
    document   BYTEA,
    expires_at BIGINT NOT NULL,
    job_id     TEXT COLLATE "C" NOT NULL
);
CREATE INDEX previews_by_expiry ON previews (expires_at);

CREATE TABLE audit (
    seq     BIGINT PRIMARY KEY,
    at      BIGINT NOT NULL,
    account TEXT COLLATE "C" NOT NULL,
    action  TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    detail  TEXT COLLATE "C" NOT NULL
);

CREATE TABLE settings (
    key   TEXT COLLATE "C" PRIMARY KEY,
    value TEXT COLLATE "C" NOT NULL
);
