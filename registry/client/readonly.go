package client

import (
	"context"
	"net/http"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// ReadOnly is whether the registry takes no changes.
func (c *Client) ReadOnly(ctx context.Context) (wire.ReadOnly, error) {
	var out wire.ReadOnly
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/admin/read-only"}, &out)
	return out, err
}

// SetReadOnly makes the registry read-only, or lets it take changes again.
func (c *Client) SetReadOnly(ctx context.Context, in wire.ReadOnly) (wire.ReadOnly, error) {
	var out wire.ReadOnly
	err := c.callJSON(ctx, http.MethodPut, "/api/admin/read-only", in, &out)
	return out, err
}
