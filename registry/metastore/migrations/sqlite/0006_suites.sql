-- Environments, tasksets and rubrics. A sealed version has a row in the ledger like a pack's; what was uploaded and not sealed
-- yet has rows of its own, which hold its bytes until they expire. Runners are machines that serve an environment.

-- +goose Up
CREATE TABLE suite_versions (
    repository TEXT    NOT NULL REFERENCES repositories (name),
    version    TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    seq        INTEGER NOT NULL UNIQUE REFERENCES ledger (seq),
    kind       TEXT    NOT NULL CHECK (kind IN ('environment', 'taskset', 'rubric')),
    owner      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    dialect    TEXT    NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    manifest   TEXT    NOT NULL,
    tree       TEXT    NOT NULL,
    document   BLOB,
    files      INTEGER NOT NULL,
    bytes      INTEGER NOT NULL,
    created_by TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (repository, version),
    UNIQUE (repository, key)
) STRICT;
CREATE INDEX suite_versions_by_kind ON suite_versions (kind, repository, created_at, seq);
CREATE INDEX suite_versions_by_manifest ON suite_versions (repository, manifest);

CREATE TABLE suite_files (
    repository TEXT    NOT NULL REFERENCES repositories (name),
    version    TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    size       INTEGER NOT NULL,
    account    TEXT    NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (repository, version, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX suite_files_by_digest ON suite_files (repository, digest);
CREATE INDEX suite_files_by_expiry ON suite_files (expires_at);

CREATE TABLE environment_runners (
    id              TEXT    PRIMARY KEY,
    repository      TEXT    NOT NULL REFERENCES repositories (name),
    address         TEXT    NOT NULL,
    version         TEXT    NOT NULL,
    runner_version  TEXT    NOT NULL,
    credential_hash BLOB    NOT NULL,
    created_by      TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    beat_at         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX environment_runners_of ON environment_runners (repository, id);
