-- The outbox: events about jobs on their way to the platforms that run them. What a stored job package holds.

-- +goose Up
ALTER TABLE package_uploads ADD COLUMN experiment TEXT NOT NULL DEFAULT '';

CREATE TABLE handovers (
    id          TEXT PRIMARY KEY,
    job         TEXT NOT NULL REFERENCES jobs (id),
    target      TEXT NOT NULL,
    event       TEXT NOT NULL,
    state       TEXT NOT NULL,
    tries       INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    since       INTEGER NOT NULL,
    due_at      INTEGER NOT NULL,
    holder      TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    last_error  TEXT NOT NULL,
    ended_at    INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX handovers_of_job ON handovers (job, target, event);
CREATE INDEX handovers_due ON handovers (target, due_at, id) WHERE state = 'pending';
CREATE INDEX handovers_open ON handovers (state, target) WHERE state IN ('pending', 'dead');
CREATE INDEX handovers_held ON handovers (target) WHERE holder <> '';
