package registry_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/denylist"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
	"github.com/gatehouse-registry/gatehouse/registry/trust"
)

// revokedNow is what the deny list of a replica names.
func (w *jobWorld) revokedNow(s *registry.Service) (names []string, number uint64) {
	w.t.Helper()
	envelope, _, err := s.DenyList(context.Background(), bob)
	w.must("deny list", err)
	payload, err := receipt.Peek(envelope, denylist.PayloadType, denylist.MaxEnvelope)
	w.must("deny list", err)
	list, err := denylist.Parse(payload)
	w.must("deny list", err)
	for _, e := range list.Revoked {
		names = append(names, e.String())
	}
	return names, list.Number
}

// TestRevokeAgainstPublish lets one replica publish the files that the other one revokes: in no order are they to be had
// afterwards, and what was revoked stands in the deny list of both from the moment of the answer.
func TestRevokeAgainstPublish(t *testing.T) {
	t.Parallel()
	everyJobEngine(t, registry.DefaultSettings(), plainDeps, func(t *testing.T, w *jobWorld) {
		ctx := t.Context()
		for i := range 8 {
			name := fmt.Sprintf("p%d", i)
			w.shipped(alice, dialect.Forge, name, "1.0.0", "")
			twin := algorithmArchive(t, dialect.Forge, name, "1.0.0", "")
			var wg sync.WaitGroup
			var published, revoked error
			wg.Go(func() { _, _, published = w.replicas[1].PublishArchive(ctx, bob, "", bytes.NewReader(twin)) })
			wg.Go(func() { _, revoked = w.replicas[0].RevokeVersion(ctx, root, "alice", name, "1.0.0", "why") })
			wg.Wait()
			w.must("revoke", revoked)
			for _, s := range w.replicas {
				names, number := w.revokedNow(s)
				if !slices.Contains(names, "alice/"+name+"@1.0.0") || number != uint64(len(names))+1 {
					t.Errorf("%s: the deny list %d names %v", name, number, names)
				}
				p, err := s.Plugin(ctx, bob, "bob", name, "1.0.0")
				switch {
				case published != nil && registry.CodeOf(err) == registry.NotFound && registry.CodeOf(published) == registry.ManifestInvalid:
				case published == nil && err == nil && !p.RevokedAt.IsZero() && !p.Enabled && slices.Contains(names, "bob/"+name+"@1.0.0"):
				default:
					t.Errorf("%s: published: %v; afterwards: %+v, %v", name, published, p.Version, err)
				}
			}
		}
		if _, err := w.replicas[0].RevokeVersion(ctx, alice, "alice", "p0", "1.0.0", "why"); registry.CodeOf(err) != registry.Denied {
			t.Errorf("an owner revokes: %v", err)
		}
	})
}

// TestDenyListOfReplicas holds that replicas sign the same list, whenever each is asked, and that every list which is given out
// has half of its life before it.
func TestDenyListOfReplicas(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	w := newJobWorld(t, newSQLiteWorld(t, registry.DefaultSettings()), registry.DefaultSettings(), func(d *registry.Deps) {
		d.Now = func() time.Time { return time.Unix(now.Load(), 250e6) }
	})
	begin := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	tag := func(replica int, minute time.Duration) string {
		t.Helper()
		at := begin.Add(minute * time.Minute)
		now.Store(at.Unix())
		envelope, tag, err := w.replicas[replica].DenyList(t.Context(), bob)
		w.must("deny list", err)
		payload, err := receipt.Peek(envelope, denylist.PayloadType, denylist.MaxEnvelope)
		w.must("deny list", err)
		list, err := denylist.Parse(payload)
		w.must("deny list", err)
		if list.IssuedAt.After(at) || list.Expires.Before(at.Add(registry.DefaultSettings().DenyListTTL/2)) {
			t.Errorf("in minute %d the list was issued at %s and expires at %s", minute, list.IssuedAt, list.Expires)
		}
		return tag
	}
	first := tag(0, 3)
	if other := tag(1, 29); other != first {
		t.Error("the other replica has another list")
	}
	second := tag(1, 31)
	if other := tag(0, 32); other != second || second == first {
		t.Errorf("after half of its life: %s and %s, before %s", second, other, first)
	}
	w.shipped(alice, dialect.Forge, "p", "1.0.0", "")
	_, err := w.replicas[0].RevokeVersion(t.Context(), root, "alice", "p", "1.0.0", "why")
	w.must("revoke", err)
	third := tag(1, 40)
	if other := tag(0, 45); other != third || third == second {
		t.Errorf("after a revocation: %s and %s, before %s", third, other, second)
	}
	if tag(0, 61) == third || tag(1, 62) != tag(0, 62) {
		t.Error("the list of an hour ago is given out, or the replicas differ")
	}
}

// olderStore is a store whose jobs an older program put there, which kept nothing of what they pin.
type olderStore struct {
	registry.MetaStore
	indexed map[string][]receipt.Pin
}

func (s olderStore) View(ctx context.Context, fn func(registry.Tx) error) error {
	return s.MetaStore.View(ctx, func(tx registry.Tx) error { return fn(olderTx{tx, s.indexed}) })
}

func (s olderStore) Update(ctx context.Context, fn func(registry.Tx) error) error {
	return s.MetaStore.Update(ctx, func(tx registry.Tx) error { return fn(olderTx{tx, s.indexed}) })
}

type olderTx struct {
	registry.Tx
	indexed map[string][]receipt.Pin
}

func (t olderTx) UnindexedJobs(limit int) (list []registry.Job, err error) {
	jobs, err := t.Jobs("", -1)
	for _, brief := range jobs {
		if _, done := t.indexed[brief.ID]; !done && len(list) < min(limit, 2) {
			job, err := t.Job(brief.ID)
			if err != nil {
				return nil, err
			}
			list = append(list, job)
		}
	}
	return list, err
}

func (t olderTx) IndexJob(job registry.Job) error {
	t.indexed[job.ID] = job.Pins
	return nil
}

// TestOldJobsAreIndexed starts a registry on jobs that an older program stored, one of them with a receipt that can't be read.
func TestOldJobsAreIndexed(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t, newSQLiteWorld(t, registry.DefaultSettings()), registry.DefaultSettings(), plainDeps)
	use := w.shipped(alice, dialect.Forge, "p", "1.0.0", "")
	for range 5 {
		_, err := w.submit(w.replicas[0], bob, jobWith(dialect.Forge, use), nil)
		w.must("submit", err)
	}
	w.must("a damaged job", w.metas[0].MetaStore.Update(t.Context(), func(tx registry.Tx) error {
		return tx.InsertJob(registry.Job{ID: "damaged", Account: "bob", Dialect: dialect.Forge, Receipt: []byte("no receipt")})
	}))
	indexed := map[string][]receipt.Pin{}
	ledger, err := metastore.OpenLedger(w.dir + "/old-ledger")
	w.must("ledger", err)
	defer ledger.Close()
	keys, err := trust.Open(t.TempDir())
	w.must("key", err)
	newer, err := registry.New(t.Context(), registry.Deps{Blobs: w.blobs, Meta: olderStore{w.metas[0].MetaStore, indexed}, Ledger: ledger, Signer: keys}, registry.DefaultSettings())
	w.must("start", err)
	if len(indexed) != 6 {
		t.Errorf("%d jobs were taken up, want 6", len(indexed))
	}
	for id, pins := range indexed {
		if id == "damaged" && len(pins) == 0 {
			continue
		}
		if len(pins) != 1 || pins[0].ID != "alice/p" || pins[0].Tree.IsZero() {
			t.Errorf("job %s pins %v", id, pins)
		}
	}
	// A replica of the older program goes on beside it.
	late, err := w.submit(w.replicas[0], bob, jobWith(dialect.Forge, use), nil)
	w.must("submit", err)
	if _, _, err := newer.DisableVersion(t.Context(), root, "alice", "p", "", "why"); err != nil || len(indexed[late.ID]) != 1 {
		t.Errorf("a job that was stored after the start: %v, %v", indexed[late.ID], err)
	}
	delete(indexed, late.ID)
	if _, err := newer.RevokeVersion(t.Context(), root, "alice", "p", "2.0.0", "why"); registry.CodeOf(err) != registry.NotFound || len(indexed[late.ID]) != 1 {
		t.Errorf("before a revocation: %v, %v", indexed[late.ID], err)
	}
	if _, use, err := w.replicas[0].DisableVersion(t.Context(), root, "alice", "p", "", "why"); err != nil || use != (registry.PackUse{QueuedJobs: 6}) {
		t.Errorf("in use by %+v, %v", use, err)
	}
	if _, _, err := w.replicas[0].DisableVersion(t.Context(), root, "alice", "p", "", "two\nlines"); registry.CodeOf(err) != registry.Invalid {
		t.Errorf("a reason of two lines: %v", err)
	}
}
