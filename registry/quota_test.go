package registry_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// TestQuotaIsNeverExceeded pushes from two replicas at once, small content and large, and holds that what was acknowledged
// stays within the limit and that every refusal names it.
func TestQuotaIsNeverExceeded(t *testing.T) {
	t.Parallel()
	everyEngine(t, registry.DefaultSettings(), func(t *testing.T, w *world) {
		ctx := context.Background()
		const limit = 10 * 41_000
		_, err := w.janitor.SetOwnerQuota(ctx, root, "alice", &registry.Quota{Bytes: limit})
		w.must("set the quota", err)
		var stored atomic.Int64
		var pushes sync.WaitGroup
		for i := range 64 {
			pushes.Go(func() {
				content := large(fmt.Sprintf("content %d", i))
				if i%2 == 0 {
					content = content[:10_000]
				}
				s := []*registry.Service{w.janitor, w.other}[i/2%2]
				err := push(ctx, s, fmt.Sprintf("alice/app%d", i%5), content, i%3 == 0)
				switch {
				case err == nil:
					stored.Add(int64(len(content)))
				case registry.CodeOf(err) != registry.Denied:
					t.Errorf("push %d: %v, want Denied or nothing", i, err)
				case !strings.Contains(err.Error(), fmt.Sprint(limit)) || !strings.Contains(err.Error(), "alice") || !strings.Contains(err.Error(), "sf admin quota"):
					t.Errorf("push %d: the refusal %q does not name the limit, the owner and the remedy", i, err)
				}
			})
		}
		pushes.Wait()
		used, err := w.janitor.OwnerQuota(ctx, root, "alice")
		w.must("usage", err)
		if used.Bytes != stored.Load() || used.Bytes > limit || used.Bytes < limit/2 {
			t.Errorf("charged %d bytes, acknowledged %d, of a limit of %d", used.Bytes, stored.Load(), limit)
		}
		w.must("push for another owner", push(ctx, w.other, "bob/app", large("bob"), false))
	})
}

// countingReader tells whether anything was read.
type countingReader struct {
	bytes.Reader
	read bool
}

func (r *countingReader) Read(p []byte) (int, error) {
	r.read = true
	return r.Reader.Read(p)
}

// TestQuotaBeforeBytes holds that an owner without room is told before its bytes are taken, and that what costs nothing is
// never refused.
func TestQuotaBeforeBytes(t *testing.T) {
	t.Parallel()
	set := registry.DefaultSettings()
	set.Quota = registry.Quota{Bytes: 50_000}
	everyEngine(t, set, func(t *testing.T, w *world) {
		ctx, s := context.Background(), w.other
		first, second := large("first"), large("second")
		w.must("first push", push(ctx, s, "alice/app", first, false))
		u, err := s.StartUpload(ctx, root, "alice/app")
		w.must("start", err)
		for what, try := range map[string]func(*countingReader) error{
			"at once": func(r *countingReader) error {
				_, err := s.PutBlob(ctx, root, "alice/app", digest.FromBytes(second), registry.Chunk{Size: int64(len(second)), Body: r})
				return err
			},
			"a chunk": func(r *countingReader) error {
				_, err := s.AppendUpload(ctx, root, "alice/app", u.ID, registry.Chunk{Size: int64(len(second)), Body: r})
				return err
			},
			"the last chunk": func(r *countingReader) error {
				_, err := s.FinishUpload(ctx, root, "alice/app", u.ID, registry.Chunk{Size: int64(len(second)), Body: r}, digest.FromBytes(second))
				return err
			},
		} {
			r := &countingReader{Reader: *bytes.NewReader(second)}
			if err := try(r); registry.CodeOf(err) != registry.Denied || r.read {
				t.Errorf("%s without room: %v (read: %v), want Denied before a byte is read", what, err, r.read)
			}
		}
		unsaid := registry.Chunk{Offset: -1, Size: -1, Body: bytes.NewReader(second)} // what a sender does not say is bounded all the same
		if size, err := s.AppendUpload(ctx, root, "alice/app", u.ID, unsaid); registry.CodeOf(err) != registry.Denied || size > set.Quota.Bytes-int64(len(first)) {
			t.Errorf("a chunk of no size said, beyond the room: %d bytes, %v, want Denied", size, err)
		}
		_, err = s.PutBlob(ctx, root, "alice/app", digest.FromBytes(first), registry.Chunk{Size: -1, Body: bytes.NewReader(first)})
		w.must("the blob that is there, its size not said", err)
		w.must("the same blob again", push(ctx, s, "alice/app", first, false))
		ok, err := s.MountBlob(ctx, root, "alice/other", "alice/app", digest.FromBytes(first))
		if !ok || err != nil {
			t.Errorf("mount of a blob that the owner has: %v, %v; it costs nothing", ok, err)
		}
		if _, err := s.MountBlob(ctx, root, "bob/app", "alice/app", digest.FromBytes(first)); err != nil {
			t.Errorf("mount by another owner with room: %v", err)
		}
		_, err = w.janitor.SetOwnerQuota(ctx, root, "alice", &registry.Quota{Bytes: 1})
		w.must("a limit below what is held", err)
		w.must("the same blob below the limit", push(ctx, s, "alice/app", first, false))
		_, err = w.janitor.SetOwnerQuota(ctx, root, "alice", &registry.Quota{Bytes: 200_000, Manifests: 1})
		w.must("more room", err)
		w.must("an image", pushImage(ctx, s, "alice/app", 1, false))
		if err := pushImage(ctx, s, "alice/app", 2, false); registry.CodeOf(err) != registry.Denied || !strings.Contains(err.Error(), "manifests") {
			t.Errorf("a second manifest of one: %v, want Denied", err)
		}
		_, err = w.janitor.SetOwnerQuota(ctx, root, "alice", nil)
		w.must("the default again", err)
		if l, err := w.janitor.OwnerQuota(ctx, root, "alice"); err != nil || !l.Default || l.Limit != set.Quota {
			t.Errorf("limit after it was taken away: %+v, %v", l, err)
		}
	})
}

// TestQuotaIsNeverForgotten holds that a limit counts from the moment that it is acknowledged, and for as long, although the
// registry remembers of an owner that it has none.
func TestQuotaIsNeverForgotten(t *testing.T) {
	t.Parallel()
	everyEngine(t, registry.DefaultSettings(), func(t *testing.T, w *world) {
		ctx := context.Background()
		number := 0
		pushed := func() error {
			number++
			return push(ctx, w.janitor, "alice/app", []byte(fmt.Sprintf("content %d", number)), false)
		}
		for range 3 {
			w.must("push without a limit", pushed())
			w.must("again", pushed())
			_, err := w.other.SetOwnerQuota(ctx, root, "alice", &registry.Quota{Bytes: 1})
			w.must("set the quota", err)
			if err := pushed(); registry.CodeOf(err) != registry.Denied {
				t.Errorf("a push beyond the limit: %v, want Denied", err)
			}
			_, err = w.other.SetOwnerQuota(ctx, root, "alice", nil)
			w.must("lift the quota", err)
		}
	})
}
