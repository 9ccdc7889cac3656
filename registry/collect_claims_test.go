package registry_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// claim is one of the claims of docs/operations.md: no interleaving of action with a collection can lose what action
// acknowledged. prepare makes what the collection finds, keeps checks what action promised.
type claim struct {
	name    string
	prepare func(w *world, n int) error
	action  func(ctx context.Context, w *world, n int) error
	keeps   func(w *world, n int) error
}

// blobOf is the large content of round n.
func blobOf(n int) []byte { return large(fmt.Sprintf("layer of round %d", n)) }

func configOf(n int) []byte { return []byte(fmt.Sprintf(`{"round":%d}`, n)) }

func tagOf(n int) string { return fmt.Sprintf("v%d", n) }

// pushImage is what a client does: every blob, then the manifest under a tag.
func pushImage(ctx context.Context, s *registry.Service, repository string, n int, inChunks bool) error {
	for _, content := range [][]byte{blobOf(n), configOf(n)} {
		if err := push(ctx, s, repository, content, inChunks); err != nil {
			return err
		}
	}
	return putManifest(ctx, s, repository, tagOf(n), image(configOf(n), blobOf(n), digest.Digest{}))
}

// orphan leaves bytes in the store that no row names, as a push does whose last step never came.
func orphan(w *world, n int) error {
	content := blobOf(n)
	if err := push(context.Background(), w.other, "alice/orphan", content, false); err != nil {
		return err
	}
	return w.other.DeleteBlob(context.Background(), root, "alice/orphan", digest.FromBytes(content))
}

var claims = []claim{
	{
		name:    "push of bytes that are about to be deleted",
		prepare: orphan,
		action: func(ctx context.Context, w *world, n int) error {
			return pushImage(ctx, w.other, "alice/app", n, false)
		},
		keeps: func(w *world, n int) error { return pull(w.other, "alice/app", tagOf(n)) },
	},
	{
		name:    "push in chunks of bytes that are about to be deleted",
		prepare: orphan,
		action:  func(ctx context.Context, w *world, n int) error { return pushImage(ctx, w.other, "alice/app", n, true) },
		keeps:   func(w *world, n int) error { return pull(w.other, "alice/app", tagOf(n)) },
	},
	{
		name: "a manifest that names blobs which were pushed long ago",
		prepare: func(w *world, n int) error {
			if err := push(context.Background(), w.other, "alice/app", blobOf(n), false); err != nil {
				return err
			}
			return push(context.Background(), w.other, "alice/app", configOf(n), false)
		},
		action: func(ctx context.Context, w *world, n int) error {
			err := putManifest(ctx, w.other, "alice/app", tagOf(n), image(configOf(n), blobOf(n), digest.Digest{}))
			if registry.CodeOf(err) == registry.ManifestBlobUnknown {
				return pushImage(ctx, w.other, "alice/app", n, false) // as clients do
			}
			return err
		},
		keeps: func(w *world, n int) error { return pull(w.other, "alice/app", tagOf(n)) },
	},
	{
		name: "mount of a blob that its repository is about to lose",
		prepare: func(w *world, n int) error {
			return push(context.Background(), w.other, "alice/source", blobOf(n), false)
		},
		action: func(ctx context.Context, w *world, n int) error {
			ok, err := w.other.MountBlob(ctx, root, "alice/app", "alice/source", digest.FromBytes(blobOf(n)))
			if err != nil {
				return err
			}
			if !ok {
				if err := push(ctx, w.other, "alice/app", blobOf(n), true); err != nil {
					return err
				}
			}
			if err := push(ctx, w.other, "alice/app", configOf(n), false); err != nil {
				return err
			}
			return putManifest(ctx, w.other, "alice/app", tagOf(n), image(configOf(n), blobOf(n), digest.Digest{}))
		},
		keeps: func(w *world, n int) error { return pull(w.other, "alice/app", tagOf(n)) },
	},
	{
		name:    "a referrer whose subject is deleted",
		prepare: func(w *world, n int) error { return pushImage(context.Background(), w.other, "alice/app", n, false) },
		action: func(ctx context.Context, w *world, n int) error {
			subject := digest.FromBytes(image(configOf(n), blobOf(n), digest.Digest{}))
			err := w.other.DeleteManifest(ctx, root, "alice/app", registry.Reference{Digest: subject})
			if err != nil && registry.CodeOf(err) != registry.ManifestUnknown {
				return err
			}
			for _, content := range [][]byte{blobOf(n), configOf(n)} {
				if err := push(ctx, w.other, "alice/app", content, false); err != nil {
					return err
				}
			}
			referrer := image(configOf(n), blobOf(n), subject)
			return putManifest(ctx, w.other, "alice/app", digest.FromBytes(referrer).String(), referrer)
		},
		keeps: func(w *world, n int) error {
			subject := digest.FromBytes(image(configOf(n), blobOf(n), digest.Digest{}))
			return pull(w.other, "alice/app", digest.FromBytes(image(configOf(n), blobOf(n), subject)).String())
		},
	},
	{
		name:    "two pushes of the same bytes into two repositories",
		prepare: orphan,
		action: func(ctx context.Context, w *world, n int) error {
			first := pushImage(ctx, w.other, "alice/app", n, false)
			second := pushImage(ctx, w.janitor, "bob/app", n, true)
			if first != nil {
				return first
			}
			return second
		},
		keeps: func(w *world, n int) error {
			if err := pull(w.janitor, "alice/app", tagOf(n)); err != nil {
				return err
			}
			return pull(w.other, "bob/app", tagOf(n))
		},
	},
}

// TestNoInterleavingLoses runs each action, whole, between every two steps of a collection, and a collection, whole, between
// every two steps of each action. What was acknowledged is pulled again, also after one more collection.
func TestNoInterleavingLoses(t *testing.T) {
	t.Parallel()
	for _, c := range claims {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			everyEngine(t, eager(), func(t *testing.T, w *world) {
				n := 0
				for at := 0; ; at++ {
					n++
					if !c.insideCollection(t, w, n, at) {
						break
					}
				}
				if n < 5 {
					t.Errorf("the collection had %d steps: the test looks at nothing", n)
				}
				from := n
				for at := 0; ; at++ {
					n++
					if !c.aroundCollection(t, w, n, at) {
						break
					}
				}
				if n-from < 3 {
					t.Errorf("the action had %d steps: the test looks at nothing", n-from)
				}
			})
		})
	}
}

// TestNoInterleavingLosesOnS3 does the same for the claim about bytes, with PostgreSQL and a store whose calls are requests.
func TestNoInterleavingLosesOnS3(t *testing.T) {
	t.Parallel()
	w := newSharedWorld(t, eager())
	n := 0
	for _, c := range claims[:1] {
		for _, run := range []func(claim, *testing.T, *world, int, int) bool{claim.insideCollection, claim.aroundCollection} {
			from := n
			for at := 0; ; at++ {
				n++
				if !run(c, t, w, n, at) {
					break
				}
			}
			if n-from < 5 {
				t.Errorf("%s: %d steps: the test looks at nothing", c.name, n-from)
			}
		}
	}
}

// insideCollection runs the action at a step of a collection. It reports whether there was such a step.
func (c claim) insideCollection(t *testing.T, w *world, n, at int) bool {
	t.Helper()
	w.must("prepare", c.prepare(w, n))
	var acknowledged error
	s := &steps{at: at, do: func() { acknowledged = c.action(context.Background(), w, n) }}
	_, err := w.janitor.Collect(s.context(), root, registry.CollectOptions{})
	w.must("collect", err)
	if !s.reached {
		return false
	}
	c.settle(t, w, n, fmt.Sprintf("at step %d of the collection", at), acknowledged)
	return true
}

// aroundCollection runs a collection at a step of the action.
func (c claim) aroundCollection(t *testing.T, w *world, n, at int) bool {
	t.Helper()
	w.must("prepare", c.prepare(w, n))
	s := &steps{at: at, do: func() { w.collect() }}
	acknowledged := c.action(s.context(), w, n)
	if !s.reached {
		return false
	}
	c.settle(t, w, n, fmt.Sprintf("with a collection at step %d of it", at), acknowledged)
	return true
}

// settle holds that an action that was acknowledged is kept, and that another was told to try again, which works.
func (c claim) settle(t *testing.T, w *world, n int, when string, acknowledged error) {
	t.Helper()
	if acknowledged != nil {
		if !again(acknowledged) {
			t.Errorf("%s: %s: %v, which does not tell the client to push again", c.name, when, acknowledged)
		}
		if err := c.action(context.Background(), w, n); err != nil {
			t.Errorf("%s: %s: pushed again: %v", c.name, when, err)
			return
		}
	}
	for _, after := range []string{"at once", "after one more collection"} {
		if err := c.keeps(w, n); err != nil {
			t.Errorf("%s: %s: lost %s (acknowledged: %v): %v", c.name, when, after, acknowledged == nil, err)
			return
		}
		w.collect()
	}
}

// TestKilledCollection kills a collection between every two of its steps. Content that it was about to delete can be pushed
// again as soon as another process has finished its work, and nothing that a row names is touched.
func TestKilledCollection(t *testing.T) {
	t.Parallel()
	everyEngine(t, eager(), func(t *testing.T, w *world) {
		w.must("push", pushImage(context.Background(), w.other, "alice/kept", 0, false))
		n, ended := 0, 0
		for at := 0; ; at++ {
			n++
			w.must("prepare", orphan(w, n))
			s := &steps{at: at, dead: true}
			victim := w.service(w.bare, eager(), true)
			_, err := victim.Collect(s.context(), root, registry.CollectOptions{})
			if !s.reached {
				w.must("collect", err)
				break
			}
			if err == nil { // killed while it gave its lease back
				ended++
			}
			next := w.service(w.bare, eager(), true)
			w.must("finish", next.CollectWhenDue(context.Background()))
			if err := pushImage(context.Background(), next, "alice/app", n, false); err != nil {
				t.Errorf("killed at step %d: pushed again: %v", at, err)
			}
			for repository, round := range map[string]int{"alice/kept": 0, "alice/app": n} {
				if err := pull(w.other, repository, tagOf(round)); err != nil {
					t.Errorf("killed at step %d: %s: %v", at, repository, err)
				}
			}
		}
		if n-ended < 6 {
			t.Errorf("%d collections were killed at work: the test looks at nothing", n-ended)
		}
	})
}

// TestOneCollectionAtATime holds that a second collection, on whatever replica, is refused while one runs.
func TestOneCollectionAtATime(t *testing.T) {
	t.Parallel()
	everyEngine(t, eager(), func(t *testing.T, w *world) {
		w.must("prepare", orphan(w, 1))
		var second error
		s := &steps{at: 3, do: func() { _, second = w.other.Collect(context.Background(), root, registry.CollectOptions{}) }}
		_, err := w.janitor.Collect(s.context(), root, registry.CollectOptions{})
		w.must("collect", err)
		if registry.CodeOf(second) != registry.Conflict {
			t.Errorf("a second collection while one runs: %v, want Conflict", second)
		}
		_, err = w.other.Collect(context.Background(), root, registry.CollectOptions{})
		w.must("collect afterwards", err)
	})
}
