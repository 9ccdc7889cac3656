-- What ran where: nodes and their keys, runs with what they used, which packs an admitted job pins, and revocations.

-- +goose Up
-- The account of a node has a row in accounts too, so that its tokens are tokens like any other.
CREATE TABLE nodes (
    name       TEXT COLLATE "C" PRIMARY KEY,
    account    TEXT COLLATE "C" NOT NULL REFERENCES accounts (name),
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    removed_at BIGINT NOT NULL
);

-- A key that was retired stays: what it signed before is still its node's.
CREATE TABLE node_keys (
    node       TEXT COLLATE "C" NOT NULL REFERENCES nodes (name),
    id         TEXT COLLATE "C" NOT NULL,
    public     BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    retired_at BIGINT NOT NULL,
    PRIMARY KEY (node, id)
);

CREATE TABLE runs (
    id          TEXT COLLATE "C" PRIMARY KEY,
    job         TEXT COLLATE "C" NOT NULL REFERENCES jobs (id),
    account     TEXT COLLATE "C" NOT NULL,
    node        TEXT COLLATE "C" NOT NULL,
    sender      TEXT COLLATE "C" NOT NULL,
    state       TEXT COLLATE "C" NOT NULL CHECK (state IN ('started', 'ended', 'refused')),
    attested    BIGINT NOT NULL,
    key         TEXT COLLATE "C" NOT NULL,
    mode        TEXT COLLATE "C" NOT NULL,
    exit_code   BIGINT NOT NULL,
    started_at  BIGINT NOT NULL,
    ended_at    BIGINT NOT NULL,
    received_at BIGINT NOT NULL,
    changed_at  BIGINT NOT NULL,
    started     BYTEA,
    final       BYTEA
);
CREATE INDEX runs_by_time ON runs (received_at, id);
CREATE INDEX runs_of_job ON runs (job, received_at, id);
CREATE INDEX runs_of_node ON runs (node, received_at, id);
CREATE INDEX runs_of_account ON runs (account, received_at, id);
CREATE INDEX runs_by_state ON runs (state, received_at, id);

-- at is when the run was first heard of; open says that it has not ended.
CREATE TABLE run_packs (
    run              TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    position         BIGINT NOT NULL,
    pack             TEXT COLLATE "C" NOT NULL,
    version          TEXT COLLATE "C" NOT NULL,
    kind             TEXT COLLATE "C" NOT NULL,
    content          TEXT COLLATE "C" NOT NULL,
    tree             TEXT COLLATE "C" NOT NULL,
    manifest         TEXT COLLATE "C" NOT NULL,
    runtime_supplied BIGINT NOT NULL,
    at               BIGINT NOT NULL,
    open             BIGINT NOT NULL,
    PRIMARY KEY (run, position)
);
CREATE INDEX run_packs_by_version ON run_packs (pack, version, at, run);
CREATE INDEX run_packs_open ON run_packs (pack, version, run) WHERE open = 1;

-- Each digest of each pack of a run: content, tree and manifest.
CREATE TABLE run_digests (
    digest TEXT COLLATE "C" NOT NULL,
    run    TEXT COLLATE "C" NOT NULL REFERENCES runs (id),
    at     BIGINT NOT NULL,
    PRIMARY KEY (digest, run)
);
CREATE INDEX run_digests_by_time ON run_digests (digest, at, run);
CREATE INDEX run_digests_of_run ON run_digests (run);

-- open says that the job has not ended.
CREATE TABLE job_packs (
    job              TEXT COLLATE "C" NOT NULL REFERENCES jobs (id),
    position         BIGINT NOT NULL,
    pack             TEXT COLLATE "C" NOT NULL,
    version          TEXT COLLATE "C" NOT NULL,
    kind             TEXT COLLATE "C" NOT NULL,
    content          TEXT COLLATE "C" NOT NULL,
    tree             TEXT COLLATE "C" NOT NULL,
    manifest         TEXT COLLATE "C" NOT NULL,
    runtime_supplied BIGINT NOT NULL,
    open             BIGINT NOT NULL,
    PRIMARY KEY (job, position)
);
CREATE INDEX job_packs_open ON job_packs (pack, version, job) WHERE open = 1;
ALTER TABLE jobs ADD COLUMN indexed BIGINT NOT NULL DEFAULT 0;
CREATE INDEX jobs_not_indexed ON jobs (id) WHERE indexed = 0;

ALTER TABLE versions ADD COLUMN reason TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE versions ADD COLUMN revoked_at BIGINT NOT NULL DEFAULT 0;

CREATE TABLE revocations (
    seq        BIGINT PRIMARY KEY,
    repository TEXT COLLATE "C" NOT NULL,
    pack       TEXT COLLATE "C" NOT NULL,
    version    TEXT COLLATE "C" NOT NULL,
    content    TEXT COLLATE "C" NOT NULL,
    tree       TEXT COLLATE "C" NOT NULL,
    manifest   TEXT COLLATE "C" NOT NULL,
    layer      TEXT COLLATE "C" NOT NULL,
    reason     TEXT COLLATE "C" NOT NULL,
    revoked_by TEXT COLLATE "C" NOT NULL,
    at         BIGINT NOT NULL
);
CREATE UNIQUE INDEX revocations_by_version ON revocations (repository, version);
CREATE INDEX revocations_by_layer ON revocations (repository, layer);
CREATE INDEX revocations_by_tree ON revocations (tree, seq);
