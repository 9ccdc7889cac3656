-- Who may reach what: private repositories and their readers, robots, owners of names that are not their account's,
-- failed sign-ins; where an audited request came from.

-- +goose Up
ALTER TABLE repositories ADD COLUMN private INTEGER NOT NULL DEFAULT 0;
ALTER TABLE audit ADD COLUMN remote TEXT NOT NULL DEFAULT '';
ALTER TABLE audit ADD COLUMN request TEXT NOT NULL DEFAULT '';

CREATE TABLE repository_readers (
    repository TEXT NOT NULL REFERENCES repositories (name) ON DELETE CASCADE,
    account    TEXT NOT NULL REFERENCES accounts (name) ON DELETE CASCADE,
    PRIMARY KEY (repository, account)
) STRICT;

-- The account of a robot has a row in accounts too, so that its tokens are tokens like any other.
CREATE TABLE robots (
    name        TEXT    PRIMARY KEY REFERENCES accounts (name),
    owner       TEXT    NOT NULL REFERENCES accounts (name),
    description TEXT    NOT NULL,
    scopes      BLOB    NOT NULL,
    created_by  TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX robots_of_owner ON robots (owner, name);

CREATE TABLE namespaces (
    pattern    TEXT    PRIMARY KEY,
    owner      TEXT    NOT NULL REFERENCES accounts (name),
    created_by TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE signin_failures (
    subject      TEXT    PRIMARY KEY,
    failures     INTEGER NOT NULL,
    last_at      INTEGER NOT NULL,
    locked_until INTEGER NOT NULL
) STRICT;
CREATE INDEX signin_failures_by_age ON signin_failures (last_at);
CREATE INDEX tokens_by_expiry ON tokens (expires_at) WHERE expires_at <> 0;
