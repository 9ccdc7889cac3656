package metatest

import (
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

var accountTests = map[string]func(*testing.T, registry.MetaStore){
	"Accounts": testAccounts,
	"Tokens":   testTokens,
}

func testAccounts(t *testing.T, s registry.MetaStore) {
	plain := registry.Account{Name: "Bob", Role: auth.Viewer, CreatedAt: at(1)}
	for _, a := range []registry.Account{account("carol"), plain, account("alice"), account("bob")} {
		update(t, s, func(tx registry.Tx) error { return tx.InsertAccount(a) })
	}
	same(t, "accounts, by name in byte order", view(t, s, registry.Tx.Accounts),
		[]registry.Account{plain, account("alice"), account("bob"), account("carol")})
	read := func(name string) registry.Account {
		return view(t, s, func(tx registry.Tx) (registry.Account, error) { return tx.Account(name) })
	}
	same(t, "alice", read("alice"), account("alice"))
	same(t, "Bob", read("Bob"), plain)
	if quota := read("Bob").Quota; quota != nil {
		t.Errorf("a quota that was never set: got %q, want nil", quota)
	}
	missing(t, s, "unknown account", registry.NotFound, func(tx registry.Tx) (registry.Account, error) { return tx.Account("ALICE") })

	fails(t, s, "taken name", registry.Conflict, func(tx registry.Tx) error {
		return tx.InsertAccount(registry.Account{Name: "alice", Role: auth.Admin})
	})
	same(t, "alice after the conflict", read("alice"), account("alice"))

	changed := registry.Account{Name: "alice", Role: auth.Admin, Email: "new", PasswordHash: "", MaxGPUs: 0, CreatedAt: at(99)}
	update(t, s, func(tx registry.Tx) error { return tx.UpdateAccount(changed) })
	changed.CreatedAt = at(0)
	same(t, "alice after the update", read("alice"), changed)
	same(t, "bob after the update of alice", read("bob"), account("bob"))
	fails(t, s, "update of an unknown account", registry.NotFound, func(tx registry.Tx) error { return tx.UpdateAccount(account("dave")) })
}

func testTokens(t *testing.T, s registry.MetaStore) {
	token := func(id, account string, n int) registry.Token {
		return registry.Token{ID: id, Account: account, Hash: [32]byte{31: byte(n)}, Label: "label " + id, CreatedAt: at(n)}
	}
	first, second, other := token("t2", "alice", 1), token("t1", "alice", 2), token("t0", "bob", 0)
	first.ExpiresAt = at(50)
	update(t, s, func(tx registry.Tx) error {
		for _, name := range []string{"alice", "bob"} {
			if err := tx.InsertAccount(account(name)); err != nil {
				return err
			}
		}
		for _, k := range []registry.Token{second, first, other} {
			if err := tx.InsertToken(k); err != nil {
				return err
			}
		}
		return nil
	})
	list := func(account string) []registry.Token {
		return view(t, s, func(tx registry.Tx) ([]registry.Token, error) { return tx.Tokens(account) })
	}
	same(t, "alice's tokens, by creation", list("alice"), []registry.Token{first, second})
	same(t, "all tokens", list(""), []registry.Token{other, first, second})
	same(t, "nobody's tokens", list("nobody"), []registry.Token(nil))
	find := func(hash [32]byte) registry.Token {
		return view(t, s, func(tx registry.Tx) (registry.Token, error) { return tx.TokenByHash(hash) })
	}
	same(t, "token by hash", find(first.Hash), first)
	missing(t, s, "unknown hash", registry.NotFound, func(tx registry.Tx) (registry.Token, error) { return tx.TokenByHash([32]byte{9}) })

	for _, moment := range []time.Time{at(10), at(20)} {
		update(t, s, func(tx registry.Tx) error { return tx.RevokeToken("t2", moment) })
		first.RevokedAt = at(10)
		same(t, "revoked token", find(first.Hash), first)
	}
	fails(t, s, "revoke of an unknown token", registry.NotFound, func(tx registry.Tx) error { return tx.RevokeToken("t9", at(1)) })

	again := token("t1", "bob", 9)
	fails(t, s, "taken id", registry.Conflict, func(tx registry.Tx) error { return tx.InsertToken(again) })
	again.ID, again.Hash = "t9", second.Hash
	fails(t, s, "taken hash", registry.Conflict, func(tx registry.Tx) error { return tx.InsertToken(again) })
	fails(t, s, "token of an unknown account", registry.NotFound, func(tx registry.Tx) error { return tx.InsertToken(token("t8", "dave", 8)) })
	same(t, "all tokens after what was refused", list(""), []registry.Token{other, first, second})
}
