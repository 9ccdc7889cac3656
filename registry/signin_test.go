package registry_test

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
)

// TestSignInOverReplicas uses two services over one store: tokens of one are good at the other until their credential ends,
// and wrong passwords count together, however many come at once.
func TestSignInOverReplicas(t *testing.T) {
	_, meta := newCaching(t, true)
	now := time.Now() // stands still: hashing takes time on a busy machine
	one, other := replicaOf(t, meta, now), replicaOf(t, meta, now)
	ctx, admin := t.Context(), auth.Principal{Account: registry.AdminAccount, Role: auth.Admin}
	for _, password := range []string{auth.NewSecret(), "eyJhbGci.eyJzdWIi.c2ln"} { // the sign-in would take them for tokens
		if _, err := one.CreateAccount(ctx, admin, registry.NewAccount{Name: "alice", Role: auth.Operator, Password: password}); registry.CodeOf(err) != registry.Invalid {
			t.Errorf("password %.8s…: %v, want Invalid", password, err)
		}
	}
	if _, err := one.CreateAccount(ctx, admin, registry.NewAccount{Name: "alice", Role: auth.Operator, Password: "correct horse"}); err != nil {
		t.Fatal(err)
	}
	secret, token, err := one.CreateToken(ctx, admin, "alice", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := one.SignIn(ctx, "alice", secret)
	if err != nil {
		t.Fatal(err)
	}
	b, err := one.IssueBearer(ctx, p, []string{"repository:alice/x:pull,push"}, true)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := other.Authenticate(ctx, b.Token); err != nil || got.Account != "alice" || !got.Granted(auth.Push, "alice/x") {
		t.Errorf("at the other: %+v, %v", got, err)
	}
	if err := other.RevokeToken(ctx, admin, token.ID); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*registry.Service{one, other} {
		if _, err := s.Authenticate(ctx, b.Token); registry.CodeOf(err) != registry.Unauthorized {
			t.Errorf("after the token was revoked: %v", err)
		}
		if _, err := s.Refresh(ctx, b.Refresh); registry.CodeOf(err) != registry.Unauthorized {
			t.Errorf("a refresh after the token was revoked: %v", err)
		}
	}

	var tried atomic.Int64 // attempts whose password was looked at
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			s := []*registry.Service{one, other}[i%2]
			if _, err := s.SignIn(ctx, "alice", "wrong horse"); registry.CodeOf(err) == registry.Unauthorized {
				tried.Add(1)
			}
		})
	}
	all.Wait()
	if n := tried.Load(); n != 10 {
		t.Errorf("%d of 40 wrong passwords at once were looked at, want 10", n)
	}
}

// replicaOf is another service over a store, at a moment.
func replicaOf(t *testing.T, meta registry.MetaStore, now time.Time) *registry.Service {
	t.Helper()
	dir := t.TempDir()
	blobs, err := fs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := metastore.OpenLedger(filepath.Join(dir, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		blobs.Close()
		ledger.Close()
	})
	s, err := registry.New(t.Context(), registry.Deps{Blobs: blobs, Meta: meta, Ledger: ledger, Now: func() time.Time { return now }}, registry.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAnAdministratorRemains has two administrators at each other's account: both were asked who they are before either change.
func TestAnAdministratorRemains(t *testing.T) {
	_, meta := newCaching(t, true)
	s := replicaOf(t, meta, time.Now())
	ctx := t.Context()
	if _, err := s.Bootstrap(ctx, func(secret string) (string, error) { return secret, nil }); err != nil {
		t.Fatal(err)
	}
	first := auth.Principal{Account: registry.AdminAccount, Role: auth.Admin}
	if _, err := s.CreateAccount(ctx, first, registry.NewAccount{Name: "second", Role: auth.Admin}); err != nil {
		t.Fatal(err)
	}
	second := auth.Principal{Account: "second", Role: auth.Admin}
	if _, err := s.SetRole(ctx, first, "second", auth.Viewer); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetRole(ctx, second, registry.AdminAccount, auth.Viewer); registry.CodeOf(err) != registry.Conflict {
		t.Errorf("the last administrator's role: %v, want Conflict", err)
	}
	if _, err := s.SetDisabled(ctx, second, registry.AdminAccount, true); registry.CodeOf(err) != registry.Conflict {
		t.Errorf("the last administrator disabled: %v, want Conflict", err)
	}
	if _, err := s.SetRole(ctx, first, "second", auth.Admin); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetDisabled(ctx, first, "second", true); err != nil {
		t.Errorf("one of two administrators disabled: %v", err)
	}
}
