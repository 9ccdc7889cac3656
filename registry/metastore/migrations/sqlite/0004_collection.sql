-- What may be removed, and what owners hold. A digest stands in condemned from the moment that a collection decided, in
-- a transaction in which no row named it, to delete its bytes until they are gone. An owner is charged once for a digest,
-- however many of its repositories hold it; triggers keep that true in the transaction that makes or removes the row.

-- +goose Up
CREATE TABLE condemned (
    digest       TEXT    PRIMARY KEY,
    condemned_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Since when nothing keeps a manifest, as far as collections saw; 0 for one that something keeps.
ALTER TABLE manifests ADD COLUMN loose_since INTEGER NOT NULL DEFAULT 0;

CREATE INDEX manifests_by_digest ON manifests (digest);
CREATE INDEX jobs_by_package ON jobs (package_digest) WHERE package_digest <> '';
CREATE INDEX package_uploads_by_digest ON package_uploads (want_digest);

CREATE TABLE owner_quotas (
    owner         TEXT    PRIMARY KEY,
    max_bytes     INTEGER NOT NULL,
    max_versions  INTEGER NOT NULL,
    max_manifests INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE owner_usage (
    owner     TEXT    PRIMARY KEY,
    bytes     INTEGER NOT NULL,
    versions  INTEGER NOT NULL,
    manifests INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How many rows of an owner's repositories name a digest.
CREATE TABLE owner_blobs (
    owner  TEXT    NOT NULL,
    digest TEXT    NOT NULL,
    size   INTEGER NOT NULL,
    links  INTEGER NOT NULL,
    PRIMARY KEY (owner, digest)
) STRICT, WITHOUT ROWID;

INSERT INTO owner_blobs (owner, digest, size, links)
    SELECT r.owner, n.digest, MAX(n.size), COUNT(*)
    FROM (SELECT repository, digest, size FROM repository_blobs UNION ALL SELECT repository, digest, size FROM manifests) n
    JOIN repositories r ON r.name = n.repository GROUP BY r.owner, n.digest;
INSERT INTO owner_usage (owner, bytes, versions, manifests)
    SELECT o.owner, (SELECT COALESCE(SUM(size), 0) FROM owner_blobs b WHERE b.owner = o.owner),
        (SELECT COUNT(*) FROM versions v JOIN repositories r ON r.name = v.repository WHERE r.owner = o.owner),
        (SELECT COUNT(*) FROM manifests m JOIN repositories r ON r.name = m.repository WHERE r.owner = o.owner)
    FROM (SELECT DISTINCT owner FROM repositories) o;

-- +goose StatementBegin
CREATE TRIGGER charge_digest AFTER INSERT ON owner_blobs
BEGIN
    INSERT INTO owner_usage (owner, bytes, versions, manifests) VALUES (NEW.owner, NEW.size, 0, 0)
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER release_digest AFTER DELETE ON owner_blobs
BEGIN
    UPDATE owner_usage SET bytes = bytes - OLD.size WHERE owner = OLD.owner;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER charge_link AFTER INSERT ON repository_blobs
BEGIN
    INSERT INTO owner_blobs (owner, digest, size, links) SELECT owner, NEW.digest, NEW.size, 1 FROM repositories WHERE name = NEW.repository
        ON CONFLICT (owner, digest) DO UPDATE SET links = links + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER release_link AFTER DELETE ON repository_blobs
BEGIN
    UPDATE owner_blobs SET links = links - 1
        WHERE digest = OLD.digest AND owner = (SELECT owner FROM repositories WHERE name = OLD.repository);
    DELETE FROM owner_blobs
        WHERE digest = OLD.digest AND owner = (SELECT owner FROM repositories WHERE name = OLD.repository) AND links <= 0;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER charge_manifest AFTER INSERT ON manifests
BEGIN
    INSERT INTO owner_blobs (owner, digest, size, links) SELECT owner, NEW.digest, NEW.size, 1 FROM repositories WHERE name = NEW.repository
        ON CONFLICT (owner, digest) DO UPDATE SET links = links + 1;
    INSERT INTO owner_usage (owner, bytes, versions, manifests) SELECT owner, 0, 0, 1 FROM repositories WHERE name = NEW.repository
        ON CONFLICT (owner) DO UPDATE SET manifests = manifests + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER release_manifest AFTER DELETE ON manifests
BEGIN
    UPDATE owner_blobs SET links = links - 1
        WHERE digest = OLD.digest AND owner = (SELECT owner FROM repositories WHERE name = OLD.repository);
    DELETE FROM owner_blobs
        WHERE digest = OLD.digest AND owner = (SELECT owner FROM repositories WHERE name = OLD.repository) AND links <= 0;
    UPDATE owner_usage SET manifests = manifests - 1
        WHERE owner = (SELECT owner FROM repositories WHERE name = OLD.repository);
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER charge_version AFTER INSERT ON versions
BEGIN
    INSERT INTO owner_usage (owner, bytes, versions, manifests) SELECT owner, 0, 1, 0 FROM repositories WHERE name = NEW.repository
        ON CONFLICT (owner) DO UPDATE SET versions = versions + 1;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER release_version AFTER DELETE ON versions
BEGIN
    UPDATE owner_usage SET versions = versions - 1
        WHERE owner = (SELECT owner FROM repositories WHERE name = OLD.repository);
END;
-- +goose StatementEnd
