-- Sign-ins that last: sessions of clients and of browsers, and the codes that they are begun with.

-- +goose Up
CREATE TABLE sessions (
    id         TEXT    PRIMARY KEY,
    account    TEXT    NOT NULL REFERENCES accounts (name) ON DELETE CASCADE,
    kind       TEXT    NOT NULL CHECK (kind IN ('client', 'browser')),
    credential TEXT    NOT NULL,
    device     BLOB    NOT NULL,
    remote     TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    rotated_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_of_account ON sessions (account, created_at, id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
CREATE INDEX sessions_by_end ON sessions (revoked_at) WHERE revoked_at <> 0;

CREATE TABLE device_codes (
    hash       BLOB    PRIMARY KEY,
    user_code  TEXT    NOT NULL UNIQUE,
    device     BLOB    NOT NULL,
    remote     TEXT    NOT NULL,
    network    TEXT    NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'used')),
    account    TEXT    NOT NULL,
    credential TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    polled_at  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX device_codes_by_expiry ON device_codes (expires_at);
CREATE INDEX device_codes_of_network ON device_codes (network, expires_at);

CREATE TABLE authorization_codes (
    hash         BLOB    PRIMARY KEY,
    account      TEXT    NOT NULL,
    credential   TEXT    NOT NULL,
    challenge    TEXT    NOT NULL,
    redirect_uri TEXT    NOT NULL,
    device       BLOB    NOT NULL,
    session      TEXT    NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX authorization_codes_by_expiry ON authorization_codes (expires_at);
