package client

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"net/http"
	"net/url"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// CreateNode makes a node; its Secret is shown this once.
func (c *Client) CreateNode(ctx context.Context, name string) (wire.Node, error) {
	var out wire.Node
	err := c.callJSON(ctx, http.MethodPost, "/api/nodes", wire.NewNode{Name: name}, &out)
	return out, err
}

// Nodes lists the nodes by name.
func (c *Client) Nodes(ctx context.Context) ([]wire.Node, error) {
	var out wire.NodeList
	err := c.call(ctx, request{method: http.MethodGet, path: "/api/nodes"}, &out)
	return out.Nodes, err
}

// RotateNode gives a node another Secret, shown this once; the one that it had is worth nothing any more.
func (c *Client) RotateNode(ctx context.Context, name string) (wire.Node, error) {
	var out wire.Node
	err := c.callJSON(ctx, http.MethodPost, "/api/nodes/"+url.PathEscape(name)+"/token", nil, &out)
	return out, err
}

// DeleteNode locks a node out. What it recorded stays, and so do its keys, which vouch for that.
func (c *Client) DeleteNode(ctx context.Context, name string) error {
	return c.call(ctx, request{method: http.MethodDelete, path: "/api/nodes/" + url.PathEscape(name)}, nil)
}

// RegisterNodeKey makes a key one of those with which the node that the client's token is of signs what it records. The ones
// before it stay good, up to registry.MaxNodeKeys. The same key again changes nothing.
func (c *Client) RegisterNodeKey(ctx context.Context, public ed25519.PublicKey) (wire.NodeIdentity, error) {
	var out wire.NodeIdentity
	text, err := receipt.EncodeKey(public)
	if err == nil {
		err = c.callJSON(ctx, http.MethodPut, "/api/node/key", wire.NewNodeKey{PublicKey: string(text)}, &out)
	}
	return out, err
}

// NodeGrant turns a receipt of the registry into a token that is good for reading what the receipt names, and nothing else;
// see WithGrant. Errors: Denied or NotFound for a receipt that gives no right to anything.
func (c *Client) NodeGrant(ctx context.Context, envelope []byte) (wire.NodeGrant, error) {
	var out wire.NodeGrant
	ctx = context.WithValue(ctx, repeatable{}, true) // another grant does no harm
	err := c.call(ctx, request{method: http.MethodPost, path: "/api/node/grants", body: bytes.NewReader(envelope), length: int64(len(envelope)), contentType: "application/json"}, &out)
	return out, err
}
