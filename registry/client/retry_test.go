package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// answers is a transport without a network.
type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(r *http.Request, status int, header map[string]string, body string) *http.Response {
	rec := httptest.NewRecorder()
	for k, v := range header {
		rec.Header().Set(k, v)
	}
	rec.WriteHeader(status)
	rec.WriteString(body)
	res := rec.Result()
	res.Request = r
	return res
}

// What a request that only reads does when the server is busy, and that others are sent once.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		name       string
		method     string
		patience   time.Duration
		first      func(r *http.Request) (*http.Response, error) // the first two answers; then there is a good one
		calls      int
		atLeast    time.Duration
		atMost     time.Duration
		fails      bool
		wantStatus int
	}{
		{name: "429 with Retry-After", method: "GET", patience: time.Minute, first: func(r *http.Request) (*http.Response, error) {
			return answer(r, 429, map[string]string{"Retry-After": "7"}, "slow down"), nil
		}, calls: 3, atLeast: 14 * time.Second, atMost: 26 * time.Second, wantStatus: 200},
		{name: "503 with a date", method: "HEAD", patience: time.Minute, first: func(r *http.Request) (*http.Response, error) {
			return answer(r, 503, map[string]string{"Retry-After": time.Now().Add(5 * time.Second).UTC().Format(http.TimeFormat)}, ""), nil
		}, calls: 3, atLeast: 8 * time.Second, atMost: 22 * time.Second, wantStatus: 200},
		{name: "502", method: "GET", patience: time.Minute, first: func(r *http.Request) (*http.Response, error) { return answer(r, 502, nil, ""), nil },
			calls: 3, atMost: 12 * time.Second, wantStatus: 200},
		{name: "a reset", method: "GET", patience: time.Minute, first: func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
			calls: 3, atMost: 12 * time.Second, wantStatus: 200},
		{name: "no patience", method: "GET", first: func(r *http.Request) (*http.Response, error) { return answer(r, 503, nil, ""), nil },
			calls: 1, wantStatus: 503},
		{name: "asked to wait for longer than there is patience", method: "GET", patience: time.Minute, first: func(r *http.Request) (*http.Response, error) {
			return answer(r, 429, map[string]string{"Retry-After": "3600"}, ""), nil
		}, calls: 1, wantStatus: 429},
		{name: "a request that changes something", method: "POST", patience: time.Minute, first: func(r *http.Request) (*http.Response, error) { return answer(r, 503, nil, ""), nil },
			calls: 1, wantStatus: 503},
		{name: "refused", method: "GET", patience: time.Minute, first: func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
			calls: 1, fails: true},
		{name: "not found", method: "GET", patience: time.Minute, first: func(r *http.Request) (*http.Response, error) { return answer(r, 404, nil, ""), nil },
			calls: 1, wantStatus: 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls, began := 0, time.Now()
				r := &retrying{until: began.Add(c.patience), next: answers(func(r *http.Request) (*http.Response, error) {
					if calls++; calls <= 2 {
						return c.first(r)
					}
					return answer(r, 200, nil, "yes"), nil
				})}
				res, err := r.RoundTrip(httptest.NewRequest(c.method, "http://origin.example/x", nil))
				if took := time.Since(began); calls != c.calls || took < c.atLeast || took > c.atMost {
					t.Errorf("%d requests in %v, expected %d in %v to %v", calls, took, c.calls, c.atLeast, c.atMost)
				}
				if (err != nil) != c.fails || err == nil && res.StatusCode != c.wantStatus {
					t.Errorf("got %v, %v, expected status %d (failing: %v)", res, err, c.wantStatus, c.fails)
				}
			})
		})
	}
}

// A request that may be repeated is sent again with its body.
func TestRepeatable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var bodies []string
		c, err := New(Options{Server: "http://origin.example", RetryFor: time.Minute, Transport: answers(func(r *http.Request) (*http.Response, error) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			if bodies = append(bodies, string(b)); len(bodies) < 3 {
				return answer(r, 503, nil, ""), nil
			}
			return answer(r, 200, nil, `{"token":"t","expires_in":60}`), nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.NodeGrant(context.Background(), []byte("envelope")); err != nil {
			t.Error(err)
		}
		if want := []string{"envelope", "envelope", "envelope"}; !slices.Equal(bodies, want) {
			t.Errorf("sent %q, expected %q", bodies, want)
		}
	})
}

// A server that is always busy is asked a bounded number of times, and the last answer is what the caller sees.
func TestRetriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, began := 0, time.Now()
		r := &retrying{until: began.Add(24 * time.Hour), next: answers(func(r *http.Request) (*http.Response, error) {
			calls++
			return answer(r, 503, map[string]string{"Retry-After": "1"}, ""), nil
		})}
		res, err := r.RoundTrip(httptest.NewRequest("GET", "http://origin.example/x", nil))
		if err != nil || res.StatusCode != 503 || calls != retries+1 {
			t.Errorf("got %v, %v after %d requests, expected a 503 after %d", res, err, calls, retries+1)
		}
		if took := time.Since(began); took > 13*(maxWindow+time.Second) {
			t.Errorf("it took %v", took)
		}
	})
}

// A blob whose connection breaks goes on where it broke; what comes is verified as a whole.
func TestBlobGoesOn(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for _, ranges := range []bool{true, false} {
		t.Run(fmt.Sprintf("ranges %v", ranges), func(t *testing.T) {
			var calls atomic.Int32
			origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				from := 0
				if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
					from, _ = strconv.Atoi(strings.TrimSuffix(text[:strings.Index(text+"-", "-")], "-"))
				}
				if ranges {
					w.Header().Set("Accept-Ranges", "bytes")
				}
				w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
				if from > 0 {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
					w.WriteHeader(http.StatusPartialContent)
				}
				if calls.Add(1) == 1 {
					w.Write(content[:len(content)/3])
					panic(http.ErrAbortHandler)
				}
				w.Write(content[from:])
			}))
			defer origin.Close()
			c, err := New(Options{Server: origin.URL, RetryFor: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			want := digest.Descriptor{MediaType: "application/octet-stream", Digest: digest.FromBytes(content), Size: int64(len(content))}
			r, err := c.Blob(context.Background(), "lab/alpha", want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("got %d bytes, %v; expected all %d", len(got), err, len(content))
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if calls.Load() < 2 {
				t.Errorf("%d requests, expected a second one", calls.Load())
			}
		})
	}
}

// A body that brings nothing is given up.
func TestBlobThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		c, err := New(Options{Server: "http://origin.example", RetryFor: 10 * time.Minute, Transport: answers(func(r *http.Request) (*http.Response, error) {
			calls++
			res := answer(r, 200, map[string]string{"Content-Length": "6"}, "")
			res.ContentLength = 6
			if calls == 1 {
				pr, pw := io.Pipe()
				go func() {
					pw.Write([]byte("con"))
					<-r.Context().Done()
					pw.CloseWithError(r.Context().Err())
				}()
				res.Body = pr
			} else {
				res.Body = io.NopCloser(strings.NewReader("conten"))
			}
			return res, nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.Blob(context.Background(), "lab/alpha", digest.Descriptor{MediaType: "x/y", Digest: digest.FromBytes([]byte("conten")), Size: 6})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if got, err := io.ReadAll(r); err != nil || string(got) != "conten" || calls != 2 {
			t.Errorf("got %q, %v after %d requests", got, err, calls)
		}
	})
}
