-- Sign-ins that last: sessions of clients and of browsers, and the codes that they are begun with.

-- +goose Up
CREATE TABLE sessions (
    id         TEXT COLLATE "C" PRIMARY KEY,
    account    TEXT COLLATE "C" NOT NULL REFERENCES accounts (name) ON DELETE CASCADE,
    kind       TEXT COLLATE "C" NOT NULL CHECK (kind IN ('client', 'browser')),
    credential TEXT COLLATE "C" NOT NULL,
    device     BYTEA   NOT NULL,
    remote     TEXT COLLATE "C" NOT NULL,
    generation BIGINT  NOT NULL,
    created_at BIGINT  NOT NULL,
    rotated_at BIGINT  NOT NULL,
    used_at    BIGINT  NOT NULL,
    expires_at BIGINT  NOT NULL,
    revoked_at BIGINT  NOT NULL
);
CREATE INDEX sessions_of_account ON sessions (account, created_at, id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
CREATE INDEX sessions_by_end ON sessions (revoked_at) WHERE revoked_at <> 0;

CREATE TABLE device_codes (
    hash       BYTEA   PRIMARY KEY,
    user_code  TEXT COLLATE "C" NOT NULL UNIQUE,
    device     BYTEA   NOT NULL,
    remote     TEXT COLLATE "C" NOT NULL,
    network    TEXT COLLATE "C" NOT NULL,
    state      TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'used')),
    account    TEXT COLLATE "C" NOT NULL,
    credential TEXT COLLATE "C" NOT NULL,
    created_at BIGINT  NOT NULL,
    polled_at  BIGINT  NOT NULL,
    expires_at BIGINT  NOT NULL
);
CREATE INDEX device_codes_by_expiry ON device_codes (expires_at);
CREATE INDEX device_codes_of_network ON device_codes (network, expires_at);

CREATE TABLE authorization_codes (
    hash         BYTEA   PRIMARY KEY,
    account      TEXT COLLATE "C" NOT NULL,
    credential   TEXT COLLATE "C" NOT NULL,
    challenge    TEXT COLLATE "C" NOT NULL,
    redirect_uri TEXT COLLATE "C" NOT NULL,
    device       BYTEA   NOT NULL,
    session      TEXT COLLATE "C" NOT NULL,
    expires_at   BIGINT  NOT NULL
);
CREATE INDEX authorization_codes_by_expiry ON authorization_codes (expires_at);
