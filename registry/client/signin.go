package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// StartDevice begins a device flow. device is what this client says of itself, as registry.ParseDevice reads it.
func (c *Client) StartDevice(ctx context.Context, device string) (wire.DeviceCode, error) {
	var out wire.DeviceCode
	err := c.callJSON(ctx, http.MethodPost, "/api/cli/device/code", wire.StartDevice{Device: device}, &out)
	if out.Verification == "" { // the server does not know its name, but we do
		out.Verification = c.page("/cli/device")
	}
	return out, err
}

// PollDevice asks whether a device flow was approved. Errors: registry.GrantPending when it was not yet.
func (c *Client) PollDevice(ctx context.Context, deviceCode string) (wire.SignedIn, error) {
	var out wire.SignedIn
	err := c.callJSON(ctx, http.MethodPost, "/api/cli/device/token", wire.PollDevice{DeviceCode: deviceCode}, &out)
	return out, err
}

// AuthorizePage is the address at which a user lets a client in that listens at redirectURI.
func (c *Client) AuthorizePage(redirectURI, state, challenge, device string) string {
	q := url.Values{"redirect_uri": {redirectURI}, "state": {state}, "challenge": {challenge}, "device": {device}}
	return c.page("/cli/authorize") + "?" + q.Encode()
}

// SuccessPage is the address of the page that ends a sign-in.
func (c *Client) SuccessPage() string { return c.page("/cli/success") }

// page is the address of a page for people.
func (c *Client) page(path string) string { return c.Server() + path }

// RedeemCode exchanges the code that a browser brought.
func (c *Client) RedeemCode(ctx context.Context, in wire.RedeemCode) (wire.SignedIn, error) {
	var out wire.SignedIn
	err := c.callJSON(ctx, http.MethodPost, "/api/cli/token", in, &out)
	return out, err
}

// RefreshSession exchanges a refresh token. Errors: registry.Unauthorized when the session has ended.
func (c *Client) RefreshSession(ctx context.Context, token string) (wire.SignedIn, error) {
	var out wire.SignedIn
	err := c.callJSON(ctx, http.MethodPost, "/api/auth/refresh", wire.RefreshToken{RefreshToken: token}, &out)
	return out, err
}

// EndSession ends the session that a refresh token is of.
func (c *Client) EndSession(ctx context.Context, token string) error {
	return c.callJSON(ctx, http.MethodPost, "/api/auth/logout", wire.RefreshToken{RefreshToken: token}, nil)
}

// ApproveDevice approves a device flow for an account, as an administrator.
func (c *Client) ApproveDevice(ctx context.Context, in wire.ApproveDevice) (wire.Approved, error) {
	var out wire.Approved
	err := c.callJSON(ctx, http.MethodPost, "/api/admin/device/approve", in, &out)
	return out, err
}

// Sessions lists the sessions of an account, the caller's own for ""; all lists everybody's.
func (c *Client) Sessions(ctx context.Context, account string, all bool) ([]wire.Session, error) {
	q := url.Values{}
	if account != "" {
		q.Set("account", account)
	}
	if all {
		q.Set("all", "true")
	}
	var out wire.SessionList
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/sessions", query: q}, &out)
	return out.Sessions, err
}

// RevokeSession ends a session.
func (c *Client) RevokeSession(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/api/sessions/" + url.PathEscape(id)}, nil)
}

// ChangePassword gives an account another password.
func (c *Client) ChangePassword(ctx context.Context, in wire.NewPassword) error {
	return c.callJSON(ctx, http.MethodPost, "/api/password", in, nil)
}
