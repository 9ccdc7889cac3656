package oci_test

import (
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each benchmark compares the handler with a floor: a bare net/http handler that moves the same bytes over the same
// kind of connection, on files without any check.

const mebibyte = 1 << 20

func (s *server) get(b *testing.B, url string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	s.exchange(b, r, http.StatusOK)
}

func (s *server) exchange(b *testing.B, r *http.Request, want int) {
	b.Helper()
	r.SetBasicAuth("admin", password)
	resp, err := s.Client().Do(r)
	if err != nil {
		b.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != want {
		b.Fatalf("status %d, %v", resp.StatusCode, err)
	}
}

// floor is a server of one file.
func floor(b *testing.B, content string) (url string) {
	b.Helper()
	name := filepath.Join(b.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
	f := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeFile(w, r, name)
	}))
	b.Cleanup(f.Close)
	return f.URL
}

func BenchmarkManifestGet(b *testing.B) {
	s := newServer(b)
	manifest := s.pushImage("alice/x", "v1", "layer", "")
	for name, path := range map[string]string{"tag": "v1", "digest": sha(manifest)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.get(b, s.URL+"/v2/alice/x/manifests/"+path)
			}
		})
	}
	url := floor(b, manifest)
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			s.get(b, url)
		}
	})
}

func BenchmarkBlobGet(b *testing.B) {
	s := newServer(b)
	content := randomText(mebibyte)
	d := s.pushBlob("alice/x", content)
	url := floor(b, content)
	for _, at := range []struct{ name, url string }{{"handler", s.URL + "/v2/alice/x/blobs/" + d}, {"floor", url}} {
		b.Run(at.name, func(b *testing.B) {
			b.SetBytes(mebibyte)
			for b.Loop() {
				s.get(b, at.url)
			}
		})
	}
}

// BenchmarkBlobPut pushes a new blob each time, which the registry hashes and syncs; the floor writes and syncs.
func BenchmarkBlobPut(b *testing.B) {
	s := newServer(b)
	content := []byte(randomText(mebibyte))
	dir, n := b.TempDir(), 0
	f := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		file, err := os.Create(filepath.Join(dir, fmt.Sprint(n)))
		if err != nil {
			b.Error(err)
			return
		}
		defer file.Close()
		if _, err = io.Copy(file, r.Body); err == nil {
			err = file.Sync()
		}
		if err != nil {
			b.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	}))
	b.Cleanup(f.Close)
	for _, at := range []struct{ name, url string }{{"handler", s.URL}, {"floor", f.URL}} {
		b.Run(at.name, func(b *testing.B) {
			b.SetBytes(mebibyte)
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				copy(content, fmt.Sprintf("%s %020d", at.name, i))
				body := string(content)
				r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, at.url+"/v2/alice/x/blobs/uploads/?digest="+sha(body), strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				s.exchange(b, r, http.StatusCreated)
			}
		})
	}
}

func randomText(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return string(b)
}
