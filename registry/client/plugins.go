package client

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
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

// Package opens the archive of a version; the caller closes it and verifies the bytes.
func (c *Client) Package(ctx context.Context, id, version string) (io.ReadCloser, int64, error) {
	res, err := c.send(ctx, request{method: http.MethodGet, path: "/api/plugins/" + id + "/package", query: url.Values{"version": {version}}})
	if err != nil {
		return nil, 0, err
	}
	return res.Body, res.ContentLength, nil
}

// SetEnabled enables or disables a version, all when version is "".
func (c *Client) SetEnabled(ctx context.Context, id, version string, enabled bool) (wire.Enabled, error) {
	var out wire.Enabled
	err := c.callJSON(ctx, http.MethodPatch, "/api/plugins/"+id, wire.EnableRequest{Enabled: &enabled, Version: version}, &out)
	return out, err
}

// Whoami is the account that the token is of.
func (c *Client) Whoami(ctx context.Context) (wire.User, error) {
	var out wire.Whoami
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/whoami"}, &out)
	return out.User, err
}

// Accounts lists all accounts.
func (c *Client) Accounts(ctx context.Context) ([]wire.User, error) {
	var out wire.UserList
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/admin/users"}, &out)
	return out.Users, err
}

// CreateAccount adds an account.
func (c *Client) CreateAccount(ctx context.Context, u wire.NewUser) (wire.User, error) {
	var out wire.User
	err := c.callJSON(ctx, http.MethodPost, "/api/admin/users", u, &out)
	return out, err
}

// SetRole changes an account's role.
func (c *Client) SetRole(ctx context.Context, account string, role auth.Role) (wire.User, error) {
	return c.patchAccount(ctx, account, "role", string(role))
}

// SetDisabled locks an account out or lets it in again.
func (c *Client) SetDisabled(ctx context.Context, account string, disabled bool) (wire.User, error) {
	return c.patchAccount(ctx, account, "disabled", strconv.FormatBool(disabled))
}

func (c *Client) patchAccount(ctx context.Context, account, field, value string) (wire.User, error) {
	var out wire.User
	path := "/api/admin/users/" + account + "/" + field
	err := c.call(ctx, request{method: http.MethodPatch, path: path, query: url.Values{field: {value}}}, &out)
	return out, err
}

// CreateToken makes a token; its Secret is shown this once.
func (c *Client) CreateToken(ctx context.Context, t wire.NewToken) (wire.Token, error) {
	var out wire.Token
	err := c.callJSON(ctx, http.MethodPost, "/api/tokens", t, &out)
	return out, err
}

// Tokens lists the tokens of an account; "" means of all accounts.
func (c *Client) Tokens(ctx context.Context, account string) ([]wire.Token, error) {
	q := url.Values{"account": {account}}
	if account == "" {
		q = url.Values{"all": {"true"}}
	}
	var out wire.TokenList
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/tokens", query: q}, &out)
	return out.Tokens, err
}

// RevokeToken ends a token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/api/tokens/" + id}, nil)
}
