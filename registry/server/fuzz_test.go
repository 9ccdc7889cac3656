package server_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// FuzzAPI sends requests as they may stand on the wire to the handler. Whatever they are, the answer is no failure of the
// server, and an error is one that the client can show.
func FuzzAPI(f *testing.F) {
	g := openGatehouse(f)
	f.Cleanup(func() {
		if err := g.server.Close(); err != nil {
			f.Error(err)
		}
	})
	base := g.publishedWithin(f, algorithm("base", "1.0.0"))
	for _, line := range requestSeeds(f, base) {
		f.Add(line.method, line.path, line.header, []byte(line.body), true)
	}
	for _, path := range hostileSegments {
		f.Add("GET", "/api/plugins/alice/"+path, "", []byte(nil), false)
		f.Add("PUT", "/v2/alice/base/manifests/"+path, "Content-Type: "+imageManifest, []byte("{}"), false)
	}
	for _, body := range hostileBodies {
		f.Add("POST", "/api/admin/users", "", []byte(body), true)
		f.Add("POST", "/api/jobs", "", []byte(body), false)
		f.Add("POST", "/api/jobs", "X-Forge-Meta: "+strings.Map(printable, body), []byte(nil), false)
	}
	for _, archive := range corpusArchives(f) {
		if len(archive) < 1<<16 {
			f.Add("POST", "/api/plugins/publish", "", archive, false)
		}
	}
	f.Fuzz(func(t *testing.T, method, path, header string, body []byte, admin bool) {
		r, ok := g.onTheWire(method, path, header, body, admin)
		if !ok {
			return
		}
		w := httptest.NewRecorder()
		g.server.Handler().ServeHTTP(w, r)
		if err := clientsFault(r.Method, r.URL.EscapedPath(), reply{w.Code, w.Header(), w.Body.Bytes()}); err != nil {
			t.Errorf("%s %s: %v", r.Method, r.RequestURI, err)
		}
		for _, line := range g.faults.take() {
			t.Errorf("%s %s: the server logged %s", r.Method, r.RequestURI, line)
		}
	})
}

// seed is a request that the fuzzer begins with.
type seed struct{ method, path, header, body string }

// requestSeeds are requests of every kind, which name things that are not there.
func requestSeeds(f *testing.F, base digest.Digest) []seed {
	spec, tune := jobSpec(f, dialect.Forge, "a"), jobSpec(f, dialect.TunePlane, "a")
	seeds := []seed{
		{method: "POST", path: "/api/jobs", body: spec},
		{method: "POST", path: "/api/jobs", header: `X-Forge-Meta: {"exp":"experiments/a","profile":"h200","spec":` + spec + `}`, body: "package"},
		{method: "POST", path: "/api/admission", body: tune},
		{method: "POST", path: "/api/submissions/previews", body: previewBody(tune)},
		{method: "POST", path: "/api/submissions/commits", body: `{"preview_id":"x","digest":"y","key":"z"}`},
		{method: "POST", path: "/api/submissions/uploads", body: `{"digest":"` + strings.Repeat("0", 64) + `","size":1}`},
		{method: "POST", path: "/api/admin/quotas", body: `{"username":"bob","max_concurrent_gpus":8}`},
		{method: "POST", path: "/api/tokens", body: `{"account":"bob","label":"x","expires_in":1}`},
		{method: "PATCH", path: "/api/plugins/alice/base", body: `{"enabled":true,"version":"1.0.0"}`},
		{method: "PUT", path: "/api/plugin-activations/prompt", body: `{"expected_generation":0,"reference":{"id":"a/b","version":"1","digest":"x"}}`},
		{method: "PUT", path: "/api/admin/catalog/tp?release=9.9", body: `{"recipes":[],"bundled_plugins":[]}`},
		{method: "GET", path: "/v2/alice/base/referrers/" + base.String() + "?artifactType=x"},
		{method: "POST", path: "/v2/alice/base/blobs/uploads/?mount=" + base.String() + "&from=alice/base"},
		{method: "POST", path: "/v2/alice/base/blobs/uploads/?digest=" + digest.FromBytes([]byte("x")).String(), body: "x"},
		{method: "GET", path: "/v2/alice/base/blobs/" + base.String(), header: "Range: bytes=1-2"},
		{method: "PUT", path: "/v2/alice/base/manifests/1.0.1", header: "Content-Type: " + imageManifest, body: string(corpusFile(f, "m19-dup-layers.json"))},
		{method: "PUT", path: "/v2/alice/base/manifests/x", header: "Content-Type: " + imageIndex, body: string(corpusFile(f, "m21-index-cycle.json"))},
		{method: "GET", path: "/sf@0.3.51/api/recipes"}, {method: "GET", path: "/tp/api/extensions?source=user"}, {method: "GET", path: "/api/datasets/a/b"}, {method: "GET", path: "/cli/device"},
		{method: "GET", path: "/api/jobs/mine?limit=3"}, {method: "GET", path: "/api/audit?after=1"}, {method: "GET", path: "/api/plugins/alice/base/package?version=1.0.0"}, {method: "DELETE", path: "/v2/alice/base/manifests/1.0.0"},
	}
	return seeds
}

// publishedWithin publishes through the handler of a server that does not run, and gives the manifest's digest.
func (g *gatehouse) publishedWithin(tb testing.TB, files map[string]string) digest.Digest {
	tb.Helper()
	r, ok := g.onTheWire("POST", "/api/plugins/publish?owner=alice", "", archiveOf(tb, files), true)
	w := httptest.NewRecorder()
	if ok {
		g.server.Handler().ServeHTTP(w, r)
	}
	var p struct {
		Manifest digest.Digest `json:"manifest_digest"`
	}
	reply{w.Code, w.Header(), w.Body.Bytes()}.want(tb, http.StatusOK).into(tb, &p)
	return p.Manifest
}

// onTheWire reads a request as a server does. It is not ok when net/http would refuse it itself.
func (g *gatehouse) onTheWire(method, path, header string, body []byte, admin bool) (*http.Request, bool) {
	account := "alice"
	if admin {
		account = "admin"
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n", method, path, g.tokens[account], len(body))
	if header != "" {
		head += header + "\r\n"
	}
	r, err := http.ReadRequest(bufio.NewReaderSize(io.MultiReader(strings.NewReader(head+"\r\n"), bytes.NewReader(body)), 1<<20))
	return r, err == nil
}

func printable(r rune) rune {
	if r < ' ' || r > '~' {
		return -1
	}
	return r
}
