package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// CreateRobot makes a robot; its Secret is shown this once.
func (c *Client) CreateRobot(ctx context.Context, r wire.NewRobot) (wire.Robot, error) {
	var out wire.Robot
	err := c.callJSON(ctx, http.MethodPost, "/api/robots", r, &out)
	return out, err
}

// Robots lists the robots of an owner, "" for the caller's own, or all.
func (c *Client) Robots(ctx context.Context, owner string, all bool) ([]wire.Robot, error) {
	q := url.Values{}
	if owner != "" {
		q.Set("owner", owner)
	}
	if all {
		q.Set("all", "true")
	}
	var out wire.RobotList
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/robots", query: q}, &out)
	return out.Robots, err
}

// DeleteRobot ends a robot with its tokens.
func (c *Client) DeleteRobot(ctx context.Context, robot string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/api/robots/" + robot}, nil)
}

// RepositoryAccess says who may read a repository.
func (c *Client) RepositoryAccess(ctx context.Context, repository string) (wire.RepositoryAccess, error) {
	var out wire.RepositoryAccess
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/repositories/" + repository}, &out)
	return out, err
}

// SetRepositoryAccess changes who may read a repository; what change leaves out stays.
func (c *Client) SetRepositoryAccess(ctx context.Context, repository string, change wire.RepositoryAccess) (wire.RepositoryAccess, error) {
	var out wire.RepositoryAccess
	err := c.callJSON(ctx, http.MethodPatch, "/api/repositories/"+repository, change, &out)
	return out, err
}

// Namespaces lists the names that were given to owners.
func (c *Client) Namespaces(ctx context.Context) ([]wire.Namespace, error) {
	var out wire.NamespaceList
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/admin/namespaces"}, &out)
	return out.Namespaces, err
}

// SetNamespace gives the repositories of a pattern to an owner.
func (c *Client) SetNamespace(ctx context.Context, n wire.Namespace) (wire.Namespace, error) {
	var out wire.Namespace
	err := c.callJSON(ctx, http.MethodPut, "/api/admin/namespaces", n, &out)
	return out, err
}

// DeleteNamespace takes the owner off a pattern.
func (c *Client) DeleteNamespace(ctx context.Context, pattern string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/api/admin/namespaces", query: url.Values{"pattern": {pattern}}}, nil)
}

// ExchangeWorkload turns the identity document of a program into a token of its robot (RFC 8693).
func (c *Client) ExchangeWorkload(ctx context.Context, document string) (wire.WorkloadToken, error) {
	form := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {document},
		"subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"},
	}.Encode()
	var out wire.WorkloadToken
	err := c.call(ctx, request{method: http.MethodPost, path: "/v2/token", body: strings.NewReader(form), length: int64(len(form)), contentType: "application/x-www-form-urlencoded"}, &out)
	return out, err
}
