package fs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
)

// syncs opens a store whose syncs are recorded: what was synced, and whether the blob was visible by then.
func syncs(t *testing.T, d digest.Digest) (*blobstore.Store, *folder, *[]string) {
	t.Helper()
	dir := t.TempDir()
	f, err := openFolder(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	var seen []string
	f.disk.fault = func(op, name string) error {
		if op != "sync" {
			return nil
		}
		if folder, random, _ := strings.Cut(name, "/"); folder == tmpDir && random != "" {
			name = "tmp/*"
		}
		state := "absent"
		if _, err := os.Stat(filepath.Join(dir, blobPath(d))); err == nil {
			state = "visible"
		}
		seen = append(seen, name+" while the blob is "+state)
		return nil
	}
	return blobstore.New(f), f, &seen
}

// TestSyncOrder checks the steps that make an acknowledged blob survive a loss of power: the bytes are synced before
// they get the blob's name, and the folder after.
func TestSyncOrder(t *testing.T) {
	t.Parallel()
	content, ctx := []byte("content"), context.Background()
	want := digest.Descriptor{Digest: digest.FromBytes(content), Size: 7}
	shard := filepath.Dir(blobPath(want.Digest))
	store, _, seen := syncs(t, want.Digest)
	check := func(what string, steps ...string) {
		t.Helper()
		if diff := cmp.Diff(steps, *seen); diff != "" {
			t.Errorf("%s: syncs differ (-want +got):\n%s", what, diff)
		}
		*seen = nil
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(store.Put(ctx, want, bytes.NewReader(content)))
	check("first put", "tmp/* while the blob is absent", "blobs/sha256 while the blob is absent", shard+" while the blob is visible")
	must(store.Put(ctx, want, bytes.NewReader(content)))
	check("put of a blob that is there", shard+" while the blob is visible")
	must(store.Delete(ctx, want.Digest))
	check("delete", shard+" while the blob is absent")
	must(store.Put(ctx, want, bytes.NewReader(content)))
	check("second put", "tmp/* while the blob is absent", shard+" while the blob is visible")
	must(store.Delete(ctx, want.Digest))
	check("delete", shard+" while the blob is absent")

	must(store.CreateUpload(ctx, "u"))
	_, err := store.AppendUpload(ctx, "u", 0, bytes.NewReader(content[:3]), 10)
	must(err)
	check("first append", "uploads/u while the blob is absent", "uploads while the blob is absent")
	_, err = store.AppendUpload(ctx, "u", 3, bytes.NewReader(content[3:]), 10)
	must(err)
	check("second append", "uploads/u while the blob is absent")
	_, err = store.CommitUpload(ctx, "u", want.Digest)
	must(err)
	check("commit", "uploads/u while the blob is absent", shard+" while the blob is visible")
}

// TestSyncFails checks that a sync that fails is never answered as success, and what is there afterwards.
func TestSyncFails(t *testing.T) {
	t.Parallel()
	content, ctx := []byte("content"), context.Background()
	want := digest.Descriptor{Digest: digest.FromBytes(content), Size: 7}
	store, f, _ := syncs(t, want.Digest)
	watch, errDisk := f.disk.fault, errors.New("the disk's own error")
	failOn := func(part string) {
		f.disk.fault = func(op, name string) error {
			if op == "sync" && strings.Contains(name, part) {
				return errDisk
			}
			return watch(op, name)
		}
	}
	for _, part := range []string{"tmp/", "blobs/sha256"} {
		failOn(part)
		if err := store.Put(ctx, want, bytes.NewReader(content)); !errors.Is(err, errDisk) {
			t.Errorf("put when the sync of %s fails: got error %v, want the disk's", part, err)
		}
		if left, err := f.root.Open(tmpDir); err == nil {
			if names, _ := left.Readdirnames(-1); len(names) > 0 {
				t.Errorf("put when the sync of %s fails: left %v", part, names)
			}
			left.Close()
		}
	}
	f.disk.fault = watch
	if err := f.Put(ctx, want, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	failOn("blobs/sha256")
	if err := store.Put(ctx, want, bytes.NewReader(content)); !errors.Is(err, errDisk) {
		t.Errorf("put of a blob that is there when the sync of its folder fails: got error %v, want the disk's", err)
	}
	f.disk.fault = watch
	if err := store.CreateUpload(ctx, "u"); err != nil {
		t.Fatal(err)
	}
	failOn("uploads")
	if size, err := store.AppendUpload(ctx, "u", 0, bytes.NewReader(content), 10); !errors.Is(err, errDisk) || size != 0 {
		t.Errorf("append when its sync fails: got size %d, error %v, want 0 and the disk's", size, err)
	}
	f.disk.fault = watch
	if _, err := store.AppendUpload(ctx, "u", 0, bytes.NewReader(content), 10); err != nil {
		t.Errorf("append after one that failed: %v", err)
	}
	failOn("uploads/u")
	if _, err := store.CommitUpload(ctx, "u", want.Digest); !errors.Is(err, errDisk) {
		t.Errorf("commit when its sync fails: got error %v, want the disk's", err)
	}
	f.disk.fault = watch
	if _, err := store.CommitUpload(ctx, "u", want.Digest); err != nil {
		t.Errorf("commit after one that failed: %v", err)
	}
}
