package fs_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/blobfault"
	blobfs "github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
)

// outcome is what an operation acknowledged before its store failed.
type outcome struct {
	err    error
	upload int64             // bytes of the session "u" that were acknowledged
	stored digest.Descriptor // a blob that must be there
	gone   digest.Digest     // a blob that must not
}

// The blobs of the fault tests: one that is there before, one that the operation brings.
var (
	oldBlob = []byte("a blob that was there before")
	newBlob = bytes.Repeat([]byte("0123456789abcdef"), 8<<10) // more than one write of io.Copy
)

func described(b []byte) digest.Descriptor {
	return digest.Descriptor{Digest: digest.FromBytes(b), Size: int64(len(b))}
}

// operations are what is failed at each of its calls.
var operations = map[string]func(ctx context.Context, s *blobstore.Store) outcome{
	"put": func(ctx context.Context, s *blobstore.Store) (o outcome) {
		if o.err = s.Put(ctx, described(newBlob), bytes.NewReader(newBlob)); o.err == nil {
			o.stored = described(newBlob)
		}
		return o
	},
	"put of a blob that is there": func(ctx context.Context, s *blobstore.Store) (o outcome) {
		o.err, o.stored = s.Put(ctx, described(oldBlob), bytes.NewReader(oldBlob)), described(oldBlob)
		return o
	},
	"upload": func(ctx context.Context, s *blobstore.Store) (o outcome) {
		if o.err = s.CreateUpload(ctx, "u"); o.err != nil {
			return o
		}
		half := len(newBlob) / 2
		for _, part := range [][]byte{newBlob[:half], newBlob[half:]} {
			var size int64
			if size, o.err = s.AppendUpload(ctx, "u", o.upload, bytes.NewReader(part), 1<<30); o.err != nil {
				return o
			}
			o.upload = size
		}
		if _, o.err = s.CommitUpload(ctx, "u", described(newBlob).Digest); o.err == nil {
			o.stored, o.upload = described(newBlob), 0
		}
		return o
	},
	"delete": func(ctx context.Context, s *blobstore.Store) (o outcome) {
		if o.err = s.Delete(ctx, described(oldBlob).Digest); o.err == nil {
			o.gone = described(oldBlob).Digest
		}
		return o
	},
	"quarantine": func(ctx context.Context, s *blobstore.Store) (o outcome) {
		if o.err = s.Quarantine(ctx, described(oldBlob).Digest); o.err == nil {
			o.gone = described(oldBlob).Digest
		}
		return o
	},
	"abort": func(ctx context.Context, s *blobstore.Store) (o outcome) {
		if o.err = s.CreateUpload(ctx, "u"); o.err == nil {
			o.err = s.AbortUpload(ctx, "u")
		}
		return o
	},
}

// TestEveryCallFails fails each call to the disk of each operation in turn, by a full disk, by an error of the disk and by
// the end of the process, and opens the folder again.
func TestEveryCallFails(t *testing.T) {
	t.Parallel()
	for name, operation := range operations {
		for _, kind := range blobfault.DiskKinds {
			t.Run(fmt.Sprint(name, " ", kind), func(t *testing.T) {
				t.Parallel()
				var calls []string
				for n := 0; ; n++ {
					call := failCall(t, operation, n, kind)
					if call == "" {
						break
					}
					calls = append(calls, call)
				}
				if len(calls) < 2 {
					t.Errorf("only the calls %q failed", calls)
				}
			})
		}
	}
}

// failCall runs the operation in a new folder with its n-th call failing, checks what is there, and gives the call.
func failCall(t *testing.T, operation func(context.Context, *blobstore.Store) outcome, n int, kind blobfault.Kind) string {
	t.Helper()
	dir, ctx, plan := t.TempDir(), context.Background(), &blobfault.Plan{}
	before := open(t, dir)
	if err := before.Put(ctx, described(oldBlob), bytes.NewReader(oldBlob)); err != nil {
		t.Fatal(err)
	}
	before.Close()
	store, err := blobfs.OpenWith(dir, plan.Disk)
	if err != nil {
		t.Fatal(err)
	}
	plan.Arm(n, kind)
	got := operation(ctx, store)
	call := plan.Disarm()
	what := fmt.Sprintf("call %d (%s) fails by %s", n, call, kind)
	if call == "" && got.err != nil {
		t.Fatalf("without a failing call: %v", got.err)
	}
	if kind == blobfault.NoSpace && got.err != nil && registry.CodeOf(got.err) != registry.Unavailable {
		t.Errorf("%s: got error %v, want one of code Unavailable", what, got.err)
	}
	if call != "" && kind != blobfault.Kill {
		checkFolder(t, what+", same process", dir, store, got)
	}
	store.Close()
	store = open(t, dir)
	defer store.Close()
	checkFolder(t, what+", next process", dir, store, got)
	again(t, what, store, got)
	return call
}

// checkFolder checks what is there: what was acknowledged, nothing that is half, and no leftovers.
func checkFolder(t *testing.T, what, dir string, store *blobstore.Store, got outcome) {
	t.Helper()
	ctx := context.Background()
	if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("%s: tmp holds %v, error %v", what, left, err)
	}
	there := map[digest.Digest]bool{}
	for b, err := range store.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		there[b.Digest] = true
		if err := blobstore.Verify(ctx, store, digest.Descriptor{Digest: b.Digest, Size: b.Size}); err != nil {
			t.Errorf("%s: a blob that is not whole is visible: %v", what, err)
		}
	}
	if !got.stored.Digest.IsZero() && !there[got.stored.Digest] {
		t.Errorf("%s: an acknowledged blob is not there", what)
	}
	if !got.gone.IsZero() && there[got.gone] {
		t.Errorf("%s: a blob whose removal was acknowledged is there", what)
	}
	for u, err := range store.Uploads(ctx) {
		if err != nil || u.ID != "u" || u.Size < got.upload {
			t.Errorf("%s: lists the upload %+v, error %v, want at least %d bytes", what, u, err, got.upload)
		}
		got.upload = 0
	}
	if got.upload > 0 && !there[described(newBlob).Digest] {
		t.Errorf("%s: an upload of which %d bytes were acknowledged is gone", what, got.upload)
	}
}

// again goes on where the failed operation stopped: it must be possible to bring the blob now.
func again(t *testing.T, what string, store *blobstore.Store, got outcome) {
	t.Helper()
	ctx := context.Background()
	for u := range store.Uploads(ctx) {
		if _, err := store.AppendUpload(ctx, u.ID, u.Size, bytes.NewReader(newBlob[u.Size:]), 1<<30); err != nil {
			t.Errorf("%s: go on with the upload: %v", what, err)
		}
		if _, err := store.CommitUpload(ctx, u.ID, described(newBlob).Digest); err != nil {
			t.Errorf("%s: commit the upload: %v", what, err)
		}
	}
	for _, b := range [][]byte{oldBlob, newBlob} {
		if err := store.Put(ctx, described(b), bytes.NewReader(b)); err != nil {
			t.Errorf("%s: put again: %v", what, err)
		}
		if err := blobstore.Verify(ctx, store, described(b)); err != nil {
			t.Errorf("%s: after putting again: %v", what, err)
		}
	}
}

// TestOpenFails fails each call of opening a folder: Open says so, gives the lock free, and works the next time.
func TestOpenFails(t *testing.T) {
	t.Parallel()
	dir, plan := filepath.Join(t.TempDir(), "data"), &blobfault.Plan{}
	var calls []string
	for n := 0; ; n++ {
		if n == 8 { // something to clear, once there is a folder for it
			if err := os.WriteFile(filepath.Join(dir, "tmp", "HALF"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		plan.Arm(n, blobfault.IOError)
		store, err := blobfs.OpenWith(dir, plan.Disk)
		call := plan.Disarm()
		if call == "" {
			if err != nil {
				t.Fatal(err)
			}
			store.Close()
			break
		}
		if err == nil {
			t.Errorf("Open succeeded although %s failed", call)
			store.Close()
		}
		calls = append(calls, call)
	}
	if all := strings.Join(calls, "\n"); !strings.Contains(all, "remove tmp/HALF") || !strings.Contains(all, "sync blobs") {
		t.Errorf("the calls that failed were only:\n%s", all)
	}
}
