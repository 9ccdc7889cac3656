package server_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// lockedBuffer is a log that a test reads while the server writes it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// jsonLog makes a server log as `sf serve` does.
func jsonLog(to io.Writer, level string) func(*setup) {
	return func(s *setup) {
		s.log = server.NewLogger(to, server.Config{LogFormat: "json", LogLevel: level}, false).Handler()
	}
}

func TestMetricsAreForWhoMayWatch(t *testing.T) {
	g := startGatehouse(t, func(s *setup) { s.config.MetricsListen = "127.0.0.1:0" })
	g.get("", "/metrics").refused(t, "/metrics", http.StatusUnauthorized)
	g.get("alice", "/metrics").refused(t, "/metrics", http.StatusForbidden)
	for _, as := range []string{"admin", "audrey"} {
		g.get(as, "/metrics").want(t, http.StatusOK)
	}
	for _, path := range []string{"/metrics", "/healthz", "/readyz"} {
		res, err := http.Get(g.server.MetricsURL() + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s at the address of its own: %s", path, res.Status)
		}
	}
	res, err := http.Get(g.server.MetricsURL() + "/api/version")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("the registry itself answers there: %s", res.Status)
	}
}

// The metrics tell what happened, and no client makes a label.
func TestMetrics(t *testing.T) {
	g := startGatehouse(t)
	g.published("alice", algorithm("good", "1.0.0"))
	bad := with(algorithm("bad", "1.0.0"), "plugin.yaml", "schema: forge/plugin/v1\nname: bad\n")
	g.publish("alice", archiveOf(t, bad)).want(t, http.StatusBadRequest)
	for i := range 50 {
		g.get("alice", fmt.Sprintf("/v2/alice/x%d/manifests/v%d", i, i)).want(t, http.StatusNotFound)
		g.get("", fmt.Sprintf("/nowhere/%d", i)).want(t, http.StatusNotFound)
	}
	text := string(g.get("admin", "/metrics").want(t, http.StatusOK).body)
	for _, want := range []string{
		`gatehouse_http_requests_total{code="404",route="manifest"} 50`, `gatehouse_http_requests_total{code="404",route="other"} 50`,
		`gatehouse_http_request_seconds_count{route="manifest"} 50`, `gatehouse_decisions_total{gate="publish",outcome="allowed"} 1`,
		`gatehouse_decisions_total{gate="publish",outcome="refused"} 1`, `gatehouse_violations_total{gate="publish",rule="manifest.`,
		`gatehouse_database_seconds_count{operation="view"}`, `gatehouse_database_connections{pool="writer",state=`, `gatehouse_build_info{version="test"} 1`,
		"gatehouse_collections_total 0", "gatehouse_scrubbed_bytes_total 0", "go_goroutines ", "process_open_fds ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	if regexp.MustCompile(`x\d+|nowhere|alice`).MatchString(text) {
		t.Error("what a client wrote stands in the metrics")
	}
	if n := strings.Count(text, "\n"); n > 2000 {
		t.Errorf("%d lines of metrics", n)
	}
}

// A request has one id: in the header, in the error's body and in the log, which says who asked for what.
func TestRequestLine(t *testing.T) {
	var log lockedBuffer
	g := startGatehouse(t, jsonLog(&log, "info"), func(s *setup) { s.config.TrustedProxies = []string{"127.0.0.1"} })
	r := g.do(call{as: "alice", method: http.MethodGet, path: "/v2/alice/x/manifests/v1", header: map[string]string{"X-Request-Id": "from-the-client_1.0", "X-Forwarded-For": "198.51.100.7"}})
	if got := r.header.Get("X-Request-Id"); got != "from-the-client_1.0" {
		t.Errorf("the client's id became %q", got)
	}
	var line map[string]any
	eventually(t, func() error {
		for text := range strings.Lines(log.String()) {
			if strings.Contains(text, "from-the-client_1.0") {
				return json.Unmarshal([]byte(text), &line)
			}
		}
		return errors.New("no line of the request")
	})
	for key, want := range map[string]any{"msg": "request", "id": "from-the-client_1.0", "account": "alice", "route": "manifest", "method": "GET",
		"path": "/v2/alice/x/manifests/v1", "status": 404.0, "remote": "198.51.100.7"} {
		if line[key] != want {
			t.Errorf("%s = %v, want %v", key, line[key], want)
		}
	}
	for _, bad := range []string{"two words", "a\"b", strings.Repeat("x", 65), "é"} {
		r := g.do(call{method: http.MethodGet, path: "/api/whoami", header: map[string]string{"X-Request-Id": bad}})
		r.refused(t, "/api/whoami", http.StatusUnauthorized) // holds that the body has the header's
		if got := r.header.Get("X-Request-Id"); got == bad || got == "" {
			t.Errorf("id %q was kept as %q", bad, got)
		}
	}
	g.get("", "/healthz").want(t, http.StatusOK)
	if strings.Contains(log.String(), "healthz") {
		t.Error("health checks fill the log")
	}
}

func TestLogFormats(t *testing.T) {
	for name, tc := range map[string]struct {
		config   server.Config
		terminal bool
		want     string
	}{
		"auto":              {server.Config{}, false, `"msg":"hello"`},
		"auto, a terminal":  {server.Config{}, true, "msg=hello"},
		"text":              {server.Config{LogFormat: "text"}, false, "msg=hello"},
		"json, a terminal":  {server.Config{LogFormat: "json"}, true, `"msg":"hello"`},
		"only what matters": {server.Config{LogLevel: "warn"}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			server.NewLogger(&out, tc.config, tc.terminal).With("a", 1).InfoContext(t.Context(), "hello")
			if got := out.String(); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("logged %q, want %q", got, tc.want)
			}
		})
	}
}

// failing is a store of bytes that fails when it is told to.
type failing struct {
	registry.BlobStore
	on    *atomic.Bool
	asked *atomic.Int64
}

func (f failing) Stat(ctx context.Context, d digest.Digest) (int64, error) {
	f.asked.Add(1)
	if f.on.Load() {
		return 0, errors.New("the secret bucket is gone")
	}
	return f.BlobStore.Stat(ctx, d)
}

// /readyz names what fails. Why it does is for those who may see everything. Many questions cost few looks.
func TestReadiness(t *testing.T) {
	var on atomic.Bool
	var asked atomic.Int64
	g := startGatehouse(t, func(s *setup) {
		s.config.MetricsListen = "127.0.0.1:0"
		s.change = func(d *registry.Deps) { d.Blobs = failing{d.Blobs, &on, &asked} }
	})
	for range 200 {
		state := g.get("", "/readyz").want(t, http.StatusOK).readiness(t)
		if len(state.Checks) != 3 || !state.Checks["database"].OK || !state.Checks["store"].OK || !state.Checks["key"].OK {
			t.Fatalf("state %+v", state)
		}
	}
	if n := asked.Load(); n > 100 {
		t.Errorf("the store was asked %d times for 200 questions", n)
	}
	on.Store(true)
	eventually(t, func() error {
		if r := g.get("", "/readyz"); r.status != http.StatusServiceUnavailable {
			return fmt.Errorf("status %d", r.status)
		}
		return nil
	})
	r := g.do(call{method: http.MethodGet, path: "/readyz", token: "no-token"}).want(t, http.StatusServiceUnavailable)
	if state := r.readiness(t); state.Detail != "not ready: store" || state.Checks["store"].OK || !state.Checks["database"].OK || bytes.Contains(r.body, []byte("secret bucket")) {
		t.Errorf("for a stranger: %s", r.body)
	}
	for _, as := range []string{"alice", "vera"} {
		if r := g.get(as, "/readyz"); bytes.Contains(r.body, []byte("secret bucket")) {
			t.Errorf("%s sees the cause", as)
		}
	}
	if state := g.get("audrey", "/readyz").readiness(t); !strings.Contains(state.Checks["store"].Error, "secret bucket") {
		t.Errorf("for an auditor: %+v", state)
	}
	g.get("", "/healthz").want(t, http.StatusOK)
	text := string(g.get("admin", "/metrics").body)
	if !strings.Contains(text, `gatehouse_store_errors_total{backend="folder",operation="stat"}`) {
		t.Error("the store's errors are not counted")
	}
	on.Store(false)
	eventually(t, func() error {
		if r := g.get("", "/readyz"); r.status != http.StatusOK {
			return fmt.Errorf("status %d", r.status)
		}
		return nil
	})
}

// fileTaker is a connection as net/http shows it to handlers: it takes a file whole when it comes as one.
type fileTaker struct {
	*httptest.ResponseRecorder
	files, bytes int64
}

func (f *fileTaker) ReadFrom(r io.Reader) (int64, error) {
	if limited, ok := r.(*io.LimitedReader); ok {
		if _, ok := limited.R.(*os.File); ok {
			f.files++
		}
	}
	n, err := io.Copy(f.ResponseRecorder, r)
	f.bytes += n
	return n, err
}

// Bytes of a blob reach the connection as a piece of a file, so that the system sends them by itself: no middleware may
// stand between.
func TestFilesReachTheConnection(t *testing.T) {
	g := startGatehouse(t)
	content := bytes.Repeat([]byte("sendfile"), 400_000) // 3.2 MB: four pieces
	g.pushBlob("alice", "alice/x", content)
	r := httptest.NewRequest(http.MethodGet, "/v2/alice/x/blobs/"+digest.FromBytes(content).String(), nil)
	r.SetBasicAuth("alice", g.tokens["alice"])
	w := &fileTaker{ResponseRecorder: httptest.NewRecorder()}
	g.server.Handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK || !bytes.Equal(w.Body.Bytes(), content) {
		t.Fatalf("status %d, %d bytes", w.Code, w.Body.Len())
	}
	if w.bytes != int64(len(content)) || w.files < 4 {
		t.Errorf("%d of %d bytes came in %d pieces of a file", w.bytes, len(content), w.files)
	}
}

// Spans go to the collector that the environment names, below the caller's own, and the log names the trace.
func TestTraces(t *testing.T) {
	const traceID, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	var mu sync.Mutex
	var sent []byte
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/v1/traces" {
			sent = append(sent, body...)
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_SERVICE_NAME", "ours")
	var log lockedBuffer
	g, stop, ended := runGatehouse(t, jsonLog(&log, "info"))
	g.do(call{as: "alice", method: http.MethodGet, path: "/v2/alice/x/manifests/v1", header: map[string]string{"Traceparent": "00-" + traceID + "-" + parent + "-01"}}).want(t, http.StatusNotFound)
	g.http.CloseIdleConnections()
	stop()
	if err := errors.Join(<-ended, g.server.Close()); err != nil {
		t.Fatal(err)
	}
	id, err := hex.DecodeString(traceID)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, want := range [][]byte{id, []byte("GET manifest"), []byte("database view"), []byte("ours")} {
		if !bytes.Contains(sent, want) {
			t.Errorf("the collector did not get %q", want)
		}
	}
	if !strings.Contains(log.String(), `"trace":"`+traceID+`"`) {
		t.Error("the log does not name the trace")
	}
}
