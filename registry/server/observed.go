package server

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// ourFault reports whether an operation failed through what it was asked of, and not through who asked.
func ourFault(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	if _, mismatch := errors.AsType[*digest.MismatchError](err); mismatch {
		return false
	}
	code := registry.CodeOf(err)
	return code == registry.Internal || code == registry.Unavailable
}

// watch measures and bounds what is asked of something outside the process.
type watch struct {
	seconds map[string]prometheus.Observer // by operation, looked up once
	errors  *prometheus.CounterVec
	tracing *tracing
	what    string        // in spans and messages
	timeout time.Duration // of what a request asks; 0: the other side has its own bounds
}

// The operations, as metrics and spans name them.
var (
	databaseOperations = []string{"view", "update"}
	storeOperations    = []string{"stat", "open", "put", "delete", "upload-create", "upload-size", "upload-append", "upload-commit", "upload-open", "upload-abort", "quarantine"}
)

// byOperation looks the series of every operation up.
func byOperation(v prometheus.ObserverVec, operations []string) map[string]prometheus.Observer {
	m := make(map[string]prometheus.Observer, len(operations))
	for _, name := range operations {
		m[name] = v.With(prometheus.Labels{"operation": name})
	}
	return m
}

// run does one operation. Work of the server's own has all the time that it needs. A bounded operation is given up after
// the timeout; what it opened is not cut off by that.
func (w *watch) run(ctx context.Context, operation string, bounded bool, fn func(context.Context) error) error {
	start := time.Now()
	parent := ctx
	ctx, span := w.tracing.child(ctx, w.what+" "+operation)
	if bounded && w.timeout > 0 && entryOf(ctx) != nil {
		// No cancel at the end: what was opened may still be read under this context, which ends with the request's.
		limited, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(w.timeout, func() { cancel(context.DeadlineExceeded) })
		defer timer.Stop()
		ctx = limited
	}
	err := fn(ctx)
	if err != nil && parent.Err() == nil && context.Cause(ctx) == context.DeadlineExceeded {
		err = &registry.Error{Code: registry.Unavailable, Message: "the " + w.what + " does not answer in time: try again", Err: err}
	}
	w.seconds[operation].Observe(time.Since(start).Seconds())
	if ourFault(err) {
		w.errors.With(prometheus.Labels{"operation": operation}).Inc()
	}
	ended(span, err)
	return err
}

// observedMeta is a MetaStore whose transactions are measured and bounded.
type observedMeta struct {
	registry.MetaStore
	watch watch
}

// newObservedMeta bounds what waits for a database outside the process.
func newObservedMeta(meta registry.MetaStore, m *metrics, t *tracing, timeout time.Duration) registry.MetaStore {
	return &observedMeta{meta, watch{seconds: byOperation(m.databaseSeconds, databaseOperations), errors: m.databaseErrors, tracing: t, what: "database", timeout: timeout}}
}

func (o *observedMeta) View(ctx context.Context, fn func(registry.Tx) error) error {
	return o.watch.run(ctx, "view", true, func(ctx context.Context) error { return o.MetaStore.View(ctx, fn) })
}

func (o *observedMeta) Update(ctx context.Context, fn func(registry.Tx) error) error {
	return o.watch.run(ctx, "update", true, func(ctx context.Context) error { return o.MetaStore.Update(ctx, fn) })
}

// observedBlobs is a BlobStore whose operations are measured, and bounded but for those that move bytes: these have the
// back-end's own bounds on silence.
type observedBlobs struct {
	registry.BlobStore
	watch watch
}

// observedPresigner is an observedBlobs whose store signs addresses.
type observedPresigner struct {
	*observedBlobs
	registry.Presigner
}

func newObservedBlobs(blobs registry.BlobStore, backend string, m *metrics, t *tracing, timeout time.Duration) registry.BlobStore {
	label := prometheus.Labels{"backend": backend}
	o := &observedBlobs{blobs, watch{seconds: byOperation(m.storeSeconds.MustCurryWith(label), storeOperations), errors: m.storeErrors.MustCurryWith(label),
		tracing: t, what: "store", timeout: timeout}}
	if p, ok := blobs.(registry.Presigner); ok {
		return &observedPresigner{o, p}
	}
	return o
}

func (o *observedBlobs) Stat(ctx context.Context, d digest.Digest) (size int64, err error) {
	err = o.watch.run(ctx, "stat", true, func(ctx context.Context) error {
		size, err = o.BlobStore.Stat(ctx, d)
		return err
	})
	return size, err
}

func (o *observedBlobs) Open(ctx context.Context, d digest.Digest) (blob registry.Blob, size int64, err error) {
	err = o.watch.run(ctx, "open", true, func(ctx context.Context) error {
		blob, size, err = o.BlobStore.Open(ctx, d)
		return err
	})
	return blob, size, err
}

func (o *observedBlobs) Put(ctx context.Context, want digest.Descriptor, r io.Reader) error {
	return o.watch.run(ctx, "put", false, func(ctx context.Context) error { return o.BlobStore.Put(ctx, want, r) })
}

func (o *observedBlobs) Delete(ctx context.Context, d digest.Digest) error {
	return o.watch.run(ctx, "delete", true, func(ctx context.Context) error { return o.BlobStore.Delete(ctx, d) })
}

func (o *observedBlobs) CreateUpload(ctx context.Context, id string) error {
	return o.watch.run(ctx, "upload-create", true, func(ctx context.Context) error { return o.BlobStore.CreateUpload(ctx, id) })
}

func (o *observedBlobs) UploadSize(ctx context.Context, id string) (size int64, err error) {
	err = o.watch.run(ctx, "upload-size", true, func(ctx context.Context) error {
		size, err = o.BlobStore.UploadSize(ctx, id)
		return err
	})
	return size, err
}

func (o *observedBlobs) AppendUpload(ctx context.Context, id string, offset int64, r io.Reader, limit int64) (size int64, err error) {
	err = o.watch.run(ctx, "upload-append", false, func(ctx context.Context) error {
		size, err = o.BlobStore.AppendUpload(ctx, id, offset, r, limit)
		return err
	})
	return size, err
}

func (o *observedBlobs) CommitUpload(ctx context.Context, id string, want digest.Digest) (desc digest.Descriptor, err error) {
	err = o.watch.run(ctx, "upload-commit", false, func(ctx context.Context) error {
		desc, err = o.BlobStore.CommitUpload(ctx, id, want)
		return err
	})
	return desc, err
}

func (o *observedBlobs) OpenUpload(ctx context.Context, id string) (blob registry.Blob, size int64, err error) {
	err = o.watch.run(ctx, "upload-open", true, func(ctx context.Context) error {
		blob, size, err = o.BlobStore.OpenUpload(ctx, id)
		return err
	})
	return blob, size, err
}

func (o *observedBlobs) AbortUpload(ctx context.Context, id string) error {
	return o.watch.run(ctx, "upload-abort", true, func(ctx context.Context) error { return o.BlobStore.AbortUpload(ctx, id) })
}

func (o *observedBlobs) Quarantine(ctx context.Context, d digest.Digest) error {
	return o.watch.run(ctx, "quarantine", true, func(ctx context.Context) error { return o.BlobStore.Quarantine(ctx, d) })
}
