-- Who may reach what: private repositories and their readers, robots, owners of names that are not their account's,
-- failed sign-ins; where an audited request came from.

-- +goose Up
ALTER TABLE repositories ADD COLUMN private BIGINT  NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN remote TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN request TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE TABLE repository_readers (
    repository TEXT COLLATE "C" NOT NULL REFERENCES repositories (name) ON DELETE CASCADE,
    account    TEXT COLLATE "C" NOT NULL REFERENCES accounts (name) ON DELETE CASCADE,
    PRIMARY KEY (repository, account)
);

-- The account of a robot has a row in accounts too, so that its tokens are tokens like any other.
CREATE TABLE robots (
    name        TEXT COLLATE "C" PRIMARY KEY REFERENCES accounts (name),
    owner       TEXT COLLATE "C" NOT NULL REFERENCES accounts (name),
    description TEXT COLLATE "C" NOT NULL,
    scopes      BYTEA   NOT NULL,
    created_by  TEXT COLLATE "C" NOT NULL,
    created_at  BIGINT  NOT NULL,
    expires_at  BIGINT  NOT NULL
);
CREATE INDEX robots_of_owner ON robots (owner, name);

CREATE TABLE namespaces (
    pattern    TEXT COLLATE "C" PRIMARY KEY,
    owner      TEXT COLLATE "C" NOT NULL REFERENCES accounts (name),
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT  NOT NULL
);

CREATE TABLE signin_failures (
    subject      TEXT COLLATE "C" PRIMARY KEY,
    failures     BIGINT  NOT NULL,
    last_at      BIGINT  NOT NULL,
    locked_until BIGINT  NOT NULL
);
CREATE INDEX signin_failures_by_age ON signin_failures (last_at);
CREATE INDEX tokens_by_expiry ON tokens (expires_at) WHERE expires_at <> 0;
