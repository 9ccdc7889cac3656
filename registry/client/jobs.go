package client

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// Submit admits a job by its JobSpec alone.
func (c *Client) Submit(ctx context.Context, spec []byte) (wire.Submitted, error) {
	var out wire.Submitted
	err := c.call(ctx, specRequest("/api/jobs", spec), &out)
	return out, err
}

// DryRun asks gate 2 and stores nothing. A refusal is a decision, not an error.
func (c *Client) DryRun(ctx context.Context, spec []byte) (rule.Decision, error) {
	var out rule.Decision
	err := c.call(ctx, specRequest("/api/admission", spec), &out)
	return out, err
}

func specRequest(path string, spec []byte) request {
	return request{method: http.MethodPost, path: path, body: bytes.NewReader(spec), length: int64(len(spec)), contentType: "application/json"}
}

// Job is one job with its decision.
func (c *Client) Job(ctx context.Context, id string) (wire.Job, error) {
	var out wire.Job
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/jobs/" + id}, &out)
	return out, err
}

// JobSpec is the stored spec of a job, byte for byte.
func (c *Client) JobSpec(ctx context.Context, id string) ([]byte, error) {
	return c.document(ctx, "/api/jobs/"+id+"/spec")
}

// JobPackage opens the package of a job; size is -1 when the server does not say. The caller closes it, and verifies it: the
// receipt pins its digest.
func (c *Client) JobPackage(ctx context.Context, id string) (body io.ReadCloser, size int64, err error) {
	res, err := c.send(ctx, request{method: http.MethodGet, path: "/api/jobs/" + id + "/package"})
	if err != nil {
		return nil, 0, err
	}
	return res.Body, res.ContentLength, nil
}

// Receipt is the signed receipt of a job.
func (c *Client) Receipt(ctx context.Context, id string) ([]byte, error) {
	return c.document(ctx, "/api/jobs/"+id+"/receipt")
}

// Trust is the registry's public key and id, as sf launch --trust reads them.
func (c *Client) Trust(ctx context.Context) ([]byte, error) { return c.document(ctx, "/api/trust") }

// document fetches a small document as it is.
func (c *Client) document(ctx context.Context, path string) ([]byte, error) {
	res, err := c.send(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(io.LimitReader(res.Body, limit.JSONBody))
}
