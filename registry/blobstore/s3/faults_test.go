package s3

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/blobfault"
)

// outcome is what an operation acknowledged before its store failed.
type outcome struct {
	err    error
	upload int64 // bytes of the session "u" that were acknowledged
	stored bool  // the new blob must be there
	gone   bool  // the old blob must not
}

// The blobs of the fault tests: one that is there before, and one that an operation brings, which is small or has more
// than one part.
var (
	oldBlob   = sync.OnceValue(func() []byte { return random(100, 50) })
	smallBlob = sync.OnceValue(func() []byte { return random(300, 51) })
	largeBlob = sync.OnceValue(func() []byte { return random(minPart+200, 52) })
)

// TestMain lets requests be sent again at once: the tests of this package fail thousands.
func TestMain(m *testing.M) {
	minio.DefaultRetryUnit = time.Millisecond
	os.Exit(m.Run())
}

// operations are what is failed at each of its requests.
var operations = map[string]struct {
	blob func() []byte // what it brings
	do   func(ctx context.Context, s *Store, blob []byte) outcome
}{
	"put": {smallBlob, put}, "large put": {largeBlob, put},
	"put of a blob that is there": {oldBlob, put},
	"upload":                      {smallBlob, func(ctx context.Context, s *Store, b []byte) outcome { return upload(ctx, s, b, len(b)) }},
	"large upload":                {largeBlob, func(ctx context.Context, s *Store, b []byte) outcome { return upload(ctx, s, b, len(b)) }},
	"upload in appends":           {smallBlob, func(ctx context.Context, s *Store, b []byte) outcome { return upload(ctx, s, b, 200) }},
	"delete": {oldBlob, func(ctx context.Context, s *Store, old []byte) (o outcome) {
		o.err = s.Delete(ctx, described(old).Digest)
		o.gone = o.err == nil
		return o
	}},
	"quarantine": {oldBlob, func(ctx context.Context, s *Store, old []byte) (o outcome) {
		o.err = s.Quarantine(ctx, described(old).Digest)
		o.gone = o.err == nil
		return o
	}},
	"read": {oldBlob, func(ctx context.Context, s *Store, old []byte) outcome {
		return outcome{err: blobstore.Verify(ctx, s, described(old))} // other bytes would be an error of another code
	}},
}

func put(ctx context.Context, s *Store, blob []byte) (o outcome) {
	o.err = s.Put(ctx, described(blob), bytes.NewReader(blob))
	o.stored = o.err == nil
	return o
}

func upload(ctx context.Context, s *Store, blob []byte, chunk int) (o outcome) {
	if o.err = s.CreateUpload(ctx, "u"); o.err != nil {
		return o
	}
	for part := range slices.Chunk(blob, chunk) {
		var size int64
		if size, o.err = s.AppendUpload(ctx, "u", o.upload, bytes.NewReader(part), 1<<30); o.err != nil {
			return o
		}
		o.upload = size
	}
	if _, o.err = s.CommitUpload(ctx, "u", described(blob).Digest); o.err == nil {
		o.stored, o.upload = true, 0
	}
	return o
}

// TestEveryRequestFails fails each request of each operation in turn, once and for good, in every way, and looks with the
// eyes of another process: what was acknowledged is there, what is there is whole, and nothing stays when the sessions
// that are listed are ended.
func TestEveryRequestFails(t *testing.T) {
	t.Parallel()
	const atOnce = 4
	for name, operation := range operations {
		for stuck, kinds := range failures {
			for _, kind := range kinds {
				t.Run(fmt.Sprintf("%s/%s/stuck=%t", name, kind, stuck), func(t *testing.T) {
					t.Parallel()
					bucket := testservice.S3(t)
					for n, more := 0, true; more && !t.Failed(); n += atOnce {
						var requests [atOnce]string
						together(atOnce, func(i int) {
							requests[i] = failRequest(t, bucket, operation.blob(), operation.do, n+i, kind, stuck)
						})
						if requests[0] == "" && n == 0 {
							t.Error("no request failed")
						}
						more = requests[atOnce-1] != ""
					}
				})
			}
		}
	}
}

// failures are the ways to fail, for good or once: those that differ in what a client sees or does.
var failures = map[bool][]blobfault.Kind{
	true: {blobfault.Reset, blobfault.ErrorIn200, blobfault.Full},
	false: {
		blobfault.Kill, blobfault.LostAnswer, blobfault.ErrorIn200, blobfault.SlowDown, blobfault.Denied, blobfault.CutBody, blobfault.ShortBody,
	},
}

// mayHide are kinds that one failure of does not show: the request is sent again.
var mayHide = []blobfault.Kind{blobfault.LostAnswer, blobfault.SlowDown}

// failRequest runs the operation with its n-th request failing, checks what is there, and gives the request.
func failRequest(t *testing.T, bucket testservice.S3Bucket, blob []byte, operation func(context.Context, *Store, []byte) outcome, n int, kind blobfault.Kind, stuck bool) string {
	t.Helper()
	ctx, plan := t.Context(), &blobfault.Plan{}
	o := options(bucket)
	o.Prefix = fmt.Sprint("n", n)
	clean := store(t, o)
	must(t, clean.Put(ctx, described(oldBlob()), bytes.NewReader(oldBlob())))
	o.Transport = plan.Transport
	if stuck {
		o.Transport = plan.Stuck
	}
	faulty := store(t, o)
	faulty.bucket.partSize = minPart
	plan.Arm(n, kind)
	got := operation(ctx, faulty, blob)
	request := plan.Disarm()
	what := fmt.Sprintf("request %d (%s) fails by %s", n, request, kind)
	switch code := registry.CodeOf(got.err); {
	case request == "" && got.err != nil:
		t.Fatalf("without a failing request: %v", got.err)
	case got.err != nil && !stuck && slices.Contains(mayHide, kind):
		t.Errorf("%s: once is not survived: %v", what, got.err)
	case got.err != nil && kind != blobfault.Denied && code != registry.Unavailable:
		t.Errorf("%s: got error %v of code %q, want one of code Unavailable", what, got.err, code)
	}
	checkBucket(t, what, clean, blob, got)
	return request
}

// checkBucket checks what is there and ends what is open.
func checkBucket(t *testing.T, what string, s *Store, blob []byte, got outcome) {
	t.Helper()
	ctx := t.Context()
	there := map[digest.Digest]bool{}
	for b, err := range s.All(ctx) {
		must(t, err)
		there[b.Digest] = true
		if err := blobstore.Verify(ctx, s, digest.Descriptor{Digest: b.Digest, Size: b.Size}); err != nil {
			t.Errorf("%s: a blob that is not whole is visible: %v", what, err)
		}
	}
	if got.stored && !there[described(blob).Digest] {
		t.Errorf("%s: an acknowledged blob is not there", what)
	}
	if got.gone && there[described(oldBlob()).Digest] {
		t.Errorf("%s: a blob whose removal was acknowledged is there", what)
	}
	for u, err := range s.Uploads(ctx) {
		must(t, err)
		if u.ID != "u" || u.Size < got.upload {
			t.Errorf("%s: lists the upload %+v, want at least %d bytes", what, u, got.upload)
		}
		if u.Size > 0 {
			goOn(t, what, s, u, blob)
		}
		got.upload = 0
		must(t, s.AbortUpload(ctx, u.ID))
	}
	if got.upload > 0 && !there[described(blob).Digest] {
		t.Errorf("%s: an upload of which %d bytes were acknowledged is gone", what, got.upload)
	}
	prefix := s.bucket.prefix
	for _, key := range keys(t, s) {
		if rest, ours := strings.CutPrefix(strings.TrimPrefix(key, "unfinished "), prefix); ours &&
			(strings.HasPrefix(key, "unfinished") || !strings.HasPrefix(rest, "blobs/") && !strings.HasPrefix(rest, "quarantine/")) {
			t.Errorf("%s: %q is left behind", what, key)
		}
	}
}

// goOn finishes a session where the operation stopped, by another process.
func goOn(t *testing.T, what string, s *Store, u registry.UploadSession, blob []byte) {
	t.Helper()
	size, err := s.UploadSize(t.Context(), u.ID)
	if registry.CodeOf(err) == registry.BlobUploadUnknown {
		return // parts without a start: the session was ended, or its end was cut off
	}
	must(t, err)
	if _, err := s.AppendUpload(t.Context(), u.ID, size, bytes.NewReader(blob[size:]), 1<<30); err != nil {
		t.Errorf("%s: go on with the upload: %v", what, err)
	}
	if _, err := s.CommitUpload(t.Context(), u.ID, described(blob).Digest); err != nil {
		t.Errorf("%s: commit the upload: %v", what, err)
	}
}
