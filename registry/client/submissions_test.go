package client_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client"
	"github.com/gatehouse-registry/gatehouse/registry/server/servertest"
)

// nop is a package in memory.
type nop struct{ *bytes.Reader }

func (nop) Close() error { return nil }

func packageOf(text []byte) client.Package {
	return client.Package{Digest: digest.FromBytes(text), Size: int64(len(text)), Open: func() (io.ReadSeekCloser, error) { return nop{bytes.NewReader(text)}, nil }}
}

// jobArchive is a job package of some megabytes that do not compress.
func jobArchive(t *testing.T, size int) []byte {
	t.Helper()
	noise := make([]byte, size)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "experiments/x/a.bin", Size: int64(size), Mode: 0o644})
	if err == nil {
		_, err = tw.Write(noise)
	}
	if err = errors.Join(err, tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// cutting passes connections on to a server and cuts each of the first ones after as many bytes of the client's. It counts
// the cuts, and the bytes that it passed on.
func cutting(t *testing.T, server string, after ...int64) (address string, cuts, passed *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	cuts, passed = new(atomic.Int64), new(atomic.Int64)
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(server, "http://"))
			if err != nil {
				in.Close()
				return
			}
			go func() { io.Copy(in, out); in.Close() }()
			go func() {
				defer in.Close()
				defer out.Close()
				r := counting{in, passed}
				n := int(cuts.Load())
				if n == len(after) {
					io.Copy(out, r)
				} else if _, err := io.CopyN(out, r, after[n]); err == nil {
					cuts.Add(1)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), cuts, passed
}

// A broken upload goes on where the server has come to; the server gets each byte once but for those that were lost.
func TestUploadGoesOn(t *testing.T) {
	s := servertest.Start(t)
	address, cuts, passed := cutting(t, s.URL, 1<<20, 2<<20)
	c, err := client.New(client.Options{Server: address, Account: "admin", Token: s.Token})
	if err != nil {
		t.Fatal(err)
	}
	archive := jobArchive(t, 5<<20)
	source, err := c.Upload(t.Context(), packageOf(archive), func(r io.Reader) io.Reader { return r })
	if err != nil {
		t.Fatal(err)
	}
	var stored struct {
		Digest digest.Digest
		Size   int64
	}
	if err := json.Unmarshal(source, &stored); err != nil || stored.Digest != digest.FromBytes(archive) || stored.Size != int64(len(archive)) {
		t.Errorf("%s: %v", source, err)
	}
	if cuts.Load() != 2 {
		t.Errorf("%d cuts, want 2", cuts.Load())
	}
	if n := passed.Load(); n > int64(len(archive))+1<<20 {
		t.Errorf("%d bytes came of a package of %d", n, len(archive))
	}
}

type counting struct {
	r io.Reader
	n *atomic.Int64
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// A busy server is asked again, as often as is reasonable; a refusal is final.
func TestCommitAsksAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []int
		code    registry.Code
		calls   int64
	}{
		"at once":          {[]int{200}, "", 1},
		"busy, then fine":  {[]int{503, 429, 200}, "", 3},
		"bad gateway":      {[]int{502, 504, 200}, "", 3},
		"always busy":      {[]int{503, 503, 503, 503, 503}, registry.Unavailable, 4},
		"refused":          {[]int{409}, registry.Conflict, 1},
		"not signed in":    {[]int{401}, registry.Unauthorized, 1},
		"a broken server":  {[]int{500}, registry.Internal, 1},
		"a cut connection": {[]int{0, 200}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			keys := make(chan string, 10)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var in struct{ Key string }
				_ = json.NewDecoder(r.Body).Decode(&in) // the test looks at what came
				keys <- in.Key
				status := tc.answers[calls.Add(1)-1]
				if status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(status)
				if status == 200 {
					io.WriteString(w, `{"run_id":"r"}`)
				}
			}))
			defer srv.Close()
			c, err := client.New(client.Options{Server: srv.URL})
			if err != nil {
				t.Fatal(err)
			}
			job, err := c.Commit(t.Context(), "p", "d")
			if tc.code == "" && (err != nil || job.RunID != "r") || tc.code != "" && registry.CodeOf(err) != tc.code {
				t.Errorf("%+v %v, want code %q", job, err, tc.code)
			}
			if calls.Load() != tc.calls {
				t.Errorf("%d requests, want %d", calls.Load(), tc.calls)
			}
			for range tc.calls {
				if key := <-keys; key != "preview:p" {
					t.Errorf("key %q", key)
				}
			}
		})
	}
}

// An interrupted command does not wait for its next try.
func TestInterruptedTries(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
		cancel()
	}))
	defer srv.Close()
	c, err := client.New(client.Options{Server: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Commit(ctx, "p", "d"); err == nil || calls.Load() != 1 {
		t.Errorf("%v after %d requests", err, calls.Load())
	}
}
