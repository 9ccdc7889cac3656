-- What clients find. The shelf has the newest enabled version of every declarative pack, in each dialect, with what the
-- catalogue says of it, so that no request walks over all versions. The ids by which clients know recipes and benchmarks
-- are taken for ever, whatever the case of their letters. A stamp is new after every change of what it is about.

-- +goose Up
CREATE TABLE shelf (
    dialect        TEXT NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    repository     TEXT NOT NULL,
    version        TEXT NOT NULL,
    owner          TEXT NOT NULL,
    pack_name      TEXT NOT NULL,
    kind           TEXT NOT NULL,
    content        TEXT NOT NULL,
    tree           TEXT NOT NULL,
    recipe         TEXT NOT NULL,
    alias          TEXT NOT NULL,
    recipe_version TEXT NOT NULL,
    recipe_digest  TEXT NOT NULL,
    entry          BLOB,
    PRIMARY KEY (dialect, repository),
    FOREIGN KEY (repository, version) REFERENCES versions (repository, version)
) STRICT;
CREATE INDEX shelf_by_recipe ON shelf (dialect, recipe) WHERE recipe <> '';
CREATE INDEX shelf_by_alias ON shelf (dialect, alias) WHERE alias <> '';
CREATE INDEX shelf_by_version ON shelf (repository, version);

CREATE TABLE client_ids (
    dialect TEXT    NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    kind    TEXT    NOT NULL CHECK (kind IN ('recipe', 'benchmark')),
    fold    TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    pack    TEXT    NOT NULL,
    alias   INTEGER NOT NULL,
    PRIMARY KEY (dialect, kind, fold)
) STRICT, WITHOUT ROWID;
INSERT INTO client_ids (dialect, kind, fold, id, pack, alias)
    SELECT dialect, 'recipe', lower(id), id, pack, 0 FROM recipe_ids WHERE true ORDER BY dialect, id ON CONFLICT DO NOTHING;
DROP TABLE recipe_ids;

CREATE TABLE catalogue_stamps (
    dialect TEXT NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    part    TEXT NOT NULL CHECK (part IN ('shelf', 'releases')),
    stamp   TEXT NOT NULL,
    PRIMARY KEY (dialect, part)
) STRICT, WITHOUT ROWID;
