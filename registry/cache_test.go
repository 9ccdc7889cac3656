package registry_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
)

// hookedMeta is a real store in which something may happen around the next View, and which may keep its generation to
// itself.
type hookedMeta struct {
	registry.MetaStore
	before, after atomic.Pointer[func()]
	views         atomic.Int64
	shared        bool
	later         atomic.Int64 // how far the registry's clock is put forward
}

func (h *hookedMeta) View(ctx context.Context, fn func(registry.Tx) error) error {
	h.views.Add(1)
	if do := h.before.Swap(nil); do != nil {
		(*do)()
	}
	err := h.MetaStore.View(ctx, fn)
	if do := h.after.Swap(nil); do != nil {
		(*do)()
	}
	return err
}

func (h *hookedMeta) Generation() (uint64, bool) {
	g, exact := h.MetaStore.Generation()
	return g, exact && !h.shared
}

func (h *hookedMeta) AccessGeneration() (uint64, bool) {
	g, exact := h.MetaStore.AccessGeneration()
	return g, exact && !h.shared
}

// newCaching makes a registry over hooked SQLite.
func newCaching(t *testing.T, shared bool) (*registry.Service, *hookedMeta) {
	t.Helper()
	dir := t.TempDir()
	blobs, err := fs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	meta, err := metastore.OpenSQLite(t.Context(), filepath.Join(dir, "meta.db"))
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := metastore.OpenLedger(filepath.Join(dir, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		blobs.Close()
		meta.Close()
		ledger.Close()
	})
	hooked := &hookedMeta{MetaStore: meta, shared: shared}
	s, err := registry.New(t.Context(), registry.Deps{Blobs: blobs, Meta: hooked, Ledger: ledger,
		Now: func() time.Time { return time.Now().Add(time.Duration(hooked.later.Load())) }}, registry.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	return s, hooked
}

const imageIndex = "application/vnd.oci.image.index.v1+json"

// numberedIndex is an empty index that says its number.
func numberedIndex(n int) []byte {
	return fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"manifests":[],"annotations":{"n":"%d"}}`, imageIndex, n)
}

func tag(t testing.TB, s *registry.Service, name string, n int) {
	t.Helper()
	if _, err := s.PutManifest(context.Background(), root, "a/x", registry.Reference{Tag: name}, imageIndex, numberedIndex(n)); err != nil {
		t.Fatal(err)
	}
}

// read gives the number of the manifest that a tag points at, or the code of the refusal.
func read(s *registry.Service, name string) (int, registry.Code) {
	m, content, err := s.GetManifest(context.Background(), root, "a/x", registry.Reference{Tag: name})
	if err != nil {
		return -1, registry.CodeOf(err)
	}
	n := -1
	if digest.FromBytes(content) == m.Digest {
		fmt.Sscan(m.Annotations["n"], &n)
	}
	return n, ""
}

// TestRememberedRowsAreNotStale moves a tag at every place of a read that is not remembered: what was acknowledged before a
// request is seen by it, whatever the read before it had found and kept.
func TestRememberedRowsAreNotStale(t *testing.T) {
	s, meta := newCaching(t, false)
	tag(t, s, "v", 1)
	n := 1
	for name, at := range map[string]*atomic.Pointer[func()]{"before the View": &meta.before, "between the View and the keeping": &meta.after} {
		for range 3 {
			n++
			tag(t, s, "other", n) // what is remembered is not true any more
			move := func() { tag(t, s, "v", n) }
			at.Store(&move)
			read(s, "v")
			if at.Load() != nil {
				t.Fatalf("%s: the read looked at nothing", name)
			}
			if got, code := read(s, "v"); got != n {
				t.Errorf("%s: after the move to %d a read finds %d %s", name, n, got, code)
			}
		}
	}
	before := meta.views.Load()
	for range 10 {
		read(s, "v")
	}
	if looked := meta.views.Load() - before; looked != 0 {
		t.Errorf("ten reads of what did not change looked into the store %d times", looked)
	}
}

// TestReadersNeverGoBack reads a tag from many sides while it moves: no read finds an older manifest than one whose push was
// acknowledged before it began.
func TestReadersNeverGoBack(t *testing.T) {
	s, _ := newCaching(t, false)
	tag(t, s, "v", 0)
	var acknowledged atomic.Int64
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				least := acknowledged.Load()
				if got, code := read(s, "v"); int64(got) < least {
					t.Errorf("read %d %s after %d was acknowledged", got, code, least)
					return
				}
			}
		})
	}
	for n := 1; n <= 300; n++ {
		tag(t, s, "v", n)
		acknowledged.Store(int64(n))
	}
	close(done)
	readers.Wait()
}

// TestWhatEndsEndsAtOnce deletes, disables and revokes what was read just before.
func TestWhatEndsEndsAtOnce(t *testing.T) {
	s, _ := newCaching(t, false)
	ctx := t.Context()
	check := func(what string, err error, want registry.Code) {
		t.Helper()
		if got := registry.CodeOf(err); got != want {
			t.Errorf("%s: got error %v, want code %q", what, err, want)
		}
	}
	tag(t, s, "v", 1)
	if _, code := read(s, "v"); code != "" {
		t.Fatal(code)
	}
	check("delete", s.DeleteManifest(ctx, root, "a/x", registry.Reference{Tag: "v"}), "")
	_, code := read(s, "v")
	check("a tag that was deleted", &registry.Error{Code: code}, registry.ManifestUnknown)

	if _, err := s.CreateAccount(ctx, root, registry.NewAccount{Name: "bob", Role: auth.Operator}); err != nil {
		t.Fatal(err)
	}
	secret, token, err := s.CreateToken(ctx, root, "bob", "", 0)
	check("token", err, "")
	signIn := func() error {
		_, err := s.Authenticate(ctx, secret)
		return err
	}
	check("sign-in", signIn(), "")
	_, err = s.SetDisabled(ctx, root, "bob", true)
	check("disable", err, "")
	check("sign-in to a disabled account", signIn(), registry.Unauthorized)
	_, err = s.SetDisabled(ctx, root, "bob", false)
	check("enable", err, "")
	check("sign-in again", signIn(), "")

	tag(t, s, "v", 1)
	bob := auth.Principal{Account: "bob", Role: auth.Operator}
	look := func() error {
		_, err := s.StatManifest(ctx, bob, "a/x", registry.Reference{Tag: "v"})
		return err
	}
	for _, private := range []bool{false, true, false} {
		_, err := s.SetAccess(ctx, root, "a/x", registry.AccessChange{Private: &private})
		check("change who may read", err, "")
		want := registry.Code("")
		if private {
			want = registry.NameUnknown
		}
		check(fmt.Sprint("read of a repository whose privacy is ", private), look(), want)
	}
	check("revoke", s.RevokeToken(ctx, root, token.ID), "")
	check("sign-in with a revoked token", signIn(), registry.Unauthorized)
}

// TestExpiryIsNotRemembered lets a token run out while its row is remembered.
func TestExpiryIsNotRemembered(t *testing.T) {
	s, meta := newCaching(t, false)
	ctx := t.Context()
	if _, err := s.CreateAccount(ctx, root, registry.NewAccount{Name: "bob", Role: auth.Operator}); err != nil {
		t.Fatal(err)
	}
	secret, _, err := s.CreateToken(ctx, root, "bob", "", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		later time.Duration
		want  registry.Code
	}{{0, ""}, {59 * time.Minute, ""}, {2 * time.Minute, registry.Unauthorized}} {
		meta.later.Add(int64(step.later))
		if _, err := s.Authenticate(ctx, secret); registry.CodeOf(err) != step.want {
			t.Errorf("after %v more: got error %v, want code %q", step.later, err, step.want)
		}
	}
}

// TestReadsCostTheSameAmongManyTags compares what a read takes among 2,000 and among 20,000 tags, with and without memory.
func TestReadsCostTheSameAmongManyTags(t *testing.T) {
	for _, shared := range []bool{false, true} {
		s, meta := newCaching(t, shared)
		tag(t, s, "v", 1)
		d := digest.FromBytes(numberedIndex(1))
		var costs []float64
		have := 0
		for _, tags := range []int{2_000, 20_000} {
			if err := meta.Update(t.Context(), func(tx registry.Tx) error {
				for ; have < tags; have++ {
					if err := tx.PutTag(registry.Tag{Repository: "a/x", Name: fmt.Sprint("t", have), Digest: d, UpdatedAt: time.Now()}); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			costs = append(costs, testing.AllocsPerRun(100, func() {
				if n, code := read(s, "v"); n != 1 {
					t.Fatal(code)
				}
			}))
		}
		if costs[1] > costs[0]+1 { // the pool of connections may make one
			t.Errorf("shared %t: a read allocates %v times among 2,000 tags, %v among 20,000", shared, costs[0], costs[1])
		}
	}
}

// A registry that rested remembers nothing, answers as before, and remembers again.
func TestRestForgets(t *testing.T) {
	s, meta := newCaching(t, false)
	tag(t, s, "v", 1)
	ask := func(want int64) {
		t.Helper()
		before := meta.views.Load()
		if n, code := read(s, "v"); n != 1 {
			t.Fatal(code)
		}
		if got := meta.views.Load() - before; (got > 0) != (want > 0) {
			t.Errorf("a read asked the store %d times, want %d or so", got, want)
		}
	}
	ask(2)
	ask(0)
	s.Rest()
	ask(2)
	ask(0)
}
