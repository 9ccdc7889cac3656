package api

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

func jobOf(j registry.Job) wire.Job {
	return wire.Job{
		RunID: j.ID, JobRef: j.ID, Status: string(j.Status), Exp: j.Exp, Name: j.Name, Owner: j.Account, Dialect: j.Dialect,
		GPUs: j.GPUs, SubmittedAt: stamp(j.SubmittedAt), SpecDigest: j.SpecDigest.String(), Package: j.Package.Digest.String(),
	}
}

// The number of jobs in a list when the client names none, and the most.
const (
	defaultJobs = 15
	maxJobs     = 200
)

// ListJobs serves GET /api/jobs/mine[?limit=N][&chained=true]. Jobs of a chain are jobs of their own here, so that says nothing.
func (a *API) ListJobs(c *gin.Context) error {
	limit, err := intQuery(c, "limit", defaultJobs)
	if err != nil {
		return err
	}
	jobs, err := a.svc.Jobs(c.Request.Context(), caller(c), min(max(limit, 1), maxJobs))
	if err != nil {
		return err
	}
	rows := make([]wire.Job, len(jobs))
	for i, j := range jobs {
		rows[i] = jobOf(j)
	}
	c.JSON(http.StatusOK, wire.JobList{Jobs: rows})
	return nil
}

// FindJobs serves GET /api/jobs[?account=A][&all=true][&status=S][&limit=N][&before=ID]: our own list. Without account and all it is
// the caller's own; before is the last id of the page before.
func (a *API) FindJobs(c *gin.Context) error {
	f := registry.JobFilter{Account: caller(c).Account, Status: registry.JobStatus(c.Query("status")), Before: c.Query("before")}
	if account := c.Query("account"); account != "" {
		f.Account = account
	} else if c.Query("all") == "true" {
		f.Account = ""
	}
	var err error
	if f.Limit, err = intQuery(c, "limit", defaultJobs); err != nil {
		return err
	}
	f.Limit = min(max(f.Limit, 1), maxJobs)
	jobs, err := a.svc.FindJobs(c.Request.Context(), caller(c), f)
	if err != nil {
		return err
	}
	rows := make([]wire.Job, len(jobs))
	for i, j := range jobs {
		rows[i] = jobOf(j)
	}
	c.JSON(http.StatusOK, wire.JobList{Jobs: rows})
	return nil
}

// GetJob serves GET /api/jobs/{id} and GET /api/job?id=ID: the job with its decision and what came beside it.
func (a *API) GetJob(c *gin.Context) error {
	id := c.Param("id")
	if id == "" {
		id = c.Query("id")
	}
	job, err := a.svc.Job(c.Request.Context(), caller(c), id)
	if err != nil {
		return err
	}
	row := jobOf(job)
	row.Decision, row.Meta = job.Decision, job.Meta
	c.JSON(http.StatusOK, row)
	return nil
}

// findJob is who looks for a job.
type findJob = func(context.Context, auth.Principal, string) (registry.Job, error)

// sendOfJob answers with JSON that a job holds, byte for byte.
func (a *API) sendOfJob(c *gin.Context, find findJob, part func(registry.Job) []byte) error {
	job, err := find(c.Request.Context(), caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	c.Data(http.StatusOK, "application/json", part(job))
	return nil
}

// GetSpec serves GET /api/jobs/{id}/spec: the stored bytes that the receipt pins.
func (a *API) GetSpec(c *gin.Context) error {
	return a.sendOfJob(c, a.svc.JobFiles, func(job registry.Job) []byte { return job.Spec })
}

// GetDecision serves GET /api/jobs/{id}/decision: the decision as it was made, with what it was checked against.
func (a *API) GetDecision(c *gin.Context) error {
	return a.sendOfJob(c, a.svc.Job, func(job registry.Job) []byte { return job.Decision })
}

// GetReceipt serves GET /api/jobs/{id}/receipt: the signed DSSE envelope.
func (a *API) GetReceipt(c *gin.Context) error {
	return a.sendOfJob(c, a.svc.JobFiles, func(job registry.Job) []byte { return job.Receipt })
}

// StopJob serves POST /api/job/stop?id=ID.
func (a *API) StopJob(c *gin.Context) error {
	job, err := a.svc.StopJob(c.Request.Context(), caller(c), c.Query("id"))
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, gin.H{"stopped": job.Status == registry.JobStopped, "status": job.Status, "run_id": job.ID})
	return nil
}
