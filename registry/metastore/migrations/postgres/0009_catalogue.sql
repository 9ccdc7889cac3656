-- What clients find. The shelf has the newest enabled version of every declarative pack, in each dialect, with what the
-- catalogue says of it, so that no request walks over all versions. The ids by which clients know recipes and benchmarks
-- are taken for ever, whatever the case of their letters. A stamp is new after every change of what it is about.

-- +goose Up
CREATE TABLE shelf (
    dialect        TEXT COLLATE "C" NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    repository     TEXT COLLATE "C" NOT NULL,
    version        TEXT COLLATE "C" NOT NULL,
    owner          TEXT COLLATE "C" NOT NULL,
    pack_name      TEXT COLLATE "C" NOT NULL,
    kind           TEXT COLLATE "C" NOT NULL,
    content        TEXT COLLATE "C" NOT NULL,
    tree           TEXT COLLATE "C" NOT NULL,
    recipe         TEXT COLLATE "C" NOT NULL,
    alias          TEXT COLLATE "C" NOT NULL,
    recipe_version TEXT COLLATE "C" NOT NULL,
    recipe_digest  TEXT COLLATE "C" NOT NULL,
    entry          BYTEA,
    PRIMARY KEY (dialect, repository),
    FOREIGN KEY (repository, version) REFERENCES versions (repository, version)
);
CREATE INDEX shelf_by_recipe ON shelf (dialect, recipe) WHERE recipe <> '';
CREATE INDEX shelf_by_alias ON shelf (dialect, alias) WHERE alias <> '';
CREATE INDEX shelf_by_version ON shelf (repository, version);

CREATE TABLE client_ids (
    dialect TEXT COLLATE "C" NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    kind    TEXT COLLATE "C" NOT NULL CHECK (kind IN ('recipe', 'benchmark')),
    fold    TEXT COLLATE "C" NOT NULL,
    id      TEXT COLLATE "C" NOT NULL,
    pack    TEXT COLLATE "C" NOT NULL,
    alias   BIGINT NOT NULL,
    PRIMARY KEY (dialect, kind, fold)
);
INSERT INTO client_ids (dialect, kind, fold, id, pack, alias)
    SELECT dialect, 'recipe', lower(id), id, pack, 0 FROM recipe_ids WHERE true ORDER BY dialect, id ON CONFLICT DO NOTHING;
DROP TABLE recipe_ids;

CREATE TABLE catalogue_stamps (
    dialect TEXT COLLATE "C" NOT NULL CHECK (dialect IN ('forge', 'tuneplane')),
    part    TEXT COLLATE "C" NOT NULL CHECK (part IN ('shelf', 'releases')),
    stamp   TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (dialect, part)
);
