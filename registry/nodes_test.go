package registry_test

import (
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// TestNodeIsNoPerson holds that a node signs in although its account is disabled, so that a replica of an older program, which
// knows accounts and no nodes, does not take it for somebody who reads; and that its own row locks it out.
func TestNodeIsNoPerson(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t, newSQLiteWorld(t, registry.DefaultSettings()), registry.DefaultSettings(), plainDeps)
	for _, again := range []string{"made", "let in again"} {
		secret, n, err := w.replicas[0].CreateNode(t.Context(), root, "gpu-1")
		w.must(again, err)
		var account registry.Account
		w.must("account", w.metas[0].MetaStore.View(t.Context(), func(tx registry.Tx) (err error) {
			account, err = tx.Account(n.Account)
			return err
		}))
		if !account.Disabled {
			t.Errorf("%s: an older program takes the node for %+v", again, account)
		}
		if p, err := w.replicas[1].Authenticate(t.Context(), secret); err != nil || p.Role != auth.Node {
			t.Errorf("%s: the node signs in as %+v, %v", again, p, err)
		}
		w.must("remove", w.replicas[0].RemoveNode(t.Context(), root, "gpu-1"))
		if p, err := w.replicas[1].Authenticate(t.Context(), secret); registry.CodeOf(err) != registry.Unauthorized {
			t.Errorf("%s and removed: %+v, %v", again, p, err)
		}
	}
}
