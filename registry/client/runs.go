package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gatehouse-registry/gatehouse/admission/denylist"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// SendRun sends a statement about a run. To send the same one again does no harm.
func (c *Client) SendRun(ctx context.Context, envelope []byte) (wire.RunReceived, error) {
	var out wire.RunReceived
	err := c.call(ctx, request{method: http.MethodPost, path: "/api/runs", body: bytes.NewReader(envelope), length: int64(len(envelope)), contentType: "application/json"}, &out)
	return out, err
}

// Runs is a page of runs, newest first.
func (c *Client) Runs(ctx context.Context, q wire.RunQuery) (wire.RunList, error) {
	query := url.Values{}
	for name, value := range map[string]string{"plugin": q.Plugin, "digest": q.Digest, "job": q.Job, "node": q.Node, "state": q.State, "cursor": q.Cursor} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	var out wire.RunList
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/runs", query: query}, &out)
	return out, err
}

// Run is one run with what was sent about it.
func (c *Client) Run(ctx context.Context, id string) (wire.Run, error) {
	var out wire.Run
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/runs/" + url.PathEscape(id)}, &out)
	return out, err
}

// DenyList is the registry's signed list of revoked versions, with a tag by which to ask for the next one. It is nil when the
// list is still the one of the tag. It proves nothing: see denylist.Verify.
func (c *Client) DenyList(ctx context.Context, tag string) (envelope []byte, newTag string, err error) {
	r := request{method: http.MethodGet, path: "/api/denylist"}
	if tag != "" {
		r.header = map[string]string{"If-None-Match": tag}
	}
	res, err := c.sendFor(ctx, r, http.StatusNotModified)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotModified {
		return nil, tag, nil
	}
	if envelope, err = io.ReadAll(io.LimitReader(res.Body, denylist.MaxEnvelope+1)); err != nil {
		return nil, "", fmt.Errorf("GET /api/denylist: %w", err)
	}
	return envelope, res.Header.Get("ETag"), nil
}

// Revoke makes a version one that must not be used any more, for good.
func (c *Client) Revoke(ctx context.Context, id, version, reason string) (wire.Revoked, error) {
	var out wire.Revoked
	err := c.callJSON(ctx, http.MethodPost, "/api/plugins/"+id+"/revoke", wire.RevokeRequest{Version: version, Reason: reason}, &out)
	return out, err
}
