-- The outbox: events about jobs on their way to the platforms that run them. What a stored job package holds.

-- +goose Up
ALTER TABLE package_uploads ADD COLUMN experiment TEXT COLLATE "C" NOT NULL DEFAULT '';

CREATE TABLE handovers (
    id          TEXT COLLATE "C" PRIMARY KEY,
    job         TEXT COLLATE "C" NOT NULL REFERENCES jobs (id),
    target      TEXT COLLATE "C" NOT NULL,
    event       TEXT COLLATE "C" NOT NULL,
    state       TEXT COLLATE "C" NOT NULL,
    tries       BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    since       BIGINT NOT NULL,
    due_at      BIGINT NOT NULL,
    holder      TEXT COLLATE "C" NOT NULL,
    lease_until BIGINT NOT NULL,
    last_error  TEXT COLLATE "C" NOT NULL,
    ended_at    BIGINT NOT NULL
);
CREATE UNIQUE INDEX handovers_of_job ON handovers (job, target, event);
CREATE INDEX handovers_due ON handovers (target, due_at, id) WHERE state = 'pending';
CREATE INDEX handovers_open ON handovers (state, target) WHERE state IN ('pending', 'dead');
CREATE INDEX handovers_held ON handovers (target) WHERE holder <> '';
