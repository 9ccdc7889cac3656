package metastore

import (
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
)

const (
	jobColumns = `id, account, dialect, exp, name, project, status, gpus, spec, spec_digest,
	package_media_type, package_digest, package_size, meta, decision, receipt, key, submitted_at, lease_until`
	// briefJobColumns leave out what can be large, for lists.
	briefJobColumns = `id, account, dialect, exp, name, project, status, gpus, NULL, spec_digest,
	package_media_type, package_digest, package_size, NULL, NULL, NULL, key, submitted_at, lease_until`
)

func scanJob(r row) (j registry.Job, err error) {
	err = r.Scan(&j.ID, &j.Account, &j.Dialect, &j.Exp, &j.Name, &j.Project, &j.Status, &j.GPUs, &j.Spec, digestColumn{&j.SpecDigest},
		&j.Package.MediaType, digestColumn{&j.Package.Digest}, &j.Package.Size,
		(*[]byte)(&j.Meta), (*[]byte)(&j.Decision), &j.Receipt, &j.Key, timeColumn{&j.SubmittedAt}, timeColumn{&j.LeaseUntil})
	return j, err
}

// InsertJob implements registry.JobTx. Errors besides Conflict: ErrNotFound when the account does not exist.
func (t *tx) InsertJob(j registry.Job) error {
	err := t.insert(conflict("job %.100q, or a job of account %.100q with the key %.100q, exists already", j.ID, j.Account, j.Key),
		`INSERT INTO jobs (`+jobColumns+`, indexed) VALUES
		($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, 1) ON CONFLICT DO NOTHING`,
		j.ID, j.Account, string(j.Dialect), j.Exp, j.Name, j.Project, string(j.Status), j.GPUs, j.Spec, j.SpecDigest.String(),
		j.Package.MediaType, j.Package.Digest.String(), j.Package.Size, []byte(j.Meta), []byte(j.Decision), j.Receipt, j.Key,
		micros(j.SubmittedAt), micros(j.LeaseUntil))
	if err = t.named(err, noAccount(j.Account)); err != nil {
		return err
	}
	return t.insertJobPacks(j)
}

func noJob(id string) *registry.Error {
	return registry.Errorf(registry.NotFound, "there is no job %.100q", id)
}

// Job implements registry.JobTx.
func (t *tx) Job(id string) (registry.Job, error) {
	return one(t, noJob(id), scanJob, `SELECT `+jobColumns+` FROM jobs WHERE id = $1`, id)
}

// JobByKey implements registry.JobTx. The empty key names no job.
func (t *tx) JobByKey(account, key string) (registry.Job, error) {
	return one(t, registry.Errorf(registry.NotFound, "account %.100q has no job with the key %.100q", account, key), scanJob,
		`SELECT `+jobColumns+` FROM jobs WHERE account = $1 AND key = $2 AND key <> ''`, account, key)
}

// Jobs implements registry.JobTx.
func (t *tx) Jobs(account string, limit int) ([]registry.Job, error) {
	if account == "" {
		return all(t, scanJob, `SELECT `+briefJobColumns+` FROM jobs ORDER BY submitted_at DESC, id DESC LIMIT $1`, atMost(limit))
	}
	return all(t, scanJob, `SELECT `+briefJobColumns+` FROM jobs WHERE account = $1 ORDER BY submitted_at DESC, id DESC LIMIT $2`,
		account, atMost(limit))
}

// FindJobs implements registry.JobTx.
func (t *tx) FindJobs(f registry.JobFilter) ([]registry.Job, error) {
	var q conditions
	q.equal("account", f.Account)
	q.equal("status", string(f.Status))
	if f.Before != "" {
		q.add(`(submitted_at, id) < (SELECT b.submitted_at, b.id FROM jobs b WHERE b.id = %s)`, f.Before)
	}
	return all(t, scanJob, `SELECT `+briefJobColumns+` FROM jobs`+q.where()+` ORDER BY submitted_at DESC, id DESC LIMIT `+q.arg(atMost(f.Limit)), q.args...)
}

// SetJobStatus implements registry.JobTx.
func (t *tx) SetJobStatus(id string, s registry.JobStatus, leaseUntil time.Time) error {
	err := t.change(noJob(id), `UPDATE jobs SET status = $2, lease_until = $3 WHERE id = $1`, id, string(s), micros(leaseUntil))
	if err != nil || !s.Ended() {
		return err
	}
	_, err = t.exec(`UPDATE job_packs SET open = 0 WHERE job = $1 AND open = 1`, id)
	return err
}

// Leased implements registry.JobTx. A lease runs until, and not at, its LeaseUntil.
func (t *tx) Leased(account string, now time.Time) (l registry.Leased, err error) {
	err = t.get(`SELECT COUNT(*), CAST(COALESCE(SUM(gpus), 0) AS BIGINT) FROM jobs WHERE account = $1 AND lease_until > $2`,
		[]any{account, micros(now)}, &l.Jobs, &l.GPUs)
	return l, err
}

// InsertPackageUpload implements registry.JobTx. Errors: Conflict when the id is taken.
func (t *tx) InsertPackageUpload(u registry.PackageUpload) error {
	return t.insert(conflict("package upload %.100q exists already", u.ID),
		`INSERT INTO package_uploads (id, account, token_hash, want_media_type, want_digest, want_size, stored, expires_at, experiment)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING`,
		u.ID, u.Account, u.TokenHash[:], u.Want.MediaType, u.Want.Digest.String(), u.Want.Size, u.Stored, micros(u.ExpiresAt), u.Experiment)
}

func noPackageUpload(id string) *registry.Error {
	return registry.Errorf(registry.NotFound, "there is no package upload %.100q", id)
}

// PackageUpload implements registry.JobTx.
func (t *tx) PackageUpload(id string) (registry.PackageUpload, error) {
	return one(t, noPackageUpload(id), func(r row) (u registry.PackageUpload, err error) {
		err = r.Scan(&u.ID, &u.Account, hashColumn{&u.TokenHash}, &u.Want.MediaType, digestColumn{&u.Want.Digest}, &u.Want.Size,
			&u.Stored, timeColumn{&u.ExpiresAt}, &u.Experiment)
		return u, err
	}, `SELECT id, account, token_hash, want_media_type, want_digest, want_size, stored, expires_at, experiment FROM package_uploads WHERE id = $1`, id)
}

// MarkPackageStored implements registry.JobTx.
func (t *tx) MarkPackageStored(id, experiment string) error {
	return t.change(noPackageUpload(id), `UPDATE package_uploads SET stored = $2, experiment = $3 WHERE id = $1`, id, true, experiment)
}

// InsertPreview implements registry.JobTx. Errors: Conflict when the id is taken.
func (t *tx) InsertPreview(p registry.Preview) error {
	return t.insert(conflict("preview %.100q exists already", p.ID),
		`INSERT INTO previews (id, account, digest, document, expires_at, job_id) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
		p.ID, p.Account, p.Digest.String(), p.Document, micros(p.ExpiresAt), p.JobID)
}

func noPreview(id string) *registry.Error {
	return registry.Errorf(registry.NotFound, "there is no preview %.100q", id)
}

// Preview implements registry.JobTx.
func (t *tx) Preview(id string) (registry.Preview, error) {
	return one(t, noPreview(id), func(r row) (p registry.Preview, err error) {
		err = r.Scan(&p.ID, &p.Account, digestColumn{&p.Digest}, &p.Document, timeColumn{&p.ExpiresAt}, &p.JobID)
		return p, err
	}, `SELECT id, account, digest, document, expires_at, job_id FROM previews WHERE id = $1`, id)
}

// MarkPreviewCommitted implements registry.JobTx.
func (t *tx) MarkPreviewCommitted(id, jobID string) error {
	return t.change(noPreview(id), `UPDATE previews SET job_id = $2 WHERE id = $1`, id, jobID)
}

// DeleteExpired implements registry.JobTx. Both have expired from their ExpiresAt on.
func (t *tx) DeleteExpired(now time.Time) error {
	if _, err := t.exec(`DELETE FROM previews WHERE expires_at <= $1 AND job_id = ''`, micros(now)); err != nil {
		return err
	}
	_, err := t.exec(`DELETE FROM package_uploads WHERE expires_at <= $1`, micros(now))
	return err
}
