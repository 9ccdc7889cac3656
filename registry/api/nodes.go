package api

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

func nodeOf(n registry.Node, keys []registry.NodeKey) (wire.Node, error) {
	rows, err := nodeKeys(keys)
	return wire.Node{Name: n.Name, Account: n.Account, CreatedBy: n.CreatedBy, CreatedAt: stamp(n.CreatedAt), Keys: rows}, err
}

func nodeKeys(keys []registry.NodeKey) ([]wire.NodeKey, error) {
	rows := make([]wire.NodeKey, len(keys))
	for i, k := range keys {
		text, err := receipt.EncodeKey(k.Public)
		if err != nil {
			return nil, err
		}
		rows[i] = wire.NodeKey{ID: k.ID, PublicKey: string(text), CreatedAt: stamp(k.CreatedAt), RetiredAt: maybeStamp(k.RetiredAt)}
	}
	return rows, nil
}

// maybeStamp is stamp, "" for the zero time.
func maybeStamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return stamp(t)
}

// CreateNode serves POST /api/nodes. The secret is in this answer only.
func (a *API) CreateNode(c *gin.Context) error {
	var in wire.NewNode
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	secret, n, err := a.svc.CreateNode(c.Request.Context(), caller(c), in.Name)
	return answerNode(c, http.StatusCreated, secret, n, err)
}

// RotateNode serves POST /api/nodes/{name}/token. The secret is in this answer only.
func (a *API) RotateNode(c *gin.Context) error {
	secret, n, err := a.svc.RotateNode(c.Request.Context(), caller(c), c.Param("name"))
	return answerNode(c, http.StatusOK, secret, n, err)
}

func answerNode(c *gin.Context, status int, secret string, n registry.Node, err error) error {
	if err != nil {
		return err
	}
	row, err := nodeOf(n, nil)
	if err != nil {
		return err
	}
	row.Secret = secret
	c.JSON(status, row)
	return nil
}

// ListNodes serves GET /api/nodes.
func (a *API) ListNodes(c *gin.Context) error {
	nodes, keys, err := a.svc.Nodes(c.Request.Context(), caller(c))
	if err != nil {
		return err
	}
	list := wire.NodeList{Nodes: make([]wire.Node, len(nodes))}
	for i, n := range nodes {
		if list.Nodes[i], err = nodeOf(n, keys[n.Name]); err != nil {
			return err
		}
	}
	c.JSON(http.StatusOK, list)
	return nil
}

// DeleteNode serves DELETE /api/nodes/{name}.
func (a *API) DeleteNode(c *gin.Context) error {
	if err := a.svc.RemoveNode(c.Request.Context(), caller(c), c.Param("name")); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// PutNodeKey serves PUT /api/node/key: the calling node names a key with which it signs.
func (a *API) PutNodeKey(c *gin.Context) error {
	var in wire.NewNodeKey
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	set, err := receipt.ParseTrust([]byte(in.PublicKey))
	switch {
	case err != nil:
		return registry.Errorf(registry.Invalid, "public_key: %w", err)
	case len(set.Keys()) != 1:
		return registry.Errorf(registry.Invalid, "public_key: found %d keys, expected one", len(set.Keys()))
	}
	node, key, keys, err := a.svc.RegisterNodeKey(c.Request.Context(), caller(c), set.Keys()[0].Public)
	if err != nil {
		return err
	}
	answer := wire.NodeIdentity{Node: node, Registry: a.svc.Settings().RegistryID, Key: key.ID}
	if answer.Keys, err = nodeKeys(keys); err != nil {
		return err
	}
	c.JSON(http.StatusOK, answer)
	return nil
}

// GrantLaunch serves POST /api/node/grants: the body is a receipt, the answer a token for what it names.
func (a *API) GrantLaunch(c *gin.Context) error {
	envelope, err := readBody(c, receipt.MaxEnvelope)
	if err != nil {
		return err
	}
	g, err := a.svc.GrantLaunch(c.Request.Context(), caller(c), envelope)
	if err != nil {
		return err
	}
	c.Header("Cache-Control", "no-store")
	c.JSON(http.StatusOK, wire.NodeGrant{Token: g.Token, ExpiresIn: int64(g.TTL / time.Second), Job: g.Job})
	return nil
}
