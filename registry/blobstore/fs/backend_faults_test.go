package fs

import (
	"bytes"
	"context"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/blobfault"
)

// TestStoreOverFailingBackend fails each call of the Store to its back-end in turn: the Store then says so, takes no bytes
// that it has not verified, and goes on where it stopped as if nothing had been.
func TestStoreOverFailingBackend(t *testing.T) {
	t.Parallel()
	ctx, content := context.Background(), bytes.Repeat([]byte("0123456789"), 10_000)
	want := digest.Descriptor{Digest: digest.FromBytes(content), Size: int64(len(content))}
	other := digest.FromBytes([]byte("other bytes"))
	for _, kind := range []blobfault.Kind{blobfault.NoSpace, blobfault.IOError} {
		for n := 0; ; n++ {
			f, err := openFolder(t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			plan := &blobfault.Plan{}
			store := blobstore.New(plan.Backend(f))
			plan.Arm(n, kind)
			failed := storeWholly(ctx, store, want, content)
			call := plan.Disarm()
			if call == "" {
				if failed != nil {
					t.Errorf("without a failing call: %v", failed)
				}
				store.Close()
				break
			}
			// A failing look for what is there already is no failure of a put.
			if failed == nil && call != "Stat" && call != "RemoveUpload" {
				t.Errorf("call %d (%s) fails by %s, and nobody says so", n, call, kind)
			}
			for u, err := range store.Uploads(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := store.CommitUpload(ctx, u.ID, other); err == nil {
					t.Errorf("call %d (%s): the upload was taken for other bytes", n, call)
				}
				if _, err := store.AppendUpload(ctx, u.ID, u.Size, bytes.NewReader(content[u.Size:]), 1<<30); err != nil {
					t.Errorf("call %d (%s): go on with the upload: %v", n, call, err)
				}
				if _, err := store.CommitUpload(ctx, u.ID, want.Digest); err != nil {
					t.Errorf("call %d (%s): commit the upload: %v", n, call, err)
				}
			}
			if err := store.Put(ctx, want, bytes.NewReader(content)); err != nil {
				t.Errorf("call %d (%s): put: %v", n, call, err)
			}
			if err := blobstore.Verify(ctx, store, want); err != nil {
				t.Errorf("call %d (%s): %v", n, call, err)
			}
			store.Close()
		}
	}
}

// storeWholly brings the blob by an upload, puts it again, reads it, sets it aside and puts it once more. It gives the first
// error.
func storeWholly(ctx context.Context, store *blobstore.Store, want digest.Descriptor, content []byte) error {
	if err := store.CreateUpload(ctx, "u"); err != nil {
		return err
	}
	half := int64(len(content) / 2)
	if _, err := store.AppendUpload(ctx, "u", 0, bytes.NewReader(content[:half]), 1<<30); err != nil {
		return err
	}
	if _, err := store.AppendUpload(ctx, "u", half, bytes.NewReader(content[half:]), 1<<30); err != nil {
		return err
	}
	if _, err := store.CommitUpload(ctx, "u", want.Digest); err != nil {
		return err
	}
	if err := store.Put(ctx, want, bytes.NewReader(content)); err != nil {
		return err
	}
	if err := blobstore.Verify(ctx, store, want); err != nil {
		return err
	}
	if err := store.Quarantine(ctx, want.Digest); err != nil {
		return err
	}
	return store.Put(ctx, want, bytes.NewReader(content))
}
