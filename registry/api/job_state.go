package api

import (
	"encoding/json"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// ReportJob serves POST /api/jobs/{id}/state {state}: who runs the job says how far it has come.
func (a *API) ReportJob(c *gin.Context) error {
	var in struct {
		State string `json:"state"`
	}
	if err := decode(c, &in); err != nil {
		return err
	}
	job, err := a.svc.ReportJob(c.Request.Context(), caller(c), c.Param("id"), in.State)
	if err != nil {
		return err
	}
	answer := wire.JobState{RunID: job.ID, Status: string(job.Status)}
	if until := a.svc.Lease(job); !until.IsZero() {
		answer.LeaseUntil = stamp(until)
	}
	c.JSON(http.StatusOK, answer)
	return nil
}

// Usage serves GET /api/usage/mine. An allowed_profiles that is null allows all.
func (a *API) Usage(c *gin.Context) error {
	q, document, err := a.svc.Usage(c.Request.Context(), caller(c))
	if err != nil {
		return err
	}
	if document == nil {
		document = json.RawMessage("{}")
	}
	c.JSON(http.StatusOK, gin.H{"quota": document, "usage": gin.H{
		"gpus_in_use": q.InUse, "max_concurrent_gpus": q.Limit, "jobs_in_use": q.Jobs, "max_concurrent_jobs": q.MaxJobs,
		"allowed_profiles": q.Profiles,
	}})
	return nil
}
