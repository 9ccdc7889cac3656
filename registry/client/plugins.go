package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// Plugins lists every pack that the account may read.
func (c *Client) Plugins(ctx context.Context) ([]wire.PluginRow, error) {
	var out wire.PluginList
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/plugins"}, &out)
	return out.Plugins, err
}

// Plugin finds one version of a pack, the latest when version is "".
func (c *Client) Plugin(ctx context.Context, id, version string) (wire.Plugin, error) {
	var out wire.Plugin
	r := request{method: http.MethodGet, path: "/api/plugins/" + id}
	if version != "" {
		r.query = url.Values{"version": {version}}
	}
	err := c.call(ctx, r, &out)
	return out, err
}

// SetEnabled enables or disables a version, all when version is "". reason is for a disable, and may be "".
func (c *Client) SetEnabled(ctx context.Context, id, version string, enabled bool, reason string) (wire.Enabled, error) {
	var out wire.Enabled
	err := c.callJSON(ctx, http.MethodPatch, "/api/plugins/"+id, wire.EnableRequest{Enabled: &enabled, Version: version, Reason: reason}, &out)
	return out, err
}
