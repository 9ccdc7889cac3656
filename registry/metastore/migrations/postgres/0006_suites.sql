-- Environments, tasksets and rubrics. A sealed version has a row in the ledger like a pack's; what was uploaded and not sealed
-- yet has rows of its own, which hold its bytes until they expire. Runners are machines that serve an environment.

-- +goose Up
CREATE TABLE suite_versions (
    repository TEXT COLLATE "C" NOT NULL REFERENCES repositories (name),
    version    TEXT COLLATE "C" NOT NULL,
    key        TEXT COLLATE "C" NOT NULL,
    seq        BIGINT NOT NULL UNIQUE REFERENCES ledger (seq),
    kind       TEXT COLLATE "C" NOT NULL CHECK (kind IN ('environment', 'taskset', 'rubric')),
    owner      TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    dialect    TEXT COLLATE "C" NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    manifest   TEXT COLLATE "C" NOT NULL,
    tree       TEXT COLLATE "C" NOT NULL,
    document   BYTEA,
    files      BIGINT NOT NULL,
    bytes      BIGINT NOT NULL,
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (repository, version),
    UNIQUE (repository, key)
);
CREATE INDEX suite_versions_by_kind ON suite_versions (kind, repository, created_at, seq);
CREATE INDEX suite_versions_by_manifest ON suite_versions (repository, manifest);

CREATE TABLE suite_files (
    repository TEXT COLLATE "C" NOT NULL REFERENCES repositories (name),
    version    TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    digest     TEXT COLLATE "C" NOT NULL,
    size       BIGINT NOT NULL,
    account    TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (repository, version, name)
);
CREATE INDEX suite_files_by_digest ON suite_files (repository, digest);
CREATE INDEX suite_files_by_expiry ON suite_files (expires_at);

CREATE TABLE environment_runners (
    id              TEXT COLLATE "C" PRIMARY KEY,
    repository      TEXT COLLATE "C" NOT NULL REFERENCES repositories (name),
    address         TEXT COLLATE "C" NOT NULL,
    version         TEXT COLLATE "C" NOT NULL,
    runner_version  TEXT COLLATE "C" NOT NULL,
    credential_hash BYTEA   NOT NULL,
    created_by      TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT NOT NULL,
    beat_at         BIGINT NOT NULL
);
CREATE INDEX environment_runners_of ON environment_runners (repository, id);
