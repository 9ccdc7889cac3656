package metastore

import (
	"database/sql"
	"errors"
	"strconv"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// pardons is the key of the setting that counts pardons.
const pardons = "collection-pardons"

// named is the condition that a row names the bytes of the digest that the expression gives. It is the one list of what
// does: a table whose rows come to name bytes belongs here, and its use case goes through registry.Service.anchored.
func named(expression string) string {
	return `(EXISTS (SELECT 1 FROM repository_blobs n WHERE n.digest = ` + expression + `)
	OR EXISTS (SELECT 1 FROM manifests n WHERE n.digest = ` + expression + `)
	OR EXISTS (SELECT 1 FROM jobs n WHERE n.package_digest = ` + expression + ` AND n.package_digest <> '')
	OR EXISTS (SELECT 1 FROM package_uploads n WHERE n.want_digest = ` + expression + ` AND n.stored = 1))`
}

// The statements that ask for it; they are kept prepared, so they must be constants of the process.
var (
	condemnUnnamed = `INSERT INTO condemned (digest, condemned_at) SELECT d.digest, $2 FROM (SELECT CAST($1 AS TEXT) AS digest) d
		WHERE NOT ` + named("d.digest") + ` ON CONFLICT (digest) DO UPDATE SET condemned_at = excluded.condemned_at`
	selectUnnamedSmall = `SELECT ` + storedColumns + ` FROM small_blobs s WHERE digest > $1 AND stored_at <= $2 AND NOT ` + named("s.digest") + `
		ORDER BY digest LIMIT $3`
	deleteUnnamedSmall = `DELETE FROM small_blobs WHERE digest = $1 AND stored_at <= $2 AND NOT ` + named("small_blobs.digest")
	selectNamed        = `SELECT CASE WHEN ` + named("$1") + ` THEN 1 ELSE 0 END`
)

// Condemn implements registry.CollectionTx.
func (t *tx) Condemn(d digest.Digest, at time.Time) (bool, error) {
	n, err := t.exec(condemnUnnamed, d.String(), micros(at))
	return n > 0, err
}

// Pardon implements registry.CollectionTx.
func (t *tx) Pardon(blobs []digest.Digest) error {
	for _, d := range blobs {
		if _, err := t.exec(`DELETE FROM condemned WHERE digest = $1`, d.String()); err != nil {
			return err
		}
	}
	n, err := t.Pardons()
	if err != nil {
		return err
	}
	return t.PutSetting(pardons, strconv.FormatInt(n+1, 10))
}

// Pardons implements registry.CollectionTx.
func (t *tx) Pardons() (int64, error) {
	text, err := t.Setting(pardons)
	if errors.Is(err, registry.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

func scanDigest(r row) (d digest.Digest, err error) {
	err = r.Scan(digestColumn{&d})
	return d, err
}

// Condemned implements registry.CollectionTx.
func (t *tx) Condemned(limit int) ([]digest.Digest, error) {
	return all(t, scanDigest, `SELECT digest FROM condemned ORDER BY digest LIMIT $1`, atMost(limit))
}

// CondemnedAmong implements registry.CollectionTx. Nearly always nothing is condemned, which one query tells.
func (t *tx) CondemnedAmong(blobs []digest.Digest) ([]digest.Digest, error) {
	some, err := t.Condemned(1)
	if err != nil || len(some) == 0 {
		return nil, err
	}
	var found []digest.Digest
	for _, d := range blobs {
		switch _, err := one(t, registry.ErrNotFound, scanDigest, `SELECT digest FROM condemned WHERE digest = $1`, d.String()); {
		case err == nil:
			found = append(found, d)
		case !errors.Is(err, registry.ErrNotFound):
			return nil, err
		}
	}
	return found, nil
}

// BlobNamed implements registry.CollectionTx.
func (t *tx) BlobNamed(d digest.Digest) (bool, error) {
	var n int
	err := t.get(selectNamed, []any{d.String()}, &n)
	return n == 1, err
}

// held is the condition that a row other than itself keeps a link, which the expression names: a manifest of the repository, or
// the upload of a suite that is not sealed yet.
func held(link string) string {
	return `(EXISTS (SELECT 1 FROM manifest_references m WHERE m.repository = ` + link + `.repository AND m.digest = ` + link + `.digest)
	OR EXISTS (SELECT 1 FROM suite_files f WHERE f.repository = ` + link + `.repository AND f.digest = ` + link + `.digest))`
}

// The statements that ask for it; they are kept prepared, so they must be constants of the process.
var (
	links      = `SELECT repository, digest, size, linked_at, CASE WHEN ` + held("b") + ` THEN 1 ELSE 0 END FROM repository_blobs b`
	linksPage  = links + ` WHERE (repository, digest) > ($1, $2) ORDER BY repository, digest LIMIT $3`
	oneLink    = links + ` WHERE repository = $1 AND digest = $2`
	deleteLink = `DELETE FROM repository_blobs WHERE repository = $1 AND digest = $2 AND linked_at <= $3 AND NOT ` + held("repository_blobs")
)

func scanLink(r row) (l registry.Link, err error) {
	var referenced int
	err = r.Scan(&l.Repository, digestColumn{&l.Digest}, &l.Size, timeColumn{&l.LinkedAt}, &referenced)
	l.Referenced = referenced == 1
	return l, err
}

// Links implements registry.CollectionTx.
func (t *tx) Links(after registry.Link, limit int) ([]registry.Link, error) {
	return all(t, scanLink, linksPage,
		after.Repository, after.Digest.String(), atMost(limit))
}

// Link implements registry.CollectionTx.
func (t *tx) Link(repository string, d digest.Digest) (registry.Link, error) {
	return one(t, noBlob(repository, d), scanLink, oneLink, repository, d.String())
}

// Unlink implements registry.CollectionTx.
func (t *tx) Unlink(repository string, d digest.Digest, before time.Time) (bool, error) {
	n, err := t.exec(deleteLink, repository, d.String(), micros(before))
	return n > 0, err
}

// UnnamedSmall implements registry.CollectionTx.
func (t *tx) UnnamedSmall(before time.Time, after digest.Digest, limit int) ([]registry.StoredBlob, error) {
	return all(t, scanStored, selectUnnamedSmall, after.String(), micros(before), atMost(limit))
}

// DeleteUnnamedSmall implements registry.CollectionTx.
func (t *tx) DeleteUnnamedSmall(d digest.Digest, before time.Time) (bool, error) {
	n, err := t.exec(deleteUnnamedSmall, d.String(), micros(before))
	return n > 0, err
}

// heldManifests selects what keeps a manifest. A manifest that names itself is kept by nothing.
const heldManifests = `SELECT digest, size, pushed_at, subject, loose_since,
	(SELECT COUNT(*) FROM tags t WHERE t.repository = m.repository AND t.digest = m.digest),
	(SELECT COUNT(DISTINCT n.manifest) FROM manifest_references n WHERE n.repository = m.repository AND n.digest = m.digest AND n.manifest <> m.digest),
	(SELECT COUNT(*) FROM versions v WHERE v.repository = m.repository AND v.manifest = m.digest)
	FROM manifests m WHERE repository = $1`

func scanHeld(r row) (h registry.HeldManifest, err error) {
	var versions int
	err = r.Scan(digestColumn{&h.Digest}, &h.Size, timeColumn{&h.PushedAt}, digestColumn{&h.Subject}, timeColumn{&h.LooseSince}, &h.Tags, &h.Parents, &versions)
	h.Version = versions > 0
	return h, err
}

// HeldManifests implements registry.CollectionTx.
func (t *tx) HeldManifests(repository string, after digest.Digest, limit int) ([]registry.HeldManifest, error) {
	return all(t, scanHeld, heldManifests+` AND digest > $2 ORDER BY digest LIMIT $3`, repository, after.String(), atMost(limit))
}

// MarkLoose implements registry.CollectionTx.
func (t *tx) MarkLoose(repository string, d digest.Digest, since time.Time) error {
	return t.change(noManifest(repository, d), `UPDATE manifests SET loose_since = $3 WHERE repository = $1 AND digest = $2`,
		repository, d.String(), micros(since))
}

// ManifestHolders implements registry.CollectionTx.
func (t *tx) ManifestHolders(repository string, d digest.Digest) (registry.HeldManifest, error) {
	return one(t, noManifest(repository, d), scanHeld, heldManifests+` AND digest = $2`, repository, d.String())
}

func scanTag(r row) (tag registry.Tag, err error) {
	err = r.Scan(&tag.Repository, &tag.Name, digestColumn{&tag.Digest}, timeColumn{&tag.UpdatedAt})
	return tag, err
}

// TagRows implements registry.CollectionTx.
func (t *tx) TagRows(repository, after string, limit int) ([]registry.Tag, error) {
	return all(t, scanTag, `SELECT repository, name, digest, updated_at FROM tags WHERE repository = $1 AND name > $2 ORDER BY name LIMIT $3`,
		repository, after, atMost(limit))
}

// AllRepositories implements registry.CollectionTx.
func (t *tx) AllRepositories(after string, limit int) ([]registry.Repository, error) {
	return all(t, scanRepository, `SELECT `+repositoryColumns+` FROM repositories WHERE name > $1 ORDER BY name LIMIT $2`, after, atMost(limit))
}

// NamedBlobs implements registry.CollectionTx.
func (t *tx) NamedBlobs(after digest.Digest, limit int) ([]digest.Descriptor, error) {
	return all(t, func(r row) (d digest.Descriptor, err error) {
		err = r.Scan(digestColumn{&d.Digest}, &d.Size)
		return d, err
	}, `SELECT digest, size FROM repository_blobs WHERE digest > $1
		UNION SELECT digest, size FROM manifests WHERE digest > $1
		UNION SELECT package_digest, package_size FROM jobs WHERE package_digest > $1 AND package_digest <> ''
		UNION SELECT want_digest, want_size FROM package_uploads WHERE want_digest > $1 AND stored = 1
		ORDER BY 1, 2 LIMIT $2`, after.String(), atMost(limit))
}

// BlobHolders implements registry.CollectionTx. A version is named before the repository that it lies in.
func (t *tx) BlobHolders(d digest.Digest, limit int) ([]string, error) {
	holders, err := all(t, text, `SELECT owner || '/' || pack_name || '@' || version FROM versions v
			JOIN repository_blobs b ON b.repository = v.repository AND b.digest = $1
			WHERE v.layer_digest = $1 OR v.config_digest = $1
		UNION SELECT owner || '/' || pack_name || '@' || version FROM versions v
			JOIN manifests m ON m.repository = v.repository AND m.digest = v.manifest WHERE m.digest = $1
		UNION SELECT repository FROM repository_blobs WHERE digest = $1
		UNION SELECT repository FROM manifests WHERE digest = $1
		UNION SELECT 'job ' || id FROM jobs WHERE package_digest = $1 AND package_digest <> ''
		UNION SELECT 'package upload ' || id FROM package_uploads WHERE want_digest = $1
		ORDER BY 1 LIMIT $2`, d.String(), atMost(limit))
	return holders, err
}

// LooseReferences implements registry.CollectionTx. At most two media types are looked at.
func (t *tx) LooseReferences(mediaTypes []string, after registry.BlobReference, limit int) ([]registry.BlobReference, error) {
	first, second := mediaTypes[0], mediaTypes[len(mediaTypes)-1]
	return all(t, func(r row) (b registry.BlobReference, err error) {
		err = r.Scan(&b.Repository, digestColumn{&b.Manifest}, &b.Position, digestColumn{&b.Digest})
		return b, err
	}, `SELECT r.repository, r.manifest, r.position, r.digest FROM manifest_references r
		JOIN manifests m ON m.repository = r.repository AND m.digest = r.manifest AND m.media_type IN ($1, $2)
		WHERE (r.repository, r.manifest, r.position) > ($3, $4, $5) AND NOT EXISTS
			(SELECT 1 FROM repository_blobs b WHERE b.repository = r.repository AND b.digest = r.digest)
		ORDER BY r.repository, r.manifest, r.position LIMIT $6`,
		first, second, after.Repository, after.Manifest.String(), after.Position, atMost(limit))
}

// LostTags implements registry.CollectionTx. A foreign key keeps it from happening; a damaged database does not.
func (t *tx) LostTags(limit int) ([]registry.Tag, error) {
	return all(t, scanTag, `SELECT repository, name, digest, updated_at FROM tags t WHERE NOT EXISTS
		(SELECT 1 FROM manifests m WHERE m.repository = t.repository AND m.digest = t.digest) ORDER BY repository, name LIMIT $1`, atMost(limit))
}

// everyVersion are the versions of packs and of suites alike.
const everyVersion = `(SELECT owner, pack_name, version, seq, repository, manifest FROM versions
	UNION ALL SELECT owner, name, version, seq, repository, manifest FROM suite_versions)`

// LostVersions implements registry.CollectionTx.
func (t *tx) LostVersions(limit int) ([]string, error) {
	return all(t, text, `SELECT v.owner || '/' || v.pack_name || '@' || v.version || CASE
			WHEN l.seq IS NULL THEN ': the ledger does not have it'
			WHEN l.manifest <> v.manifest THEN ': the ledger has the manifest ' || l.manifest || ', the version ' || v.manifest
			WHEN m.digest IS NULL THEN ': its manifest ' || v.manifest || ' is not in the repository'
			WHEN t.digest IS NULL THEN ': its tag is missing'
			ELSE ': its tag points at ' || t.digest || ', the version is ' || v.manifest END
		FROM `+everyVersion+` v LEFT JOIN ledger l ON l.seq = v.seq AND l.repository = v.repository AND l.version = v.version
			LEFT JOIN manifests m ON m.repository = v.repository AND m.digest = v.manifest
			LEFT JOIN tags t ON t.repository = v.repository AND t.name = v.version
		WHERE l.seq IS NULL OR l.manifest <> v.manifest OR m.digest IS NULL OR t.digest IS NULL OR t.digest <> v.manifest
		ORDER BY 1 LIMIT $1`, atMost(limit))
}

const usageColumns = `o.owner, COALESCE(u.bytes, 0), COALESCE(u.versions, 0), COALESCE(u.manifests, 0), q.max_bytes, q.max_versions, q.max_manifests`

func scanUsage(r row) (u registry.OwnerUsage, err error) {
	var bytes, versions, manifests sql.NullInt64
	err = r.Scan(&u.Owner, &u.Bytes, &u.Versions, &u.Manifests, &bytes, &versions, &manifests)
	if bytes.Valid {
		u.Own = &registry.Quota{Bytes: bytes.Int64, Versions: versions.Int64, Manifests: manifests.Int64}
	}
	return u, err
}

// OwnerUsage implements registry.CollectionTx.
func (t *tx) OwnerUsage(owner string) (registry.OwnerUsage, error) {
	return one(t, registry.ErrNotFound, scanUsage, `SELECT `+usageColumns+` FROM (SELECT CAST($1 AS TEXT) AS owner) o
		LEFT JOIN owner_usage u ON u.owner = $1 LEFT JOIN owner_quotas q ON q.owner = $1`, owner)
}

// OwnerUsages implements registry.CollectionTx.
func (t *tx) OwnerUsages(after string, limit int) ([]registry.OwnerUsage, error) {
	return all(t, scanUsage, `SELECT `+usageColumns+` FROM (SELECT owner FROM owner_usage UNION SELECT owner FROM owner_quotas) o
		LEFT JOIN owner_usage u ON u.owner = o.owner LEFT JOIN owner_quotas q ON q.owner = o.owner
		WHERE o.owner > $1 ORDER BY o.owner LIMIT $2`, after, atMost(limit))
}

// PutOwnerQuota implements registry.CollectionTx.
func (t *tx) PutOwnerQuota(owner string, q *registry.Quota) error {
	if q == nil {
		_, err := t.exec(`DELETE FROM owner_quotas WHERE owner = $1`, owner)
		return err
	}
	_, err := t.exec(`INSERT INTO owner_quotas (owner, max_bytes, max_versions, max_manifests) VALUES ($1, $2, $3, $4)
		ON CONFLICT (owner) DO UPDATE SET max_bytes = excluded.max_bytes, max_versions = excluded.max_versions, max_manifests = excluded.max_manifests`,
		owner, q.Bytes, q.Versions, q.Manifests)
	return err
}

// namedByOwner gives a row for every row of an owner's repositories that names bytes.
const namedByOwner = `SELECT r.owner, n.digest, n.size FROM
	(SELECT repository, digest, size FROM repository_blobs UNION ALL SELECT repository, digest, size FROM manifests) n
	JOIN repositories r ON r.name = n.repository`

// countedUsage counts what owner_usage should say.
const countedUsage = `SELECT o.owner, COALESCE(b.bytes, 0) AS bytes, COALESCE(v.versions, 0) AS versions, COALESCE(m.manifests, 0) AS manifests
	FROM (SELECT owner FROM repositories UNION SELECT owner FROM owner_usage) o
	LEFT JOIN (SELECT owner, CAST(SUM(size) AS BIGINT) AS bytes FROM
		(SELECT owner, digest, MAX(size) AS size FROM (` + namedByOwner + `) n GROUP BY owner, digest) d GROUP BY owner) b ON b.owner = o.owner
	LEFT JOIN (SELECT r.owner, COUNT(*) AS versions FROM versions v JOIN repositories r ON r.name = v.repository GROUP BY r.owner) v ON v.owner = o.owner
	LEFT JOIN (SELECT r.owner, COUNT(*) AS manifests FROM manifests m JOIN repositories r ON r.name = m.repository GROUP BY r.owner) m ON m.owner = o.owner`

// UsageDrift implements registry.CollectionTx.
func (t *tx) UsageDrift(limit int) (kept, counted []registry.OwnerUsage, err error) {
	err = each(t, func(r row) (pair [2]registry.OwnerUsage, err error) {
		k, c := &pair[0], &pair[1]
		err = r.Scan(&c.Owner, &c.Bytes, &c.Versions, &c.Manifests, &k.Bytes, &k.Versions, &k.Manifests)
		k.Owner = c.Owner
		return pair, err
	}, func(pair [2]registry.OwnerUsage) bool {
		kept, counted = append(kept, pair[0]), append(counted, pair[1])
		return true
	}, `SELECT c.owner, c.bytes, c.versions, c.manifests, COALESCE(u.bytes, 0), COALESCE(u.versions, 0), COALESCE(u.manifests, 0)
		FROM (`+countedUsage+`) c LEFT JOIN owner_usage u ON u.owner = c.owner
		WHERE c.bytes <> COALESCE(u.bytes, 0) OR c.versions <> COALESCE(u.versions, 0) OR c.manifests <> COALESCE(u.manifests, 0)
		ORDER BY c.owner LIMIT $1`, atMost(limit))
	return kept, counted, err
}

// RecountUsage implements registry.CollectionTx. The triggers on owner_blobs see the rows come anew, so the sums follow.
func (t *tx) RecountUsage() error {
	for _, statement := range []string{
		`DELETE FROM owner_blobs`,
		`DELETE FROM owner_usage`,
		`INSERT INTO owner_blobs (owner, digest, size, links) SELECT owner, digest, MAX(size), COUNT(*) FROM (` + namedByOwner + `) n GROUP BY owner, digest`,
		`INSERT INTO owner_usage (owner, bytes, versions, manifests) SELECT owner, bytes, versions, manifests FROM (` + countedUsage + `) c WHERE true
			ON CONFLICT (owner) DO UPDATE SET bytes = excluded.bytes, versions = excluded.versions, manifests = excluded.manifests`,
	} {
		if _, err := t.exec(statement); err != nil {
			return err
		}
	}
	return nil
}
