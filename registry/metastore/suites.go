package metastore

import (
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

const (
	suiteHead = `s.repository, s.version, s.key, s.kind, s.owner, s.name, s.dialect, s.manifest, s.tree, `
	suiteTail = `, s.files, s.bytes, s.created_by, s.created_at, r.private`
	suiteFrom = ` FROM suite_versions s JOIN repositories r ON r.name = s.repository `
	// briefSuites leave out what can be large, for lists.
	briefSuites = `SELECT ` + suiteHead + `NULL` + suiteTail + suiteFrom
	wholeSuites = `SELECT ` + suiteHead + `s.document` + suiteTail + suiteFrom
)

func scanSuite(r row) (v registry.SuiteVersion, err error) {
	err = r.Scan(&v.Repository, &v.Version, &v.Key, &v.Kind, &v.Owner, &v.Name, &v.Dialect, digestColumn{&v.Manifest}, digestColumn{&v.Tree},
		(*[]byte)(&v.Document), &v.Files, &v.Bytes, &v.CreatedBy, timeColumn{&v.CreatedAt}, &v.Private)
	return v, err
}

// InsertSuiteVersion implements registry.SuiteTx. The ledger decides. Errors besides Conflict: ErrNameUnknown when the
// repository does not exist.
func (t *tx) InsertSuiteVersion(v registry.SuiteVersion) error {
	seq, err := t.appendLedger(v.Repository, v.Key, v.LedgerRow())
	if err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO suite_versions (repository, version, key, seq, kind, owner, name, dialect, manifest, tree, document, files, bytes, created_by, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		v.Repository, v.Version, v.Key, seq, string(v.Kind), v.Owner, v.Name, string(v.Dialect), v.Manifest.String(), v.Tree.String(), []byte(v.Document),
		v.Files, v.Bytes, v.CreatedBy, micros(v.CreatedAt))
	return t.named(err, noRepository(v.Repository))
}

// SuiteVersion implements registry.SuiteTx.
func (t *tx) SuiteVersion(repository, version string) (registry.SuiteVersion, error) {
	return one(t, noVersion(repository, version), scanSuite, wholeSuites+`WHERE s.repository = $1 AND s.version = $2`, repository, version)
}

// SuiteVersions implements registry.SuiteTx. Of two with the same time the one that was committed first comes first.
func (t *tx) SuiteVersions(repository string) ([]registry.SuiteVersion, error) {
	return all(t, scanSuite, briefSuites+`WHERE s.repository = $1 ORDER BY s.created_at, s.seq`, repository)
}

// SuitesOf implements registry.SuiteTx.
func (t *tx) SuitesOf(kind suite.Kind) ([]registry.SuiteVersion, error) {
	return all(t, scanSuite, briefSuites+`WHERE s.kind = $1 ORDER BY s.repository, s.created_at, s.seq`, string(kind))
}

// HoldsSuites implements registry.SuiteTx.
func (t *tx) HoldsSuites(kind suite.Kind) (bool, error) {
	var n int
	err := t.get(`SELECT CASE WHEN EXISTS (SELECT 1 FROM suite_versions WHERE kind = $1) THEN 1 ELSE 0 END`, []any{string(kind)}, &n)
	return n == 1, err
}

// SuiteByManifest implements registry.SuiteTx.
func (t *tx) SuiteByManifest(repository string, d digest.Digest) (registry.SuiteVersion, error) {
	return one(t, registry.Errorf(registry.NotFound, "no version of %.300q has the manifest %s", repository, d), scanSuite,
		wholeSuites+`WHERE s.repository = $1 AND s.manifest = $2 ORDER BY s.seq LIMIT 1`, repository, d.String())
}

const suiteFileColumns = `repository, version, name, digest, size, account, expires_at`

func scanSuiteFile(r row) (f registry.SuiteFile, err error) {
	err = r.Scan(&f.Repository, &f.Version, &f.Name, digestColumn{&f.Digest}, &f.Size, &f.Account, timeColumn{&f.ExpiresAt})
	return f, err
}

// PutSuiteFile implements registry.SuiteTx.
func (t *tx) PutSuiteFile(f registry.SuiteFile) error {
	_, err := t.exec(`INSERT INTO suite_files (`+suiteFileColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (repository, version, name) DO UPDATE SET digest = excluded.digest, size = excluded.size, account = excluded.account, expires_at = excluded.expires_at`,
		f.Repository, f.Version, f.Name, f.Digest.String(), f.Size, f.Account, micros(f.ExpiresAt))
	return t.named(err, noRepository(f.Repository))
}

// SuiteFile implements registry.SuiteTx.
func (t *tx) SuiteFile(repository, version, name string) (registry.SuiteFile, error) {
	return one(t, registry.Errorf(registry.NotFound, "no file %.200q was uploaded for version %.130q of %.300q", name, version, repository), scanSuiteFile,
		`SELECT `+suiteFileColumns+` FROM suite_files WHERE repository = $1 AND version = $2 AND name = $3`, repository, version, name)
}

// SuiteFiles implements registry.SuiteTx.
func (t *tx) SuiteFiles(repository, version string, limit int) ([]registry.SuiteFile, error) {
	return all(t, scanSuiteFile, `SELECT `+suiteFileColumns+` FROM suite_files WHERE repository = $1 AND version = $2 ORDER BY name LIMIT $3`,
		repository, version, atMost(limit))
}

// SuiteFileCount implements registry.SuiteTx.
func (t *tx) SuiteFileCount(repository, version string) (n int, err error) {
	err = t.get(`SELECT COUNT(*) FROM suite_files WHERE repository = $1 AND version = $2`, []any{repository, version}, &n)
	return n, err
}

// DeleteSuiteFiles implements registry.SuiteTx.
func (t *tx) DeleteSuiteFiles(repository, version string) error {
	_, err := t.exec(`DELETE FROM suite_files WHERE repository = $1 AND version = $2`, repository, version)
	return err
}

// ForgetSuiteFiles implements registry.SuiteTx. A file has expired from its ExpiresAt on.
func (t *tx) ForgetSuiteFiles(now time.Time) error {
	_, err := t.exec(`DELETE FROM suite_files WHERE expires_at <= $1 AND NOT EXISTS (SELECT 1 FROM suite_files f
		WHERE f.repository = suite_files.repository AND f.version = suite_files.version AND f.expires_at > $1)`, micros(now))
	return err
}

const runnerColumns = `id, repository, address, version, runner_version, credential_hash, created_by, created_at, beat_at`

func scanRunner(r row) (n registry.Runner, err error) {
	err = r.Scan(&n.ID, &n.Repository, &n.Address, &n.Version, &n.RunnerVersion, hashColumn{&n.CredentialHash}, &n.CreatedBy,
		timeColumn{&n.CreatedAt}, timeColumn{&n.BeatAt})
	return n, err
}

// InsertRunner implements registry.SuiteTx.
func (t *tx) InsertRunner(n registry.Runner) error {
	err := t.insert(conflict("runner %.100q exists already", n.ID),
		`INSERT INTO environment_runners (`+runnerColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
		n.ID, n.Repository, n.Address, n.Version, n.RunnerVersion, n.CredentialHash[:], n.CreatedBy, micros(n.CreatedAt), micros(n.BeatAt))
	return t.named(err, noRepository(n.Repository))
}

func noRunner(id string) *registry.Error {
	return registry.Errorf(registry.NotFound, "there is no runner %.100q", id)
}

// Runner implements registry.SuiteTx.
func (t *tx) Runner(id string) (registry.Runner, error) {
	return one(t, noRunner(id), scanRunner, `SELECT `+runnerColumns+` FROM environment_runners WHERE id = $1`, id)
}

// Runners implements registry.SuiteTx.
func (t *tx) Runners(repository string) ([]registry.Runner, error) {
	return all(t, scanRunner, `SELECT `+runnerColumns+` FROM environment_runners WHERE repository = $1 ORDER BY created_at, id`, repository)
}

// BeatRunner implements registry.SuiteTx.
func (t *tx) BeatRunner(id, address, runnerVersion string, at time.Time) error {
	return t.change(noRunner(id), `UPDATE environment_runners SET address = $2, runner_version = $3, beat_at = $4 WHERE id = $1`,
		id, address, runnerVersion, micros(at))
}

// DeleteRunner implements registry.SuiteTx.
func (t *tx) DeleteRunner(id string) error {
	return t.change(noRunner(id), `DELETE FROM environment_runners WHERE id = $1`, id)
}
