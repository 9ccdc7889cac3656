package metatest

import (
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

var accessTests = map[string]func(*testing.T, registry.MetaStore){
	"RepositoryAccess": testRepositoryAccess,
	"Readable":         testReadable,
	"Robots":           testRobots,
	"Namespaces":       testNamespaces,
	"ExpiredTokens":    testExpiredTokens,
	"SignInFailures":   testSignInFailures,
}

func testRepositoryAccess(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice", "bob", "carol")
	update(t, s, func(tx registry.Tx) error { return tx.EnsureRepository(repository("alice/x")) })
	access := func(name, account string) func(registry.Tx) (registry.RepositoryAccess, error) {
		return func(tx registry.Tx) (registry.RepositoryAccess, error) { return tx.RepositoryAccess(name, account) }
	}
	readers := func(tx registry.Tx) ([]string, error) { return tx.RepositoryReaders("alice/x") }
	set := func(private bool, list ...string) func(registry.Tx) error {
		return func(tx registry.Tx) error { return tx.SetRepositoryAccess("alice/x", private, list) }
	}
	same(t, "a new repository", view(t, s, access("alice/x", "bob")), registry.RepositoryAccess{Owner: "alice"})
	missing(t, s, "an unknown repository", registry.NameUnknown, access("alice/y", "bob"))

	update(t, s, set(true, "carol", "bob", "bob"))
	same(t, "readers, sorted", view(t, s, readers), []string{"bob", "carol"})
	same(t, "a reader", view(t, s, access("alice/x", "bob")), registry.RepositoryAccess{Owner: "alice", Private: true, Listed: true})
	same(t, "a stranger", view(t, s, access("alice/x", "dave")), registry.RepositoryAccess{Owner: "alice", Private: true})

	fails(t, s, "an unknown reader", registry.NotFound, set(false, "carol", "dave"))
	same(t, "readers after the refusal", view(t, s, readers), []string{"bob", "carol"})
	update(t, s, set(false, "carol"))
	same(t, "who is no reader any more", view(t, s, access("alice/x", "bob")), registry.RepositoryAccess{Owner: "alice"})
	fails(t, s, "access of an unknown repository", registry.NameUnknown, func(tx registry.Tx) error {
		return tx.SetRepositoryAccess("alice/y", true, nil)
	})
}

func testReadable(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice", "bob")
	for _, name := range []string{"alice/a", "alice/b", "alice/c", "alice/empty", "bob/a"} {
		update(t, s, func(tx registry.Tx) error {
			if err := tx.EnsureRepository(repository(name)); err != nil || name == "alice/empty" {
				return err
			}
			return tx.PutManifest(registry.Manifest{Repository: name, Digest: sum(name), MediaType: "m", Size: 1, PushedAt: at(0)})
		})
	}
	update(t, s, func(tx registry.Tx) error {
		for _, name := range []string{"alice/b", "alice/c", "bob/a"} {
			if err := tx.SetRepositoryAccess(name, true, nil); err != nil {
				return err
			}
		}
		if err := tx.SetPackRepository("alice/c", "c", "c", "algorithm"); err != nil {
			return err
		}
		return tx.SetRepositoryAccess("alice/b", true, []string{"bob"})
	})
	list := func(account, after string, limit int) []string {
		return view(t, s, func(tx registry.Tx) ([]string, error) { return tx.ReadableRepositories(account, after, limit) })
	}
	same(t, "what alice may read", list("alice", "", -1), []string{"alice/a", "alice/b", "alice/c"})
	same(t, "what bob may read", list("bob", "", -1), []string{"alice/a", "alice/b", "bob/a"})
	same(t, "what nobody may read", list("", "", -1), []string{"alice/a"})
	same(t, "a page that a private repository does not shorten", list("bob", "alice/a", 2), []string{"alice/b", "bob/a"})
	hidden := func(account string) []string {
		return view(t, s, func(tx registry.Tx) ([]string, error) { return tx.HiddenPacks(account) })
	}
	same(t, "packs hidden from alice", hidden("alice"), []string(nil))
	same(t, "packs hidden from bob", hidden("bob"), []string{"alice/c"})
}

func testRobots(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice", "bob", "alice+ci", "alice+b", "bob+ci")
	robot := func(name, owner string, n int) registry.Robot {
		return registry.Robot{Name: name, Owner: owner, Description: "of " + owner, CreatedBy: "admin", CreatedAt: at(n), ExpiresAt: at(n + 100),
			Scopes: []auth.Scope{{Repository: owner + "/**", Actions: []auth.Verb{auth.Pull, auth.Push}}}}
	}
	for _, b := range []registry.Robot{robot("bob+ci", "bob", 0), robot("alice+ci", "alice", 1), robot("alice+b", "alice", 2)} {
		update(t, s, func(tx registry.Tx) error { return tx.InsertRobot(b) })
	}
	list := func(owner string) []registry.Robot {
		return view(t, s, func(tx registry.Tx) ([]registry.Robot, error) { return tx.Robots(owner) })
	}
	same(t, "alice's robots", list("alice"), []registry.Robot{robot("alice+b", "alice", 2), robot("alice+ci", "alice", 1)})
	same(t, "all robots", list(""), []registry.Robot{robot("alice+b", "alice", 2), robot("alice+ci", "alice", 1), robot("bob+ci", "bob", 0)})
	find := func(tx registry.Tx) (registry.Robot, error) { return tx.Robot("alice+ci") }
	same(t, "a robot", view(t, s, find), robot("alice+ci", "alice", 1))
	fails(t, s, "a taken name", registry.Conflict, func(tx registry.Tx) error { return tx.InsertRobot(robot("alice+ci", "bob", 3)) })
	fails(t, s, "a robot without an account", registry.NotFound, func(tx registry.Tx) error { return tx.InsertRobot(robot("alice+x", "alice", 3)) })
	fails(t, s, "a robot without an owner", registry.NotFound, func(tx registry.Tx) error { return tx.InsertRobot(robot("bob", "dave", 3)) })

	update(t, s, func(tx registry.Tx) error {
		return tx.InsertToken(registry.Token{ID: "t", Account: "alice+ci", Hash: [32]byte{1}, CreatedAt: at(0)})
	})
	update(t, s, func(tx registry.Tx) error { return tx.DeleteRobot("alice+ci") })
	missing(t, s, "a robot that is gone", registry.NotFound, find)
	missing(t, s, "its account", registry.NotFound, func(tx registry.Tx) (registry.Account, error) { return tx.Account("alice+ci") })
	missing(t, s, "its token", registry.NotFound, func(tx registry.Tx) (registry.Token, error) { return tx.TokenByID("t") })
	fails(t, s, "a robot that is gone already", registry.NotFound, func(tx registry.Tx) error { return tx.DeleteRobot("alice+ci") })
	fails(t, s, "an account that is no robot", registry.NotFound, func(tx registry.Tx) error { return tx.DeleteRobot("alice") })
}

func testNamespaces(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "library", "bob")
	one := registry.Namespace{Pattern: "alpine", Owner: "library", CreatedBy: "admin", CreatedAt: at(1)}
	deep := registry.Namespace{Pattern: "team/**", Owner: "bob", CreatedBy: "admin", CreatedAt: at(2)}
	for _, n := range []registry.Namespace{deep, {Pattern: "alpine", Owner: "bob", CreatedAt: at(0)}, one} {
		update(t, s, func(tx registry.Tx) error { return tx.PutNamespace(n) })
	}
	same(t, "namespaces", view(t, s, registry.Tx.Namespaces), []registry.Namespace{one, deep})
	of := func(patterns ...string) func(registry.Tx) (registry.Namespace, error) {
		return func(tx registry.Tx) (registry.Namespace, error) { return tx.NamespaceOf(patterns) }
	}
	same(t, "the first that there is", view(t, s, of("team/x", "team/**", "alpine")), deep)
	missing(t, s, "none of the patterns", registry.NotFound, of("team/x", "**"))
	missing(t, s, "no pattern", registry.NotFound, of())
	fails(t, s, "an unknown owner", registry.NotFound, func(tx registry.Tx) error { return tx.PutNamespace(registry.Namespace{Pattern: "x", Owner: "dave"}) })
	update(t, s, func(tx registry.Tx) error { return tx.DeleteNamespace("alpine") })
	same(t, "namespaces after one was removed", view(t, s, registry.Tx.Namespaces), []registry.Namespace{deep})
	fails(t, s, "a namespace that is gone", registry.NotFound, func(tx registry.Tx) error { return tx.DeleteNamespace("alpine") })
}

func testExpiredTokens(t *testing.T, s registry.MetaStore) {
	withAccounts(t, s, "alice")
	for i, expires := range []int{0, 10, 20} {
		k := registry.Token{ID: numbered("t", i), Account: "alice", Hash: [32]byte{byte(i)}, CreatedAt: at(i)}
		if expires > 0 {
			k.ExpiresAt = at(expires)
		}
		update(t, s, func(tx registry.Tx) error { return tx.InsertToken(k) })
	}
	update(t, s, func(tx registry.Tx) error { return tx.DeleteExpiredTokens(at(20)) })
	left := view(t, s, func(tx registry.Tx) ([]registry.Token, error) { return tx.Tokens("") })
	var ids []string
	for _, k := range left {
		ids = append(ids, k.ID)
	}
	same(t, "tokens that did not expire before", ids, []string{numbered("t", 0), numbered("t", 2)})
	same(t, "a token by its id", view(t, s, func(tx registry.Tx) (registry.Token, error) { return tx.TokenByID(numbered("t", 2)) }), left[1])
	missing(t, s, "an unknown token", registry.NotFound, func(tx registry.Tx) (registry.Token, error) { return tx.TokenByID("t") })
}

func testSignInFailures(t *testing.T, s registry.MetaStore) {
	find := func(subject string) registry.SignInFailures {
		return view(t, s, func(tx registry.Tx) (registry.SignInFailures, error) { return tx.SignInFailures(subject) })
	}
	same(t, "a subject without failures", find("alice"), registry.SignInFailures{Subject: "alice"})
	locked := registry.SignInFailures{Subject: "alice", Failures: 7, LastAt: at(1), LockedUntil: at(9)}
	other := registry.SignInFailures{Subject: "bob", Failures: 1, LastAt: at(5)}
	for _, f := range []registry.SignInFailures{{Subject: "alice", Failures: 6, LastAt: at(0)}, locked, other} {
		update(t, s, func(tx registry.Tx) error { return tx.PutSignInFailures(f) })
	}
	same(t, "a locked subject", find("alice"), locked)
	update(t, s, func(tx registry.Tx) error { return tx.DeleteSignInFailures(at(5)) })
	same(t, "a subject whose failures are old", find("alice"), registry.SignInFailures{Subject: "alice"})
	same(t, "a subject whose failures are not", find("bob"), other)
}
