package registry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// sourceOf is a source that has the given contents.
type sourceOf [][]byte

func (s sourceOf) Fetch(_ context.Context, repositories []string, want digest.Descriptor) (io.ReadCloser, error) {
	for _, content := range s {
		if digest.FromBytes(content) == want.Digest && slices.Contains(repositories, "alice/app") {
			return io.NopCloser(bytes.NewReader(content)), nil
		}
	}
	return nil, registry.ErrBlobUnknown
}

func (w *world) fsck(from registry.RepairSource) (registry.FsckReport, map[string][]registry.Finding) {
	w.t.Helper()
	found := map[string][]registry.Finding{}
	r, err := w.janitor.Fsck(context.Background(), root, registry.FsckOptions{From: from, Each: func(f registry.Finding) error {
		found[f.Kind] = append(found[f.Kind], f)
		return nil
	}})
	w.must("fsck", err)
	return r, found
}

// file is where a blob of the BlobStore lies.
func (w *world) file(d digest.Digest) string {
	return filepath.Join(w.dir, "blobs", string(d.Algorithm()), d.Hex()[:2], d.Hex())
}

// spoil changes a byte of a blob on the disk.
func (w *world) spoil(d digest.Digest) {
	w.t.Helper()
	content, err := os.ReadFile(w.file(d))
	w.must("read", err)
	content[len(content)/2] ^= 1
	w.must("chmod", os.Chmod(w.file(d), 0o600))
	w.must("write", os.WriteFile(w.file(d), content, 0o600))
}

// TestFsck spoils what the store holds, in every way, and holds that each is found, told to readers by its name, and
// repaired from a source.
func TestFsck(t *testing.T) {
	t.Parallel()
	everyEngine(t, eager(), func(t *testing.T, w *world) {
		ctx := context.Background()
		for n := 1; n <= 3; n++ {
			w.must("push", pushImage(ctx, w.other, "alice/app", n, false))
		}
		w.must("mount", func() error {
			_, err := w.other.MountBlob(ctx, root, "bob/app", "alice/app", digest.FromBytes(blobOf(1)))
			return err
		}())
		if r, found := w.fsck(nil); !r.Whole() || r.Damage != 0 || len(found) != 0 || r.Blobs != 9 {
			t.Fatalf("a sound registry: %+v, %v", r, found)
		}
		damaged, missing, small := digest.FromBytes(blobOf(1)), digest.FromBytes(blobOf(2)), digest.FromBytes(configOf(3))
		w.spoil(damaged)
		w.must("remove", os.Remove(w.file(missing)))
		w.must("spoil", w.bare.Update(ctx, func(tx registry.Tx) error { return tx.PutSmall(small, []byte(`{"round":4}`), time.Now()) }))
		w.must("orphan", push(ctx, w.other, "alice/orphan", large("orphan"), false))
		w.must("orphan", w.other.DeleteBlob(ctx, root, "alice/orphan", digest.FromBytes(large("orphan"))))

		r, found := w.fsck(nil)
		if r.Whole() || r.Damage != 3 || r.Repaired != 0 {
			t.Errorf("report %+v, want three damages", r)
		}
		for kind, want := range map[string][]digest.Digest{registry.FindingDamaged: {damaged, small}, registry.FindingMissing: {missing}} {
			var got []digest.Digest
			for _, f := range found[kind] {
				got = append(got, f.Digest)
				if !slices.Contains(f.Holders, "alice/app") {
					t.Errorf("%s %s: holders %v do not name alice/app", kind, f.Digest, f.Holders)
				}
			}
			for _, d := range want {
				if !slices.Contains(got, d) {
					t.Errorf("%s: found %v, not %s", kind, got, d)
				}
			}
		}
		if len(found[registry.FindingUnreferenced]) != 1 {
			t.Errorf("unreferenced: %v", found[registry.FindingUnreferenced])
		}
		for _, d := range []digest.Digest{damaged, missing} {
			err := pullBlob(w.other, "alice/app", d)
			if registry.CodeOf(err) != registry.Damaged || !strings.Contains(err.Error(), "administrator") {
				t.Errorf("pull of %s: %v, want Damaged with a way out", d, err)
			}
			if _, err := w.other.StatBlob(ctx, root, "alice/app", d); registry.CodeOf(err) != registry.BlobUnknown {
				t.Errorf("stat of %s: %v; a client must push it again", d, err)
			}
			if ok, err := w.other.MountBlob(ctx, root, "carol/app", "alice/app", d); ok || err != nil {
				t.Errorf("mount of %s: %v, %v; there is nothing to mount", d, ok, err)
			}
		}
		if aside, err := os.ReadDir(filepath.Join(w.dir, "quarantine")); err != nil || len(aside) != 1 {
			t.Errorf("quarantine: %v, %v, want the damaged blob", aside, err)
		}

		r, found = w.fsck(sourceOf{blobOf(1), blobOf(2), configOf(3)})
		if !r.Whole() || r.Repaired != 3 {
			t.Errorf("repair: %+v, %v", r, found)
		}
		if r, _ := w.fsck(nil); r.Damage != 0 {
			t.Errorf("after the repair: %+v", r)
		}
		for n := 1; n <= 3; n++ {
			w.must("pull after the repair", pull(w.other, "alice/app", tagOf(n)))
		}
	})
}

// TestFsckRepairsWithGoodBytesOnly holds that what a source gives is verified.
func TestFsckRepairsWithGoodBytesOnly(t *testing.T) {
	t.Parallel()
	w := newSQLiteWorld(t, eager())
	w.must("push", pushImage(context.Background(), w.other, "alice/app", 1, false))
	w.must("remove", os.Remove(w.file(digest.FromBytes(blobOf(1)))))
	r, found := w.fsck(lyingSource{})
	if r.Whole() || len(found[registry.FindingMissing]) != 1 || !strings.Contains(found[registry.FindingMissing][0].Detail, "not repaired") {
		t.Errorf("a source of other bytes: %+v, %v", r, found)
	}
	w.must("push again", pushImage(context.Background(), w.other, "alice/app", 1, false))
	w.must("pull", pull(w.other, "alice/app", tagOf(1)))
}

// TestPushMendsDamage holds that damaged content which no check has come upon yet is never said to be there, and is mended by
// the clients that have it: blobs and manifests, beside their rows and in the store, of artifacts and of versions.
func TestPushMendsDamage(t *testing.T) {
	t.Parallel()
	everyEngine(t, eager(), func(t *testing.T, w *world) {
		ctx := context.Background()
		small, cut := []byte("a small blob"), large("to be cut")
		// too large to lie beside its row
		wide := []byte(`{"schemaVersion":2,"mediaType":"` + imageIndex + `","manifests":[],"annotations":{"x":"` + strings.Repeat("x", 40<<10) + `"}}`)
		w.must("push", pushImage(ctx, w.other, "alice/app", 1, false))
		w.must("push", push(ctx, w.other, "alice/app", small, false))
		w.must("push", push(ctx, w.other, "alice/app", cut, false))
		put := func(content []byte) {
			t.Helper()
			_, err := w.other.PutManifest(ctx, root, "alice/app", registry.Reference{Tag: "wide"}, imageIndex, content)
			w.must("put", err)
		}
		put(wide)
		w.spoil(digest.FromBytes(wide))
		w.must("chmod", os.Chmod(w.file(digest.FromBytes(cut)), 0o600))
		w.must("cut", os.Truncate(w.file(digest.FromBytes(cut)), 100))
		w.must("spoil", w.bare.Update(ctx, func(tx registry.Tx) error {
			return tx.PutSmall(digest.FromBytes(small), []byte("A small blob"), time.Now())
		}))

		for _, d := range []digest.Digest{digest.FromBytes(small), digest.FromBytes(cut)} {
			if _, err := w.other.StatBlob(ctx, root, "alice/app", d); registry.CodeOf(err) != registry.BlobUnknown {
				t.Errorf("stat of damaged %s: %v, want that it is not there", d, err)
			}
			if err := pullBlob(w.other, "alice/app", d); registry.CodeOf(err) != registry.Damaged {
				t.Errorf("pull of damaged %s: %v, want Damaged", d, err)
			}
		}
		if ok, err := w.other.MountBlob(ctx, root, "bob/app", "alice/app", digest.FromBytes(small)); ok || err != nil {
			t.Errorf("mount of a damaged blob: %v, %v", ok, err)
		}
		ref := registry.Reference{Tag: "wide"}
		if _, _, err := w.other.GetManifest(ctx, root, "alice/app", ref); registry.CodeOf(err) != registry.Damaged {
			t.Errorf("get of a damaged manifest: %v, want Damaged", err)
		}
		if _, err := w.other.StatManifest(ctx, root, "alice/app", ref); registry.CodeOf(err) != registry.ManifestUnknown {
			t.Errorf("stat of a damaged manifest: %v, want that it is not there", err)
		}

		w.must("push", push(ctx, w.other, "alice/app", small, false))
		w.must("push", push(ctx, w.other, "alice/app", cut, false))
		put(wide)
		if r, found := w.fsck(nil); r.Damage != 0 {
			t.Errorf("after the pushes: %v", found)
		}
		if _, got, err := w.other.GetManifest(ctx, root, "alice/app", ref); err != nil || !bytes.Equal(got, wide) {
			t.Errorf("the mended manifest: %d bytes, %v", len(got), err)
		}
	})
}

type lyingSource struct{}

func (lyingSource) Fetch(_ context.Context, _ []string, want digest.Descriptor) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(make([]byte, want.Size))), nil
}

// TestScrub holds that a round that is interrupted goes on where it stopped, and that what it found is kept.
func TestScrub(t *testing.T) {
	t.Parallel()
	set := eager()
	set.Scrub = registry.ScrubSettings{Every: time.Hour}
	everyEngine(t, set, func(t *testing.T, w *world) {
		ctx := context.Background()
		for n := range 3 {
			w.must("push", pushImage(ctx, w.other, "alice/app", n, false))
		}
		w.spoil(digest.FromBytes(blobOf(1)))
		w.must("a killed round", ignoreKill(w.janitor.ScrubWhenDue((&steps{at: 2, dead: true}).context())))
		w.pass(10 * time.Minute) // its lease is over
		w.must("scrub", w.other.ScrubWhenDue(ctx))
		state, err := w.janitor.Scrub(ctx, root)
		w.must("state", err)
		if state.EndedAt.IsZero() || state.Damaged != 1 || len(state.Findings) != 1 || state.Findings[0].Digest != digest.FromBytes(blobOf(1)) {
			t.Errorf("state %+v, want an ended round that found the damaged layer", state)
		}
		ended := state.EndedAt
		w.must("not due", w.other.ScrubWhenDue(ctx))
		w.pass(2 * time.Hour)
		w.must("due", w.janitor.ScrubWhenDue(ctx))
		if state, err = w.other.Scrub(ctx, root); err != nil || !state.EndedAt.After(ended) || state.Blobs != 9 {
			t.Errorf("second round: %+v, %v", state, err)
		}
	})
}

func ignoreKill(err error) error {
	if errors.Is(err, errKilled) {
		return nil
	}
	return err
}
