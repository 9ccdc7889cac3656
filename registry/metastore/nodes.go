package metastore

import (
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
)

const nodeColumns = `name, account, created_by, created_at, removed_at`

func scanNode(r row) (n registry.Node, err error) {
	err = r.Scan(&n.Name, &n.Account, &n.CreatedBy, timeColumn{&n.CreatedAt}, timeColumn{&n.RemovedAt})
	return n, err
}

func noNode(name string) *registry.Error {
	return registry.Errorf(registry.NotFound, "there is no node %.100q", name)
}

// InsertNode implements registry.NodeTx.
func (t *tx) InsertNode(n registry.Node) error {
	err := t.insert(conflict("node %.100q exists already", n.Name),
		`INSERT INTO nodes (`+nodeColumns+`) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		n.Name, n.Account, n.CreatedBy, micros(n.CreatedAt), micros(n.RemovedAt))
	return t.named(err, noAccount(n.Account))
}

// UpdateNode implements registry.NodeTx.
func (t *tx) UpdateNode(n registry.Node) error {
	return t.change(noNode(n.Name), `UPDATE nodes SET created_by = $2, created_at = $3, removed_at = $4 WHERE name = $1`,
		n.Name, n.CreatedBy, micros(n.CreatedAt), micros(n.RemovedAt))
}

// Node implements registry.NodeTx.
func (t *tx) Node(name string) (registry.Node, error) {
	return one(t, noNode(name), scanNode, `SELECT `+nodeColumns+` FROM nodes WHERE name = $1`, name)
}

// Nodes implements registry.NodeTx.
func (t *tx) Nodes() ([]registry.Node, error) {
	return all(t, scanNode, `SELECT `+nodeColumns+` FROM nodes WHERE removed_at = 0 ORDER BY name`)
}

const nodeKeyColumns = `node, id, public, created_at, retired_at`

func scanNodeKey(r row) (k registry.NodeKey, err error) {
	err = r.Scan(&k.Node, &k.ID, (*[]byte)(&k.Public), timeColumn{&k.CreatedAt}, timeColumn{&k.RetiredAt})
	return k, err
}

// InsertNodeKey implements registry.NodeTx.
func (t *tx) InsertNodeKey(k registry.NodeKey) error {
	err := t.insert(conflict("node %.100q has the key %.100s, or had it", k.Node, k.ID),
		`INSERT INTO node_keys (`+nodeKeyColumns+`) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		k.Node, k.ID, []byte(k.Public), micros(k.CreatedAt), micros(k.RetiredAt))
	return t.named(err, noNode(k.Node))
}

// NodeKeys implements registry.NodeTx.
func (t *tx) NodeKeys(node string) ([]registry.NodeKey, error) {
	return all(t, scanNodeKey, `SELECT `+nodeKeyColumns+` FROM node_keys WHERE node = $1 ORDER BY created_at, id`, node)
}

// RetireNodeKey implements registry.NodeTx.
func (t *tx) RetireNodeKey(node, id string, at time.Time) error {
	return t.change(registry.Errorf(registry.NotFound, "node %.100q has no key %.100s", node, id),
		`UPDATE node_keys SET retired_at = CASE WHEN retired_at = 0 THEN $3 ELSE retired_at END WHERE node = $1 AND id = $2`, node, id, micros(at))
}
