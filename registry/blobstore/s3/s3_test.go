package s3

import (
	"context"
	"net/http"
	"testing"

	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/blobtest"
)

// options are those of a bucket.
func options(b testservice.S3Bucket) Options {
	return Options{
		Bucket: b.Name, Endpoint: b.Endpoint, Region: b.Region, PathStyle: true, AccessKey: b.AccessKey, SecretKey: b.SecretKey,
	}
}

// store opens a store whose parts are small and whose times are short, so that a test meets every way.
func store(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.bucket.touchAfter, s.bucket.staleAfter = 0, 0
	t.Cleanup(func() { s.Close() })
	return s
}

// eachServer runs a test on every S3 server there is.
func eachServer(t *testing.T, test func(t *testing.T, server string)) {
	t.Helper()
	t.Parallel()
	for _, server := range testservice.S3Servers() {
		t.Run(server, func(t *testing.T) { test(t, server) })
	}
}

func TestBlobStore(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		bucket := testservice.S3On(t, server)
		blobtest.Run(t, func(t *testing.T, dir string) registry.BlobStore {
			o := options(bucket)
			o.Prefix = dir // each test's folder is a prefix of its own
			return store(t, o)
		})
	})
}

// through makes requests go through a function.
type through func(*http.Request) (*http.Response, error)

func (f through) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
