package registry_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// soakEnv names how long TestSoak runs.
const soakEnv = "GATEHOUSE_SOAK"

// TestSoak lets a collection run every second, with no time of grace, beside clients of two replicas that push, mount, delete
// and pull. Whatever was acknowledged stays pullable to the end: 0 lost.
func TestSoak(t *testing.T) {
	t.Parallel()
	length := 30 * time.Second
	if text := os.Getenv(soakEnv); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", soakEnv, err)
		}
	}
	w := newSQLiteWorld(t, eager())
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	k := &soak{w: w, kept: map[string]bool{}}
	var all sync.WaitGroup
	all.Go(func() { k.collect(ctx) })
	for i := range 4 {
		all.Go(func() { k.client(ctx, i) })
	}
	all.Wait()
	k.check()
	t.Logf("%d artifacts acknowledged, %d deleted, %d told to push again, %d collections that removed %d blobs and %d links", k.acknowledged, k.deleted, k.again, k.collections, k.removed, k.links)
	if k.acknowledged < 20 || k.collections < 5 || k.removed == 0 {
		t.Error("too little happened for the soak to say anything")
	}
}

type soak struct {
	w *world

	mu                           sync.Mutex
	kept                         map[string]bool // repository:tag of what was acknowledged and not deleted
	acknowledged, deleted, again int
	collections, removed, links  int
}

func (k *soak) count(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *soak) collect(ctx context.Context) {
	for ctx.Err() == nil {
		r, err := k.w.janitor.Collect(context.Background(), root, registry.CollectOptions{})
		if err != nil {
			k.w.t.Errorf("collect: %v", err)
			return
		}
		k.count(func() { k.collections++; k.removed += r.Blobs; k.links += r.Links })
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// client pushes images whose layers many of them share, deletes some, and pulls others. It owns the tags of its repository.
func (k *soak) client(ctx context.Context, i int) {
	s := []*registry.Service{k.w.janitor, k.w.other}[i%2]
	repository := fmt.Sprintf("owner%d/app", i)
	r := rand.New(rand.NewPCG(uint64(i), 1))
	for n := 0; ctx.Err() == nil; n++ {
		layer := large(fmt.Sprintf("shared layer %d", r.IntN(12)))
		config := fmt.Appendf(nil, `{"client":%d,"n":%d}`, i, n%50)
		tag := fmt.Sprintf("t%d", n)
		err := k.push(s, repository, tag, config, layer, r.IntN(3))
		switch {
		case err == nil:
			k.count(func() { k.acknowledged++; k.kept[repository+":"+tag] = true })
		case again(err):
			k.count(func() { k.again++ })
		default:
			k.w.t.Errorf("push of %s:%s: %v", repository, tag, err)
			return
		}
		if r.IntN(2) == 0 {
			k.drop(s, repository, fmt.Sprintf("t%d", r.IntN(n+1)))
		}
	}
}

// push brings an image in one of three ways.
func (k *soak) push(s *registry.Service, repository, tag string, config, layer []byte, way int) error {
	ctx := context.Background()
	if way == 0 {
		if _, err := s.MountBlob(ctx, root, repository, "", digest.FromBytes(layer)); err != nil {
			return err
		}
	}
	if _, err := s.StatBlob(ctx, root, repository, digest.FromBytes(layer)); err != nil {
		if err := push(ctx, s, repository, layer, way == 1); err != nil {
			return err
		}
	}
	if err := push(ctx, s, repository, config, false); err != nil {
		return err
	}
	return putManifest(ctx, s, repository, tag, image(config, layer, digest.Digest{}))
}

// drop deletes an image of the client's own, with every tag that it has.
func (k *soak) drop(s *registry.Service, repository, tag string) {
	ctx := context.Background()
	m, err := s.StatManifest(ctx, root, repository, registry.Reference{Tag: tag})
	if err != nil {
		return
	}
	// The tags of one digest go together: forget them before they go.
	k.count(func() {
		for name := range k.kept {
			var other string
			if _, err := fmt.Sscanf(name, repository+":%s", &other); err != nil {
				continue
			}
			if o, err := s.StatManifest(ctx, root, repository, registry.Reference{Tag: other}); err == nil && o.Digest == m.Digest {
				delete(k.kept, name)
				k.deleted++
			}
		}
	})
	if err := s.DeleteManifest(ctx, root, repository, registry.Reference{Digest: m.Digest}); err != nil {
		k.w.t.Errorf("delete %s@%s: %v", repository, m.Digest, err)
	}
}

// check pulls everything that was acknowledged and not deleted.
func (k *soak) check() {
	lost := 0
	for name := range k.kept {
		var repository, tag string
		for i := range name {
			if name[i] == ':' {
				repository, tag = name[:i], name[i+1:]
			}
		}
		if err := pull(k.w.other, repository, tag); err != nil {
			lost++
			k.w.t.Errorf("%s was acknowledged and is lost: %v", name, err)
		}
	}
	if r, found := k.w.fsck(nil); r.Damage != 0 {
		k.w.t.Errorf("fsck after the soak: %+v, %v", r, found)
	}
	k.w.t.Logf("%d lost of %d", lost, len(k.kept))
}
