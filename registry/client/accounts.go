package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

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
