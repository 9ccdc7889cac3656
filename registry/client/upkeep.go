package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// Collect runs a garbage collection and tells each of what it removes.
func (c *Client) Collect(ctx context.Context, in wire.Collect, each func(registry.Removal) error) (registry.CollectReport, int, error) {
	var report registry.CollectReport
	omitted := 0
	err := c.lines(ctx, "/api/gc", in, func(l wire.UpkeepLine) error {
		switch {
		case l.Removal != nil:
			return each(*l.Removal)
		case l.Collected != nil:
			report, omitted = *l.Collected, l.Omitted
		}
		return nil
	})
	return report, omitted, err
}

// Fsck checks what the registry holds and tells each of what is wrong. progress may be nil.
func (c *Client) Fsck(ctx context.Context, in wire.Fsck, each func(registry.Finding) error, progress func(registry.FsckReport)) (registry.FsckReport, error) {
	var report registry.FsckReport
	err := c.lines(ctx, "/api/admin/fsck", in, func(l wire.UpkeepLine) error {
		switch {
		case l.Finding != nil:
			return each(*l.Finding)
		case l.Progress != nil && progress != nil:
			progress(*l.Progress)
		case l.Checked != nil:
			report = *l.Checked
		}
		return nil
	})
	return report, err
}

// Scrub is how far the scrub is.
func (c *Client) Scrub(ctx context.Context) (registry.ScrubState, error) {
	var out registry.ScrubState
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/admin/scrub"}, &out)
	return out, err
}

// lines posts in and takes the answer line by line. A stream that ends without its last line is an error.
func (c *Client) lines(ctx context.Context, path string, in any, each func(wire.UpkeepLine) error) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	res, err := c.send(ctx, request{method: http.MethodPost, path: path, body: bytes.NewReader(body), length: int64(len(body)), contentType: "application/json"})
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text := bufio.NewScanner(res.Body)
	text.Buffer(nil, limit.MiB)
	for text.Scan() {
		var l wire.UpkeepLine
		if err := json.Unmarshal(text.Bytes(), &l); err != nil {
			return fmt.Errorf("%s: the answer is not what this client expects: %w", path, err)
		}
		if l.Error != nil {
			return &registry.Error{Code: l.Error.Code, Message: l.Error.Message}
		}
		if err := each(l); err != nil {
			return err
		}
		if l.Collected != nil || l.Checked != nil {
			return nil
		}
	}
	if err := text.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return registry.Errorf(registry.Unavailable, "the server's answer broke off; what it did until then stands")
}

// Owners lists what owners hold and may hold, behind after, a page at a time.
func (c *Client) Owners(ctx context.Context, after string) ([]registry.OwnerLimit, error) {
	var out wire.Owners
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/admin/owners", query: url.Values{"after": {after}}}, &out)
	return out.Owners, err
}

// OwnerQuota is what an owner holds and may hold.
func (c *Client) OwnerQuota(ctx context.Context, owner string) (registry.OwnerLimit, error) {
	var out registry.OwnerLimit
	err := c.call(ctx, request{method: http.MethodGet, path: quotaPath(owner)}, &out)
	return out, err
}

// SetOwnerQuota gives an owner a limit of its own; nil takes it away.
func (c *Client) SetOwnerQuota(ctx context.Context, owner string, q *registry.Quota) (registry.OwnerLimit, error) {
	var out registry.OwnerLimit
	if q == nil {
		err := c.call(ctx, request{method: http.MethodDelete, path: quotaPath(owner)}, &out)
		return out, err
	}
	err := c.callJSON(ctx, http.MethodPut, quotaPath(owner), q, &out)
	return out, err
}

func quotaPath(owner string) string { return "/api/admin/owners/" + owner + "/quota" }
