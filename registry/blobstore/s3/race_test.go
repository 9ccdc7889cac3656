package s3

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// roundTripper is a function as an http.RoundTripper.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// absentPuts answers the first n PUTs of a blob as a store does that lost a race between two writers of one object.
func absentPuts(n int) func(http.RoundTripper) http.RoundTripper {
	return func(real http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/blobs/") || n == 0 {
				return real.RoundTrip(r)
			}
			n--
			if r.Body != nil {
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
			body := "<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>"
			return &http.Response{
				Status: "404 Not Found", StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
				Header: http.Header{"Content-Type": {"application/xml"}}, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
			}, nil
		})
	}
}

// TestPutThatLosesARace holds that a PUT which the store answers with "not there" is sent again, and not without end.
func TestPutThatLosesARace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lost int
		want registry.Code
	}{{1, ""}, {maxTries - 1, ""}, {maxTries, registry.Unavailable}} {
		o := options(testservice.S3(t))
		o.Transport = absentPuts(c.lost)
		s := store(t, o)
		blob := random(300, 70)
		if got := registry.CodeOf(s.Put(t.Context(), described(blob), bytes.NewReader(blob))); got != c.want {
			t.Errorf("a put that is lost %d times: got code %q, want %q", c.lost, got, c.want)
		}
	}
}
