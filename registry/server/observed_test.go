package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
)

// slow is a store that answers when its context ends, or never.
type slow struct{ registry.BlobStore }

func (slow) Stat(ctx context.Context, _ digest.Digest) (int64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// A request gives a slow store up; the registry's own work does not.
func TestSlowStoreIsGivenUp(t *testing.T) {
	store := newObservedBlobs(slow{}, backendS3, newMetrics("test"), nil, 20*time.Millisecond)
	d := digest.FromBytes([]byte("x"))
	_, err := store.Stat(context.WithValue(t.Context(), entryKey{}, &entry{}), d)
	if registry.CodeOf(err) != registry.Unavailable {
		t.Errorf("a request: %v, want Unavailable", err)
	}
	own, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := store.Stat(own, d)
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("work of the server's own was given up: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the server's own work: %v", err)
	}
	gone, cancel := context.WithCancel(context.WithValue(t.Context(), entryKey{}, &entry{}))
	cancel()
	if _, err := store.Stat(gone, d); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that went away: %v", err)
	}
}

// What was opened in time is read to its end, however long that takes.
func TestOpenBlobOutlivesTheTimeout(t *testing.T) {
	folder, err := fs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	ctx := context.WithValue(t.Context(), entryKey{}, &entry{})
	inner := make(chan context.Context, 1)
	store := newObservedBlobs(opener{folder, inner}, backendS3, newMetrics("test"), nil, 10*time.Millisecond)
	store.Open(ctx, digest.FromBytes([]byte("x"))) // it is not there, which is an answer too
	select {
	case <-(<-inner).Done():
		t.Error("the context of what was opened ended with the timeout")
	case <-time.After(50 * time.Millisecond):
	}
}

type opener struct {
	registry.BlobStore
	inner chan context.Context
}

func (o opener) Open(ctx context.Context, d digest.Digest) (registry.Blob, int64, error) {
	o.inner <- ctx
	return o.BlobStore.Open(ctx, d)
}
