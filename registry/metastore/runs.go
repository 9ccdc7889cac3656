package metastore

import (
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

const (
	runHead = `r.id, r.job, r.account, r.node, r.sender, r.state, r.attested, r.key, r.mode, r.exit_code,
	r.started_at, r.ended_at, r.received_at, r.changed_at, `
	runColumns = runHead + `r.started, r.final`
	// briefRunColumns leave out the envelopes, for lists.
	briefRunColumns = runHead + `NULL, NULL`
)

func scanRun(r row) (v registry.Run, err error) {
	err = r.Scan(&v.ID, &v.Job, &v.Account, &v.Node, &v.Sender, &v.State, &v.Attested, &v.Key, &v.Mode, &v.ExitCode,
		timeColumn{&v.StartedAt}, timeColumn{&v.EndedAt}, timeColumn{&v.ReceivedAt}, timeColumn{&v.ChangedAt}, &v.Started, &v.Final)
	return v, err
}

func noRun(id string) *registry.Error {
	return registry.Errorf(registry.NotFound, "there is no run %.100q", id)
}

// InsertRun implements registry.RunTx.
func (t *tx) InsertRun(v registry.Run) error {
	err := t.insert(conflict("run %.100q exists already", v.ID),
		`INSERT INTO runs (id, job, account, node, sender, state, attested, key, mode, exit_code, started_at, ended_at, received_at, changed_at, started, final)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT DO NOTHING`,
		v.ID, v.Job, v.Account, v.Node, v.Sender, string(v.State), v.Attested, v.Key, v.Mode, v.ExitCode,
		micros(v.StartedAt), micros(v.EndedAt), micros(v.ReceivedAt), micros(v.ChangedAt), v.Started, v.Final)
	if err = t.named(err, noJob(v.Job)); err != nil {
		return err
	}
	for i, p := range v.Packs {
		args := append([]any{v.ID, micros(v.ReceivedAt), !v.State.Final()}, pinValues(i, p)...)
		if _, err := t.exec(`INSERT INTO run_packs (run, at, open, `+pinColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`, args...); err != nil {
			return err
		}
		for _, d := range []digest.Digest{p.Content, p.Tree, p.Manifest} {
			if d.IsZero() {
				continue
			}
			_, err := t.exec(`INSERT INTO run_digests (digest, run, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, d.String(), v.ID, micros(v.ReceivedAt))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// UpdateRun implements registry.RunTx.
func (t *tx) UpdateRun(v registry.Run) error {
	err := t.change(noRun(v.ID),
		`UPDATE runs SET state = $2, attested = $3, key = $4, mode = $5, exit_code = $6, started_at = $7, ended_at = $8, changed_at = $9, started = $10, final = $11 WHERE id = $1`,
		v.ID, string(v.State), v.Attested, v.Key, v.Mode, v.ExitCode, micros(v.StartedAt), micros(v.EndedAt), micros(v.ChangedAt), v.Started, v.Final)
	if err != nil || !v.State.Final() {
		return err
	}
	_, err = t.exec(`UPDATE run_packs SET open = 0 WHERE run = $1 AND open = 1`, v.ID)
	return err
}

// Run implements registry.RunTx.
func (t *tx) Run(id string) (registry.Run, error) {
	v, err := one(t, noRun(id), scanRun, `SELECT `+runColumns+` FROM runs r WHERE r.id = $1`, id)
	if err != nil {
		return v, err
	}
	return v, t.packsOf(&v)
}

func (t *tx) packsOf(v *registry.Run) (err error) {
	v.Packs, err = all(t, scanPin, `SELECT `+pinColumns+` FROM run_packs WHERE run = $1 ORDER BY position`, v.ID)
	return err
}

// Runs implements registry.RunTx. One index gives the runs in their order: that of the pack, of the digest, or of the first
// of the other fields. Where an account is given it is that of its runs: else who has few would have all runs of a pack read. With EXISTS PostgreSQL might begin with those.
func (t *tx) Runs(f registry.RunFilter) ([]registry.Run, error) {
	var q conditions
	from, at, id := `runs r`, `r.received_at`, `r.id`
	switch {
	case f.Account != "" && f.Pack != "":
		q.list = append(q.list, `(SELECT 1 FROM run_packs k WHERE k.run = r.id AND k.pack = `+q.arg(f.Pack)+` AND k.version = `+q.arg(f.Version)+q.amongDigests(f.Digest)+` LIMIT 1) = 1`)
	case f.Account != "" && !f.Digest.IsZero():
		q.add(`(SELECT 1 FROM run_digests k WHERE k.run = r.id AND k.digest = %s LIMIT 1) = 1`, f.Digest.String())
	case f.Pack != "":
		from, at, id = `run_packs k JOIN runs r ON r.id = k.run`, `k.at`, `k.run`
		q.add(`k.pack = %s`, f.Pack)
		q.list = append(q.list, `k.version = `+q.arg(f.Version)+q.amongDigests(f.Digest))
	case !f.Digest.IsZero():
		from, at, id = `run_digests k JOIN runs r ON r.id = k.run`, `k.at`, `k.run`
		q.add(`k.digest = %s`, f.Digest.String())
	}
	q.equal(`r.job`, f.Job)
	q.equal(`r.node`, f.Node)
	q.equal(`r.account`, f.Account)
	q.equal(`r.state`, string(f.State))
	if f.Before != "" {
		q.add(`(`+at+`, `+id+`) < (SELECT b.received_at, b.id FROM runs b WHERE b.id = %s)`, f.Before)
	}
	list, err := all(t, scanRun, `SELECT `+briefRunColumns+` FROM `+from+q.where()+` ORDER BY `+at+` DESC, `+id+` DESC LIMIT `+q.arg(atMost(f.Limit)), q.args...)
	for i := range list {
		if err == nil {
			err = t.packsOf(&list[i])
		}
	}
	return list, err
}

// amongDigests is the further condition that a pack has the digest, unless that is zero.
func (c *conditions) amongDigests(d digest.Digest) string {
	if d.IsZero() {
		return ""
	}
	return ` AND ` + c.arg(d.String()) + ` IN (k.content, k.tree, k.manifest)`
}

// JobRuns implements registry.RunTx.
func (t *tx) JobRuns(job string) (n registry.JobRuns, err error) {
	err = t.get(`SELECT COUNT(*), `+sum(`state = 'started'`)+`, `+sum(`state = 'ended' AND exit_code <> 0`)+` FROM runs WHERE job = $1`, []any{job}, &n.All, &n.Open, &n.Failed)
	return n, err
}

// PackUse implements registry.RunTx. A job counts as heard of while its lease runs.
func (t *tx) PackUse(pack, version string, silent, now time.Time) (u registry.PackUse, err error) {
	of := func(q *conditions) {
		q.add(`k.pack = %s`, pack)
		q.equal(`k.version`, version)
	}
	var jobs, runs, ever conditions
	of(&jobs)
	heard := `CASE WHEN j.lease_until > ` + jobs.arg(micros(now)) + ` THEN 1 ELSE 0 END`
	err = t.get(`SELECT `+sum(heard+` = 1 AND j.status <> 'running'`)+`, `+sum(heard+` = 1 AND j.status = 'running'`)+`, `+sum(heard+` = 0`)+`
		FROM job_packs k JOIN jobs j ON j.id = k.job`+jobs.where()+` AND k.open = 1`, jobs.args, &u.QueuedJobs, &u.RunningJobs, &u.SilentJobs)
	if err != nil {
		return u, err
	}
	of(&runs)
	since := runs.arg(micros(silent))
	err = t.get(`SELECT `+sum(`r.changed_at >= `+since)+`, `+sum(`r.changed_at < `+since)+`
		FROM run_packs k JOIN runs r ON r.id = k.run`+runs.where()+` AND k.open = 1`, runs.args, &u.ActiveRuns, &u.SilentRuns)
	if err != nil {
		return u, err
	}
	of(&ever)
	err = t.get(`SELECT COUNT(*) FROM run_packs k`+ever.where(), ever.args, &u.Runs)
	return u, err
}

// sum counts the rows for which a condition holds.
func sum(condition string) string {
	return `COALESCE(CAST(SUM(CASE WHEN ` + condition + ` THEN 1 ELSE 0 END) AS BIGINT), 0)`
}

// insertJobPacks keeps what a job pins.
func (t *tx) insertJobPacks(j registry.Job) error {
	for i, p := range j.Pins {
		args := append([]any{j.ID, !j.Status.Ended()}, pinValues(i, p)...)
		if _, err := t.exec(`INSERT INTO job_packs (job, open, `+pinColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, args...); err != nil {
			return err
		}
	}
	return nil
}

// UnindexedJobs implements registry.RunTx.
func (t *tx) UnindexedJobs(limit int) ([]registry.Job, error) {
	return all(t, scanJob, `SELECT id, account, dialect, exp, name, project, status, gpus, NULL, spec_digest,
		package_media_type, package_digest, package_size, NULL, NULL, receipt, key, submitted_at, lease_until
		FROM jobs WHERE indexed = 0 ORDER BY id LIMIT $1`, atMost(limit))
}

// IndexJob implements registry.RunTx.
func (t *tx) IndexJob(j registry.Job) error {
	n, err := t.exec(`UPDATE jobs SET indexed = 1 WHERE id = $1 AND indexed = 0`, j.ID)
	if err != nil {
		return err
	}
	if n == 0 {
		_, err := t.Job(j.ID)
		return err
	}
	return t.insertJobPacks(j)
}
