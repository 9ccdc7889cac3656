package oci

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// connection stands for net/http's own writer: it takes files by ReadFrom and notes from what.
type connection struct {
	*httptest.ResponseRecorder
	from []io.Reader
}

func (c *connection) ReadFrom(src io.Reader) (int64, error) {
	c.from = append(c.from, src)
	return io.Copy(c.ResponseRecorder, src)
}

// lateHeader is a writer of a middleware as gin's: it hides ReadFrom and sends the status with the first byte.
type lateHeader struct {
	http.ResponseWriter
	status int
	sent   bool
}

func (w *lateHeader) WriteHeader(code int) { w.status = code }

func (w *lateHeader) Write(p []byte) (int, error) {
	if !w.sent {
		w.sent = true
		w.ResponseWriter.WriteHeader(w.status)
	}
	return w.ResponseWriter.Write(p)
}

func (w *lateHeader) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestFilesReachTheConnectionThroughMiddleware(t *testing.T) {
	content := strings.Repeat("0123456789", 300_000) // three pieces
	name := filepath.Join(t.TempDir(), "blob")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	desc := digest.Descriptor{MediaType: blobMediaType, Digest: digest.FromBytes([]byte(content)), Size: int64(len(content))}
	h := &handler{log: slog.New(slog.DiscardHandler), idle: DefaultIdleTimeout}

	for _, layers := range []int{0, 1, 2} {
		for spec, want := range map[string]string{"": content, "bytes=100-": content[100:]} {
			c := &connection{ResponseRecorder: httptest.NewRecorder()}
			var w http.ResponseWriter = c
			for range layers {
				w = &lateHeader{ResponseWriter: w}
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			status := http.StatusOK
			if spec != "" {
				status = http.StatusPartialContent
				r.Header.Set("Range", spec)
			}
			x := &exchange{Request: &Request{}, ctx: context.Background(), w: w, r: r}
			if err := h.serveContent(x, desc, file); err != nil {
				t.Fatal(err)
			}
			if c.Code != status || c.Body.String() != want || c.Header().Get("Content-Length") != itoa(int64(len(want))) {
				t.Errorf("%d layers, %q: status %d, %d bytes, want %d and %d", layers, spec, c.Code, c.Body.Len(), status, len(want))
			}
			for _, src := range c.from {
				limited, ok := src.(*io.LimitedReader)
				if ok {
					_, ok = limited.R.(*os.File)
				}
				if !ok {
					t.Errorf("%d layers: the connection reads from %T, want a part of an *os.File", layers, src)
				}
			}
			if len(c.from) != 3 {
				t.Errorf("%d layers, %q: %d pieces by ReadFrom, want 3", layers, spec, len(c.from))
			}
		}
	}
}

// TestDirectWithoutReadFrom: a writer that leads nowhere is used itself.
func TestDirectWithoutReadFrom(t *testing.T) {
	w := &lateHeader{ResponseWriter: httptest.NewRecorder()}
	if got := direct(w); got != io.Writer(w) {
		t.Errorf("direct gave %T", got)
	}
}
