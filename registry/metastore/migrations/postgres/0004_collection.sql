-- What may be removed, and what owners hold. A digest stands in condemned from the moment that a collection decided, in
-- a transaction in which no row named it, to delete its bytes until they are gone. An owner is charged once for a digest,
-- however many of its repositories hold it; triggers keep that true in the transaction that makes or removes the row.

-- +goose Up
CREATE TABLE condemned (
    digest       TEXT COLLATE "C" PRIMARY KEY,
    condemned_at BIGINT NOT NULL
);

-- Since when nothing keeps a manifest, as far as collections saw; 0 for one that something keeps.
ALTER TABLE manifests ADD COLUMN loose_since BIGINT NOT NULL DEFAULT 0;

CREATE INDEX manifests_by_digest ON manifests (digest);
CREATE INDEX jobs_by_package ON jobs (package_digest) WHERE package_digest <> '';
CREATE INDEX package_uploads_by_digest ON package_uploads (want_digest);

CREATE TABLE owner_quotas (
    owner         TEXT COLLATE "C" PRIMARY KEY,
    max_bytes     BIGINT NOT NULL,
    max_versions  BIGINT NOT NULL,
    max_manifests BIGINT NOT NULL
);

CREATE TABLE owner_usage (
    owner     TEXT COLLATE "C" PRIMARY KEY,
    bytes     BIGINT NOT NULL,
    versions  BIGINT NOT NULL,
    manifests BIGINT NOT NULL
);

-- How many rows of an owner's repositories name a digest.
CREATE TABLE owner_blobs (
    owner  TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    size   BIGINT NOT NULL,
    links  BIGINT NOT NULL,
    PRIMARY KEY (owner, digest)
);

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
CREATE FUNCTION charge_digest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO owner_usage AS u (owner, bytes, versions, manifests) VALUES (NEW.owner, NEW.size, 0, 0)
        ON CONFLICT (owner) DO UPDATE SET bytes = u.bytes + excluded.bytes;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER charge_digest AFTER INSERT ON owner_blobs FOR EACH ROW EXECUTE FUNCTION charge_digest();

-- +goose StatementBegin
CREATE FUNCTION release_digest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE owner_usage SET bytes = bytes - OLD.size WHERE owner = OLD.owner;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER release_digest AFTER DELETE ON owner_blobs FOR EACH ROW EXECUTE FUNCTION release_digest();

-- One function for the two tables whose rows name a digest.
-- +goose StatementBegin
CREATE FUNCTION charge_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO owner_blobs AS b (owner, digest, size, links) SELECT owner, NEW.digest, NEW.size, 1 FROM repositories WHERE name = NEW.repository
        ON CONFLICT (owner, digest) DO UPDATE SET links = b.links + 1;
    RETURN NULL;
END $$;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE FUNCTION release_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE owner_blobs SET links = links - 1
        WHERE digest = OLD.digest AND owner = (SELECT owner FROM repositories WHERE name = OLD.repository);
    DELETE FROM owner_blobs
        WHERE digest = OLD.digest AND owner = (SELECT owner FROM repositories WHERE name = OLD.repository) AND links <= 0;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER charge_link AFTER INSERT ON repository_blobs FOR EACH ROW EXECUTE FUNCTION charge_link();
CREATE TRIGGER release_link AFTER DELETE ON repository_blobs FOR EACH ROW EXECUTE FUNCTION release_link();
CREATE TRIGGER charge_manifest AFTER INSERT ON manifests FOR EACH ROW EXECUTE FUNCTION charge_link();
CREATE TRIGGER release_manifest AFTER DELETE ON manifests FOR EACH ROW EXECUTE FUNCTION release_link();

-- +goose StatementBegin
CREATE FUNCTION count_manifest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO owner_usage AS u (owner, bytes, versions, manifests) SELECT owner, 0, 0, 1 FROM repositories WHERE name = NEW.repository
            ON CONFLICT (owner) DO UPDATE SET manifests = u.manifests + 1;
    ELSE
        UPDATE owner_usage SET manifests = manifests - 1
            WHERE owner = (SELECT owner FROM repositories WHERE name = OLD.repository);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER count_manifest AFTER INSERT OR DELETE ON manifests FOR EACH ROW EXECUTE FUNCTION count_manifest();

-- +goose StatementBegin
CREATE FUNCTION count_version() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO owner_usage AS u (owner, bytes, versions, manifests) SELECT owner, 0, 1, 0 FROM repositories WHERE name = NEW.repository
            ON CONFLICT (owner) DO UPDATE SET versions = u.versions + 1;
    ELSE
        UPDATE owner_usage SET versions = versions - 1
            WHERE owner = (SELECT owner FROM repositories WHERE name = OLD.repository);
    END IF;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER count_version AFTER INSERT OR DELETE ON versions FOR EACH ROW EXECUTE FUNCTION count_version();
