-- What ran where: nodes and their keys, runs with what they used, which packs an admitted job pins, and revocations.

-- +goose Up
-- The account of a node has a row in accounts too, so that its tokens are tokens like any other.
CREATE TABLE nodes (
    name       TEXT    PRIMARY KEY,
    account    TEXT    NOT NULL REFERENCES accounts (name),
    created_by TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    removed_at INTEGER NOT NULL
) STRICT;

-- A key that was retired stays: what it signed before is still its node's.
CREATE TABLE node_keys (
    node       TEXT    NOT NULL REFERENCES nodes (name),
    id         TEXT    NOT NULL,
    public     BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    retired_at INTEGER NOT NULL,
    PRIMARY KEY (node, id)
) STRICT;

CREATE TABLE runs (
    id          TEXT    PRIMARY KEY,
    job         TEXT    NOT NULL REFERENCES jobs (id),
    account     TEXT    NOT NULL,
    node        TEXT    NOT NULL,
    sender      TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('started', 'ended', 'refused')),
    attested    INTEGER NOT NULL,
    key         TEXT    NOT NULL,
    mode        TEXT    NOT NULL,
    exit_code   INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    changed_at  INTEGER NOT NULL,
    started     BLOB,
    final       BLOB
) STRICT;
CREATE INDEX runs_by_time ON runs (received_at, id);
CREATE INDEX runs_of_job ON runs (job, received_at, id);
CREATE INDEX runs_of_node ON runs (node, received_at, id);
CREATE INDEX runs_of_account ON runs (account, received_at, id);
CREATE INDEX runs_by_state ON runs (state, received_at, id);

-- at is when the run was first heard of; open says that it has not ended.
CREATE TABLE run_packs (
    run              TEXT    NOT NULL REFERENCES runs (id),
    position         INTEGER NOT NULL,
    pack             TEXT    NOT NULL,
    version          TEXT    NOT NULL,
    kind             TEXT    NOT NULL,
    content          TEXT    NOT NULL,
    tree             TEXT    NOT NULL,
    manifest         TEXT    NOT NULL,
    runtime_supplied INTEGER NOT NULL,
    at               INTEGER NOT NULL,
    open             INTEGER NOT NULL,
    PRIMARY KEY (run, position)
) STRICT;
CREATE INDEX run_packs_by_version ON run_packs (pack, version, at, run);
CREATE INDEX run_packs_open ON run_packs (pack, version, run) WHERE open = 1;

-- Each digest of each pack of a run: content, tree and manifest.
CREATE TABLE run_digests (
    digest TEXT    NOT NULL,
    run    TEXT    NOT NULL REFERENCES runs (id),
    at     INTEGER NOT NULL,
    PRIMARY KEY (digest, run)
) STRICT;
CREATE INDEX run_digests_by_time ON run_digests (digest, at, run);
CREATE INDEX run_digests_of_run ON run_digests (run);

-- open says that the job has not ended.
CREATE TABLE job_packs (
    job              TEXT    NOT NULL REFERENCES jobs (id),
    position         INTEGER NOT NULL,
    pack             TEXT    NOT NULL,
    version          TEXT    NOT NULL,
    kind             TEXT    NOT NULL,
    content          TEXT    NOT NULL,
    tree             TEXT    NOT NULL,
    manifest         TEXT    NOT NULL,
    runtime_supplied INTEGER NOT NULL,
    open             INTEGER NOT NULL,
    PRIMARY KEY (job, position)
) STRICT;
CREATE INDEX job_packs_open ON job_packs (pack, version, job) WHERE open = 1;
ALTER TABLE jobs ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX jobs_not_indexed ON jobs (id) WHERE indexed = 0;

ALTER TABLE versions ADD COLUMN reason TEXT NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN revoked_at INTEGER NOT NULL DEFAULT 0;

CREATE TABLE revocations (
    seq        INTEGER PRIMARY KEY,
    repository TEXT    NOT NULL,
    pack       TEXT    NOT NULL,
    version    TEXT    NOT NULL,
    content    TEXT    NOT NULL,
    tree       TEXT    NOT NULL,
    manifest   TEXT    NOT NULL,
    layer      TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    revoked_by TEXT    NOT NULL,
    at         INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX revocations_by_version ON revocations (repository, version);
CREATE INDEX revocations_by_layer ON revocations (repository, layer);
CREATE INDEX revocations_by_tree ON revocations (tree, seq);
