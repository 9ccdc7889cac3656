package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// JobPage lists jobs, newest first: the caller's own, or those of the filter's account, or with all everybody's, as far as the
// caller may see them. Filter.Before is the last id of the page before.
func (c *Client) JobPage(ctx context.Context, f registry.JobFilter, all bool) ([]wire.Job, error) {
	q := url.Values{}
	set(q, "account", f.Account)
	set(q, "status", string(f.Status))
	set(q, "before", f.Before)
	if all {
		q.Set("all", "true")
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	var out wire.JobList
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/jobs", query: q}, &out)
	return out.Jobs, err
}

// Handovers lists rows of the outbox, newest job first.
func (c *Client) Handovers(ctx context.Context, f registry.HandoverFilter) ([]wire.Handover, error) {
	q := url.Values{}
	set(q, "target", f.Target)
	set(q, "state", string(f.State))
	set(q, "job", f.Job)
	set(q, "before", f.Before)
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	var out wire.HandoverList
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/admin/handover", query: q}, &out)
	return out.Handovers, err
}

// Handover is one row of the outbox.
func (c *Client) Handover(ctx context.Context, id string) (wire.Handover, error) {
	var out wire.Handover
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/admin/handover/" + url.PathEscape(id)}, &out)
	return out, err
}

// RetryHandovers has rows tried again, and gives how many.
func (c *Client) RetryHandovers(ctx context.Context, which wire.HandoverRetry) (int, error) {
	var out wire.HandoversRetried
	err := c.callJSON(ctx, http.MethodPost, "/api/admin/handover", which, &out)
	return out.Retried, err
}

func set(q url.Values, key, value string) {
	if value != "" {
		q.Set(key, value)
	}
}
