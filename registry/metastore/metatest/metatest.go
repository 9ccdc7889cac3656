// Package metatest is the contract of registry.MetaStore as tests. Every engine runs the same suite, so that one can
// take the place of another.
package metatest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Run runs the suite. open gives an empty store and closes it when the test ends; every test has one of its own.
func Run(t *testing.T, open func(t *testing.T) registry.MetaStore) {
	tests := map[string]func(*testing.T, registry.MetaStore){}
	for _, part := range []map[string]func(*testing.T, registry.MetaStore){
		accountTests, contentTests, smallTests, packTests, ledgerTests, catalogueTests, jobTests, runTests, handoverTests, auditTests, accessTests, sessionTests, suiteTests, collectionTests, textTests, txTests, busyTests,
	} {
		maps.Copy(tests, part)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// at is the n-th moment of a test, in UTC and whole microseconds, as stores give times back.
func at(n int) time.Time {
	return time.Date(2026, 11, 29, 12, 0, 0, 123_456_000, time.UTC).Add(time.Duration(n) * time.Second)
}

// sum is a digest of its own for every text.
func sum(text string) digest.Digest { return digest.FromBytes([]byte(text)) }

// update runs fn, which must succeed.
func update(t *testing.T, s registry.MetaStore, fn func(registry.Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), fn); err != nil {
		t.Fatalf("update: %v", err)
	}
}

// fails runs fn in an Update and checks the code of its error.
func fails(t *testing.T, s registry.MetaStore, what string, want registry.Code, fn func(registry.Tx) error) error {
	t.Helper()
	err := s.Update(context.Background(), fn)
	if registry.CodeOf(err) != want {
		t.Errorf("%s: got error %v (code %q), want code %q", what, err, registry.CodeOf(err), want)
	}
	return err
}

// view reads one value, which must succeed.
func view[T any](t *testing.T, s registry.MetaStore, fn func(registry.Tx) (T, error)) (v T) {
	t.Helper()
	err := s.View(context.Background(), func(tx registry.Tx) (err error) {
		v, err = fn(tx)
		return err
	})
	if err != nil {
		t.Fatalf("view: %v", err)
	}
	return v
}

// missing checks that a look-up finds nothing and says so with the code.
func missing[T any](t *testing.T, s registry.MetaStore, what string, want registry.Code, fn func(registry.Tx) (T, error)) {
	t.Helper()
	err := s.View(context.Background(), func(tx registry.Tx) error {
		_, err := fn(tx)
		return err
	})
	if registry.CodeOf(err) != want {
		t.Errorf("%s: got error %v (code %q), want code %q", what, err, registry.CodeOf(err), want)
	}
}

// same compares got with want; nil and empty lists are the same.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(digest.Digest{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// errOwn is what functions of transactions fail with.
var errOwn = errors.New("the function's own error")

// account makes an account with every field set.
func account(name string) registry.Account {
	return registry.Account{
		Name: name, Role: auth.Operator, Email: name + "@example.org", PasswordHash: "$argon2id$" + name, Disabled: true,
		MaxGPUs: 8, CreatedAt: at(0), Quota: []byte(`{"b":1,  "a":[1.50]}`),
	}
}

// version makes version v of alice/Pack with every field set.
func version(v string, n int) registry.Version {
	return registry.Version{
		Repository: "alice/pack", Owner: "alice", PackName: "Pack", Version: v, Key: "key of " + v, Dialect: dialect.TunePlane,
		Kind: "algorithm", Manifest: sum("manifest " + v), Content: sum("content " + v), Tree: sum("tree " + v),
		Layer:   digest.Descriptor{MediaType: "application/x-layer", Digest: sum("layer " + v), Size: 1 << 40},
		Config:  digest.Descriptor{MediaType: "application/x-config", Digest: sum("config " + v), Size: 7},
		Summary: "does this – and that", Document: []byte(`{"z":1,"a":  2}`), Catalogue: []byte(`null`), Enabled: true,
		CreatedBy: "root", CreatedAt: at(n), Files: 3, Bytes: 1 << 33,
	}
}

// withPack makes the repository alice/pack and publishes the versions in order, one second apart.
func withPack(t *testing.T, s registry.MetaStore, versions ...string) []registry.Version {
	t.Helper()
	var list []registry.Version
	update(t, s, func(tx registry.Tx) error { return tx.EnsureRepository(repository("alice/pack")) })
	for i, v := range versions {
		list = append(list, version(v, i))
		update(t, s, func(tx registry.Tx) error { return tx.InsertVersion(list[i]) })
	}
	return list
}

// repository makes a repository that holds no pack.
func repository(name string) registry.Repository {
	owner, _, _ := strings.Cut(name, "/")
	return registry.Repository{Name: name, Owner: owner, CreatedAt: at(0)}
}

// numbered is "prefix-007" and the like, so that byte order is number order.
func numbered(prefix string, n int) string { return fmt.Sprintf("%s-%03d", prefix, n) }
