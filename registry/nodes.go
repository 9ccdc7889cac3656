package registry

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// A node is a machine whose launch agent signs in with a token of its own. What it may do stands in auth.Node: it registers
// keys, asks for grants (node_grants.go), sends records of runs (runs.go), and reads the deny list. No person is behind it, so
// nothing of it is read from the account that its tokens hang on.

// nodePrefix begins the account of a node. No account that a person has holds a slash.
const nodePrefix = "node/"

// isNode reports whether an account's name is that of a node.
func isNode(account string) bool {
	own, ok := strings.CutPrefix(account, nodePrefix)
	return ok && name.IsComponent(own)
}

// What a node may have.
const (
	MaxNodeKeys  = 4    // in use; when there are more, the oldest one is retired
	maxOldKeys   = 1000 // ever: each of them vouches for something
	maxNodeName  = 64   // bytes
	nodeTokenTag = "node"
)

// CreateNode makes a node, or lets one in again that was removed, and gives its secret, once. Errors: Denied, Invalid, Conflict
// when there is one of the name.
func (s *Service) CreateNode(ctx context.Context, p auth.Principal, node string) (secret string, n Node, err error) {
	if err := s.authorize(ctx, p, auth.ManageNodes, "", "node "+node); err != nil {
		return "", n, err
	}
	if len(node) > maxNodeName || !name.IsComponent(node) {
		return "", n, Errorf(Invalid, "name: %.100q is no node's name: lower-case letters and digits with single . _ - between them, at most %d", node, maxNodeName)
	}
	n = Node{Name: node, Account: nodePrefix + node, CreatedBy: p.Account, CreatedAt: s.now()}
	err = s.meta.Update(ctx, func(tx Tx) error {
		if err := letIn(tx, n); err != nil {
			return err
		}
		if secret, err = s.nodeToken(tx, p, n); err != nil {
			return err
		}
		return s.audit(tx, p, "node.create", node, "")
	})
	return secret, n, err
}

// letIn writes a node with its account, or lets one in again that was removed. The account is disabled from the beginning: all
// that signs in with it is a node's token, here (Service.principal). A replica of an older program, which would take the node for a
// person, lets nobody in.
func letIn(tx Tx, n Node) error {
	switch before, err := tx.Node(n.Name); {
	case errors.Is(err, ErrNotFound):
		if err := tx.InsertAccount(Account{Name: n.Account, Role: auth.Viewer, Disabled: true, CreatedAt: n.CreatedAt}); err != nil {
			return err
		}
		return tx.InsertNode(n)
	case err != nil:
		return err
	case before.RemovedAt.IsZero():
		return Errorf(Conflict, "node %s exists; sf admin node rotate gives it another token", n.Name)
	}
	return tx.UpdateNode(n)
}

// nodeToken makes a node's one token. What makes it may itself expire: a token never makes one that lives longer.
func (s *Service) nodeToken(tx Tx, p auth.Principal, n Node) (secret string, err error) {
	ttl, err := s.boundedTTL(tx, p, 0)
	if err != nil {
		return "", err
	}
	secret = auth.NewSecret()
	_, err = s.insertToken(tx, n.Account, nodeTokenTag, secret, ttl)
	return secret, err
}

// RotateNode gives a node another secret, once, and ends the one that it had. Errors: Denied, NotFound.
func (s *Service) RotateNode(ctx context.Context, p auth.Principal, node string) (secret string, n Node, err error) {
	if err := s.authorize(ctx, p, auth.ManageNodes, "", "node "+node); err != nil {
		return "", n, err
	}
	err = s.meta.Update(ctx, func(tx Tx) error {
		if n, err = liveNode(tx, node); err != nil {
			return err
		}
		if err := s.endTokens(tx, n.Account); err != nil {
			return err
		}
		if secret, err = s.nodeToken(tx, p, n); err != nil {
			return err
		}
		return s.audit(tx, p, "node.rotate", node, "")
	})
	return secret, n, err
}

// liveNode is a node that was not removed. Errors: NotFound.
func liveNode(tx Tx, node string) (Node, error) {
	n, err := tx.Node(node)
	if err == nil && !n.RemovedAt.IsZero() {
		err = ErrNotFound
	}
	return n, notFound(err, "node %.100q does not exist", node)
}

// endTokens revokes what an account has.
func (s *Service) endTokens(tx Tx, account string) error {
	tokens, err := tx.Tokens(account)
	for _, t := range tokens {
		if err == nil && t.RevokedAt.IsZero() {
			err = tx.RevokeToken(t.ID, s.now())
		}
	}
	return err
}

// RemoveNode locks a node out: its token and its grants are worth nothing from then on, and its keys vouch for nothing new. What
// it recorded stays. Errors: Denied, NotFound.
func (s *Service) RemoveNode(ctx context.Context, p auth.Principal, node string) error {
	if err := s.authorize(ctx, p, auth.ManageNodes, "", "node "+node); err != nil {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error {
		n, err := liveNode(tx, node)
		if err != nil {
			return err
		}
		keys, err := keysInUse(tx, node)
		for _, k := range keys {
			if err == nil {
				err = tx.RetireNodeKey(node, k.ID, s.now())
			}
		}
		if err != nil {
			return err
		}
		if err := s.endTokens(tx, n.Account); err != nil {
			return err
		}
		n.RemovedAt = s.now()
		if err := tx.UpdateNode(n); err != nil {
			return err
		}
		return s.audit(tx, p, "node.delete", node, "")
	})
}

// Nodes lists the nodes by name, each with its keys that are in use. Errors: Denied.
func (s *Service) Nodes(ctx context.Context, p auth.Principal) (list []Node, keys map[string][]NodeKey, err error) {
	if err := s.authorize(ctx, p, auth.ManageNodes, "", "nodes"); err != nil {
		return nil, nil, err
	}
	err = s.meta.View(ctx, func(tx Tx) (err error) {
		keys = map[string][]NodeKey{}
		if list, err = tx.Nodes(); err != nil {
			return err
		}
		for _, n := range list {
			if keys[n.Name], err = keysInUse(tx, n.Name); err != nil {
				return err
			}
		}
		return nil
	})
	return list, keys, err
}

// keysInUse are a node's keys that were not retired, the oldest first.
func keysInUse(tx Tx, node string) ([]NodeKey, error) {
	keys, err := tx.NodeKeys(node)
	return slices.DeleteFunc(keys, func(k NodeKey) bool { return !k.RetiredAt.IsZero() }), err
}

// RegisterNodeKey makes a key one of those with which the calling node signs what it records. The ones before it stay in use, so
// that what they signed and is still on its way is the node's, until there are more than MaxNodeKeys. A key in use may be
// registered again; one that was retired may not. Errors: Denied, Conflict.
func (s *Service) RegisterNodeKey(ctx context.Context, p auth.Principal, public ed25519.PublicKey) (node string, key NodeKey, keys []NodeKey, err error) {
	if err := s.authorize(ctx, p, auth.ActAsNode, "", "a node's key"); err != nil {
		return "", key, nil, err
	}
	node = strings.TrimPrefix(p.Account, nodePrefix)
	key = NodeKey{Node: node, Public: public, CreatedAt: s.now()}
	if key.ID, err = receipt.KeyID(public); err != nil {
		return node, key, nil, Errorf(Invalid, "public_key: %w", err)
	}
	err = s.meta.Update(ctx, func(tx Tx) error {
		all, err := tx.NodeKeys(node)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(all, func(k NodeKey) bool { return k.ID == key.ID }); i >= 0 {
			if !all[i].RetiredAt.IsZero() {
				return Errorf(Conflict, "public_key: the key %s was retired at %s; make another one", key.ID, all[i].RetiredAt.UTC().Format(time.RFC3339))
			}
			keys, err = keysInUse(tx, node)
			return err
		}
		if len(all) >= maxOldKeys {
			return Errorf(Conflict, "public_key: node %s has had %d keys, the most that is kept; remove it and add one of another name", node, len(all))
		}
		if err := tx.InsertNodeKey(key); err != nil {
			return err
		}
		if keys, err = s.retireOldest(tx, node, key.ID); err != nil {
			return err
		}
		return s.audit(tx, p, "node.key", node, key.ID)
	})
	return node, key, keys, err
}

// retireOldest leaves a node MaxNodeKeys, the newest one, whose id is given, in any case.
func (s *Service) retireOldest(tx Tx, node, newest string) ([]NodeKey, error) {
	keys, err := keysInUse(tx, node)
	for err == nil && len(keys) > MaxNodeKeys {
		i := slices.IndexFunc(keys, func(k NodeKey) bool { return k.ID != newest })
		err = tx.RetireNodeKey(node, keys[i].ID, s.now())
		keys = slices.Delete(keys, i, i+1)
	}
	return keys, err
}

// nodePrincipal makes the principal of a node.
func (s *Service) nodePrincipal(tx Tx, in signedIn) (signedIn, error) {
	if _, err := liveNode(tx, strings.TrimPrefix(in.principal.Account, nodePrefix)); err != nil {
		return in, err
	}
	in.principal.Role = auth.Node
	return in, nil
}

// publicKeys are the keys themselves.
func publicKeys(keys []NodeKey) []ed25519.PublicKey {
	out := make([]ed25519.PublicKey, len(keys))
	for i, k := range keys {
		out[i] = k.Public
	}
	return out
}
