package s3

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// through makes requests go through a function.
type through func(r *http.Request, real http.RoundTripper) (*http.Response, error)

func (f through) wrap(real http.RoundTripper) http.RoundTripper { return &wrapped{f, real} }

type wrapped struct {
	through through
	real    http.RoundTripper
}

func (w *wrapped) RoundTrip(r *http.Request) (*http.Response, error) { return w.through(r, w.real) }

// answer is an answer in the store's place.
func answer(r *http.Request, status int, body string) (*http.Response, error) {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{}, ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// TestProve proves real stores, many processes at once, and finds nothing left.
func TestProve(t *testing.T) {
	eachServer(t, func(t *testing.T, server string) {
		o := options(testservice.S3On(t, server))
		together(6, func(i int) {
			s, err := Open(t.Context(), o)
			if err != nil {
				t.Errorf("process %d: %v", i, err)
				return
			}
			s.Close()
		})
		wantKeys(t, store(t, o))
	})
}

// TestProveNames breaks one promise of a store at a time: the proof fails and says which one.
func TestProveNames(t *testing.T) {
	multipart := func(r *http.Request) bool { return r.URL.Query().Has("uploadId") || r.URL.Query().Has("uploads") }
	conditional := func(r *http.Request) bool { return r.Header.Get("If-None-Match") != "" }
	for name, test := range map[string]struct {
		want    string
		through through
	}{
		"PUT ignores If-None-Match": {"If-None-Match: * on a PUT", func(r *http.Request, real http.RoundTripper) (*http.Response, error) {
			if !conditional(r) || multipart(r) {
				return real.RoundTrip(r)
			}
			a, err := real.RoundTrip(r)
			if err == nil && a.StatusCode == http.StatusPreconditionFailed {
				a.Body.Close()
				a, err = answer(r, http.StatusOK, "")
				a.Header.Set("ETag", `"x"`)
			}
			return a, err
		}},
		"completion ignores If-None-Match": {"completion of a multipart upload", func(r *http.Request, real http.RoundTripper) (*http.Response, error) {
			a, err := real.RoundTrip(r)
			if err != nil || !conditional(r) || !multipart(r) {
				return a, err
			}
			body, err := io.ReadAll(a.Body) // of a status 412, or of a 200 that holds an error
			a.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte("PreconditionFailed")) {
				return answer(r, http.StatusOK, "<CompleteMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><ETag>x</ETag></CompleteMultipartUploadResult>")
			}
			return a, err
		}},
		"GET ignores ranges": {"reading what was just written", func(r *http.Request, real http.RoundTripper) (*http.Response, error) {
			if r.Method == http.MethodGet && r.Header.Get("Range") != "" {
				return answer(r, http.StatusOK, "0123456789 and more than that")
			}
			return real.RoundTrip(r)
		}},
		"GET gives another range": {"a ranged GET", func(r *http.Request, real http.RoundTripper) (*http.Response, error) {
			a, err := real.RoundTrip(r)
			if err == nil && r.Header.Get("Range") == "bytes=3-6" {
				a.Body.Close()
				a.Body = io.NopCloser(strings.NewReader("0123"))
			}
			return a, err
		}},
		"GET ignores If-Match": {"If-Match on a GET", func(r *http.Request, real http.RoundTripper) (*http.Response, error) {
			a, err := real.RoundTrip(r)
			if err == nil && a.StatusCode == http.StatusPreconditionFailed && r.Method == http.MethodGet {
				a.Body.Close()
				return answer(r, http.StatusPartialContent, "0")
			}
			return a, err
		}},
		"no multipart": {"a multipart upload", func(r *http.Request, real http.RoundTripper) (*http.Response, error) {
			if multipart(r) && r.Method == http.MethodPost {
				return answer(r, http.StatusNotImplemented, "<Error><Code>NotImplemented</Code></Error>")
			}
			return real.RoundTrip(r)
		}},
		"copy answers 200 with an error": {"copying an object", func(r *http.Request, real http.RoundTripper) (*http.Response, error) {
			if r.Header.Get("X-Amz-Copy-Source") != "" && !multipart(r) {
				return answer(r, http.StatusOK, "<Error><Code>AccessDenied</Code></Error>")
			}
			return real.RoundTrip(r)
		}},
		"copy of a part answers 200 with an error": {"copying a part", func(r *http.Request, real http.RoundTripper) (*http.Response, error) {
			if r.Header.Get("X-Amz-Copy-Source") != "" && multipart(r) {
				return answer(r, http.StatusOK, "<Error><Code>InternalError</Code></Error>")
			}
			return real.RoundTrip(r)
		}},
		"lists are late": {"listing what was just written", func(r *http.Request, real http.RoundTripper) (*http.Response, error) {
			if r.URL.Query().Has("list-type") {
				return answer(r, http.StatusOK, "<ListBucketResult></ListBucketResult>")
			}
			return real.RoundTrip(r)
		}},
		"DELETE does nothing": {"deleting", func(r *http.Request, real http.RoundTripper) (*http.Response, error) {
			if r.Method == http.MethodDelete && !multipart(r) {
				return answer(r, http.StatusNoContent, "")
			}
			return real.RoundTrip(r)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(testservice.S3(t))
			o.Transport = test.through.wrap
			_, err := Open(t.Context(), o)
			if registry.CodeOf(err) != registry.Unavailable || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that names %q", err, test.want)
			}
		})
	}
}

// TestOpenRefuses checks what an administrator reads when a setting is wrong.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	good := options(testservice.S3(t))
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no such bucket":    {func(o *Options) { o.Bucket = "absent-bucket" }, "bucket"},
		"wrong secret":      {func(o *Options) { o.SecretKey = "wrong-wrong" }, "refuses our credentials"},
		"unknown key":       {func(o *Options) { o.AccessKey = "nobody" }, "refuses our credentials"},
		"nobody there":      {func(o *Options) { o.Endpoint = "http://127.0.0.1:1" }, "does not answer"},
		"no address":        {func(o *Options) { o.Endpoint = "ftp://x" }, "want http://HOST:PORT"},
		"no certificates":   {func(o *Options) { o.CAFile = "absent.pem" }, "certificates"},
		"TLS to plain HTTP": {func(o *Options) { o.Endpoint = strings.Replace(o.Endpoint, "http:", "https:", 1) }, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := good
			test.change(&o)
			if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one that says %q", err, test.want)
			}
		})
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	got, err := ParseURL("s3://bucket/some/prefix?endpoint=http://127.0.0.1:7070&region=eu-1&path_style=true&timeout=5s&ca_file=/ca.pem&public_endpoint=https://s3.example.com")
	must(t, err)
	want := Options{Bucket: "bucket", Prefix: "/some/prefix", Endpoint: "http://127.0.0.1:7070", Region: "eu-1", PathStyle: true,
		Timeout: 5 * time.Second, CAFile: "/ca.pem", PublicEndpoint: "https://s3.example.com"}
	want.Transport, got.Transport = nil, nil
	if got.Bucket != want.Bucket || got.Prefix != want.Prefix || got.Endpoint != want.Endpoint || got.Region != want.Region ||
		!got.PathStyle || got.Timeout != want.Timeout || got.CAFile != want.CAFile || got.PublicEndpoint != want.PublicEndpoint {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "s3://", "http://bucket", "s3://key:secret@bucket", "s3://bucket?secret=x", "s3://bucket?path_style=maybe",
		"s3://bucket?timeout=-1s", "s3://bucket?region=a&region=b", "s3://bucket#x", "s3://bu cket"} {
		_, err := ParseURL(bad)
		if registry.CodeOf(err) != registry.Invalid {
			t.Errorf("ParseURL(%q): got error %v, want code Invalid", bad, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret@") {
			t.Errorf("the refusal shows the secret: %v", err)
		}
	}
}

// TestSilentStore connects to a store that takes requests and never answers.
func TestSilentStore(t *testing.T) {
	t.Parallel()
	silent := make(chan struct{})
	defer close(silent)
	o := options(testservice.S3(t))
	s := store(t, o)
	must(t, s.Put(t.Context(), described([]byte("x")), bytes.NewReader([]byte("x"))))
	o.Timeout = 50 * time.Millisecond
	o.Transport = through(func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		select {
		case <-silent:
		case <-r.Context().Done():
		case <-time.After(o.Timeout): // what the transport below would do
		}
		return nil, errors.New("timeout awaiting the answer")
	}).wrap
	if _, err := store(t, o).Stat(t.Context(), described([]byte("x")).Digest); registry.CodeOf(err) != registry.Unavailable {
		t.Errorf("got error %v, want code Unavailable", err)
	}
}
