package client

import (
	"context"
	"net/http"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// SetJobQuota replaces an account's quota document by one that bounds what its jobs hold at a time.
func (c *Client) SetJobQuota(ctx context.Context, account string, q registry.JobQuota) error {
	return c.callJSON(ctx, http.MethodPost, "/api/admin/quotas", struct {
		Username string `json:"username"`
		registry.JobQuota
	}{account, q}, nil)
}

// ReportJob says how far a job has come: queued, running, succeeded, failed or cancelled.
func (c *Client) ReportJob(ctx context.Context, id, state string) (wire.JobState, error) {
	var out wire.JobState
	err := c.callJSON(ctx, http.MethodPost, "/api/jobs/"+id+"/state", map[string]string{"state": state}, &out)
	return out, err
}
