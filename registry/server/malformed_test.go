package server_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// clientsFault says what is wrong with an answer to whatever a client may have sent: a failure of the server, or an
// error in a form that the client can't show.
func clientsFault(method, path string, r reply) error {
	outside := r.status == http.StatusNotImplemented && strings.Contains(path, "/api/")
	switch {
	case r.status >= 500 && !outside:
		return fmt.Errorf("status %d: %.300q", r.status, r.body)
	case r.status < 400 || method == http.MethodHead:
		return nil
	}
	_, err := refusalOf(withoutBase(path), r)
	return err
}

// withoutBase takes a client's base path off.
func withoutBase(path string) string {
	return regexp.MustCompile(`^/(sf|tp)(@[^/%]*)?/`).ReplaceAllString(path, "/")
}

// hostileSegments stand for a name in a path.
var hostileSegments = []string{
	"..", ".", "%2e%2e", "%2E%2E%2F..", "a%2Fb", "a%2fb", "%2F", "%5C", "a%00b", "%00", "%ff%fe", "%C0%AE", "a%0Ab", "a%0D%0AX-Y:%20z", "%E2%80%AE", "%EF%BB%BF",
	"a..b", "a.", "-", "_", "A", "a@b", "@", "a:b", "sha256:00", "a%20b", "%25", "%2525", "*", "'%20OR%201=1--", "%22", "%3Cscript%3E", "%E2%84%AA", "ſ", "ü", "~", "a;b", "latest",
	strings.Repeat("x", 300), strings.Repeat("%C3%BC", 2000), strings.Repeat("a/", 40) + "a",
}

// hostileQueries stand for the value of a query parameter.
var hostileQueries = []string{
	"", "%00", "%ff", "%zz", "%", "a;b", "a&a=b&a", "-1", "0", "1e9", "99999999999999999999", "1.5", "%2B1", "0x10", "true", "null", "..%2F..", "%0A", "%E2%80%AE", strings.Repeat("x", 5000), strings.Repeat("9", 5000),
}

// TestMalformedPaths puts hostile names and values into every route.
func TestMalformedPaths(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of requests one after the other: in the full run")
	}
	g := startGatehouse(t)
	g.published("alice", algorithm("base", "1.0.0"))
	paths := map[string][]string{} // by path, its methods
	for _, r := range server.Routes() {
		paths[r.Path] = append(paths[r.Path], r.Method)
	}
	for _, p := range []string{
		"/v2/:owner/:name/tags/list", "/v2/:owner/:name/manifests/:ref", "/v2/:owner/:name/blobs/:digest", "/v2/:owner/:name/blobs/uploads/", "/v2/:owner/:name/blobs/uploads/:id",
		"/v2/:owner/:name/referrers/:digest", "/v2/_catalog", "/v2/:x", "/v2/", "/:x", "/:x/:y", "/api/:x", "/api/:x/:y", "/api/datasets/:x", "/cli/:x", "/sf@:x/api/version", "/sf/:x", "/tp@0.4.0/v2/:x/tags/list",
	} {
		paths[p] = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
	}
	parameter := regexp.MustCompile(`:\w+`)
	queries := []string{"version", "owner", "limit", "id", "after", "account", "all", "role", "disabled", "release", "n", "last", "digest", "mount", "from", "tag", "artifactType", "source"}
	check := func(method, path string) {
		for _, as := range []string{"alice", "admin"} {
			r, err := g.try(call{as: as, method: method, path: path, body: []byte("{}")})
			if err != nil {
				continue // net/http's own client can't say it: TestMalformedRequests does
			}
			if err := clientsFault(method, path, r); err != nil {
				t.Errorf("%s %s as %s: %v", method, path, as, err)
			}
		}
	}
	for path, methods := range paths {
		if parameter.MatchString(path) {
			for _, s := range hostileSegments {
				check(methods[0], parameter.ReplaceAllLiteralString(path, s))
			}
		}
		for _, m := range methods {
			check(m, parameter.ReplaceAllString(path, "alice"))
			if path == "/api/admin/users/:name/disabled" {
				continue // it would lock alice out
			}
			for _, q := range queries {
				v := hostileQueries[len(q)%len(hostileQueries)]
				check(m, parameter.ReplaceAllString(path, "base")+"?"+q+"="+v)
			}
		}
		for _, v := range hostileQueries {
			check(methods[0], parameter.ReplaceAllString(path, "alice")+"?"+strings.Join(queries, "="+v+"&")+"="+v)
		}
	}
}

// TestUnknownMethods sends verbs that a path does not have.
func TestUnknownMethods(t *testing.T) {
	g := startGatehouse(t)
	for _, path := range []string{"/api/version", "/api/plugins", "/api/plugins/alice/base", "/api/jobs", "/v2/", "/v2/alice/x/manifests/1", "/v2", "/v2/_catalog", "/healthz", "/", "/nothing", "/api/nothing", "/api/datasets", "/api/job/logs/stream"} {
		for _, method := range []string{"OPTIONS", "TRACE", "PROPFIND", "get", "X", "DELETE", "PATCH", "HEAD"} {
			r := g.do(call{as: "alice", method: method, path: path})
			if err := clientsFault(method, path, r); err != nil || r.status < 400 && !(method == "HEAD" && strings.HasPrefix(path, "/v2/")) {
				t.Errorf("%s %s: status %d: %v", method, path, r.status, err)
			}
		}
	}
}

// TestOutside asks for what the platforms do and this product does not (wire.md 8).
func TestOutside(t *testing.T) {
	g := startGatehouse(t)
	for _, path := range []string{
		"GET /api/datasets", "PATCH /api/datasets/a/b", "POST /api/datasets/multipart/start", "GET /api/corpora", "GET /api/volumes", "DELETE /api/volumes/a/b", "GET /api/models", "POST /api/models/versions",
		"POST /api/playground/start", "GET /api/annotate/status", "POST /api/benchmarks/external/scores", "POST /api/job/pause", "POST /api/job/resume", "POST /api/job/retry", "POST /api/job/delete",
		"POST /api/jobs/cancel-all", "POST /api/jobs/clean", "GET /api/samples", "GET /api/jobs/r1/artifacts", "POST /api/clean", "POST /api/sweeps/1/stop", "POST /api/post",
		"GET /api/admin/maintenance", "POST /api/admin/maintenance/drain", "POST /api/ingest/metrics", "POST /api/judge",
	} {
		method, path, _ := strings.Cut(path, " ")
		if got := g.do(call{as: "alice", method: method, path: path}).refused(t, path, http.StatusNotImplemented); !strings.Contains(got.Detail, method+" "+path) {
			t.Errorf("%s %s: %q does not name the request", method, path, got.Detail)
		}
		g.do(call{method: method, path: path}).refused(t, path, http.StatusUnauthorized)
	}
	g.get("alice", "/api/job/logs/stream?id=x").refused(t, "/api/", http.StatusNotFound)
	g.get("alice", "/api/datasetsx").refused(t, "/api/", http.StatusNotFound)
}

// hostileValues stand for a value in a JSON body.
var hostileValues = []string{
	`null`, `true`, `0`, `-1`, `1.5`, `1e999`, `-0`, `99999999999999999999`, `9223372036854775807`, `-9223372036854775808`, `""`, `" "`, `"\u0000"`, `"a\nb"`, `"\ud800"`, "\"\xff\"", `"../../x"`, `"\u202e"`, `[]`, `{}`, `[[]]`, `[null]`,
	`{"a":1,"a":2}`, `NaN`, `"` + strings.Repeat("x", 10_000) + `"`, strings.Repeat("[", 100) + strings.Repeat("]", 100), strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000),
}

// hostileBodies stand for a whole body.
var hostileBodies = []string{
	"", " ", "null", "true", "0", `"x"`, "[]", "{}", "{", "}", "{}{}", "{}x", "\xef\xbb\xbf{}", "\x00", "\xff\xfe", "\x1f\x8b\x08", "{'a':1}", `{"a":1,}`, `{"a" 1}`, "// x\n{}", `{"":""}`,
	strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000), `{"username":"x","Username":"y"}`, "<xml/>", "a=b&c=d", strings.Repeat("1", 1_000_000),
}

// TestMalformedBodies breaks every JSON body that a route takes, one value at a time.
func TestMalformedBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of requests one after the other: in the full run")
	}
	g := startGatehouse(t)
	spec, tune := jobSpec(t, dialect.Forge, "a"), jobSpec(t, dialect.TunePlane, "a")
	bodies := []struct{ method, path, body string }{
		{"POST", "/api/admin/users", `{"username":"new","password":"long enough","role":"operator","email":"a@example.org"}`},
		{"POST", "/api/admin/quotas", `{"username":"bob","max_concurrent_gpus":8,"max_concurrent_jobs":1,"daily_gpu_hours":1,"max_storage_gb":1,"allowed_profiles":["h200"],"priority":1}`},
		{"PUT", "/api/admin/catalog/sf?release=9.9", `{"recipes":[{"name":"verl/x","version":"1","digest":"sha256:00","framework":"verl","adapter":"verl","supported_framework_versions":["1"],"runtime":{"default_version":"1","versions":{"1":{"runtime_id":"x"}}},"core_requires":">=0"}],"bundled_plugins":[{"id":"a/b","version":"1","digest":"sha256:00"}]}`},
		{"POST", "/api/tokens", `{"account":"admin","label":"x","expires_in":1}`},
		{"PATCH", "/api/plugins/alice/base", `{"enabled":true,"version":"1.0.0"}`},
		{"PUT", "/api/plugin-activations/prompt", `{"expected_generation":0,"reference":{"id":"a/b","version":"1","digest":"x"}}`},
		{"POST", "/api/submissions/uploads", `{"digest":"` + strings.Repeat("0", 64) + `","size":1}`},
		{"POST", "/api/submissions/previews", previewBody(tune, `,"source":{"upload":"x","digest":"`+digest.FromBytes(nil).String()+`","size":1}`)},
		{"POST", "/api/submissions/commits", `{"preview_id":"x","digest":"y","key":"z"}`},
		{"POST", "/api/jobs", spec},
		{"POST", "/api/jobs", tune},
		{"POST", "/api/admission", tune},
	}
	n := 0
	for _, b := range bodies {
		send := func(body string) {
			n++
			r := g.do(call{as: "admin", method: b.method, path: b.path, body: []byte(body)})
			if err := clientsFault(b.method, b.path, r); err != nil {
				t.Errorf("%s %s %.300q: %v", b.method, b.path, body, err)
			}
		}
		for _, body := range hostileBodies {
			send(body)
		}
		for at := range leaves(t, b.body) {
			for _, v := range hostileValues {
				send(b.body[:at[0]] + v + b.body[at[1]:])
			}
		}
		for range 40 {
			n++
			send(b.body[:n*7919%len(b.body)])
		}
	}
	// The last values of a metadata header, and of the header itself.
	for _, v := range append(hostileValues, hostileBodies...) {
		for _, meta := range []string{v, `{"exp":` + v + `,"spec":` + spec + `}`, `{"spec":` + v + `}`} {
			r, err := g.try(call{as: "alice", method: "POST", path: "/api/jobs", header: map[string]string{"X-Forge-Meta": meta}})
			if err != nil {
				continue
			}
			if err := clientsFault("POST", "/api/jobs", r); err != nil {
				t.Errorf("X-Forge-Meta %.200q: %v", meta, err)
			}
		}
	}
	t.Logf("%d requests", n)
}

// leaves finds the values of a JSON text that are no object: where each begins and ends.
func leaves(tb testing.TB, src string) map[[2]int]bool {
	tb.Helper()
	dec := json.NewDecoder(strings.NewReader(src))
	found := map[[2]int]bool{}
	for key, depth := false, []bool{}; ; {
		begin := int(dec.InputOffset())
		token, err := dec.Token()
		if err == io.EOF {
			return found
		}
		if err != nil {
			tb.Fatal(err)
		}
		inObject := len(depth) > 0 && depth[len(depth)-1]
		switch v := token.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				depth = append(depth, v == '{')
			} else {
				depth = depth[:len(depth)-1]
			}
			key = len(depth) > 0 && depth[len(depth)-1]
			continue
		default:
			if inObject && key {
				key = false
				continue
			}
		}
		key = inObject
		end := int(dec.InputOffset())
		begin += len(src[begin:end]) - len(strings.TrimLeft(src[begin:end], ":, \n"))
		found[[2]int{begin, end}] = true
	}
}

// TestExactAnswers are malformed requests whose answer is laid down.
func TestExactAnswers(t *testing.T) {
	g := startGatehouse(t)
	g.published("alice", algorithm("base", "1.0.0"))
	pack := string(archiveOf(t, algorithm("x", "1.0.0")))
	cases := []struct {
		as, method, path, body string
		header                 map[string]string
		status                 int
	}{
		{"alice", "POST", "/api/plugins/publish", "", nil, 400},
		{"alice", "POST", "/api/plugins/publish", "no gzip", nil, 400},
		{"alice", "POST", "/api/plugins/publish", pack[:len(pack)/2], nil, 400},
		{"alice", "POST", "/api/plugins/publish", pack + "x", nil, 400},
		{"alice", "POST", "/api/plugins/publish?owner=%zz", pack, nil, 422},
		{"alice", "POST", "/api/plugins/publish?owner=..", pack, nil, 403},
		{"admin", "POST", "/api/plugins/publish?owner=..", pack, nil, 400},
		{"admin", "POST", "/api/plugins/publish?owner=A", pack, nil, 400},
		{"alice", "POST", "/api/plugins/publish", strings.Repeat("x", limit.Compressed+1), nil, 413},
		{"alice", "GET", "/api/plugins/alice/base?version=%zz", "", nil, 422},
		{"alice", "GET", "/api/plugins/alice/base?version=1.0.0%00", "", nil, 404},
		{"alice", "GET", "/api/plugins/alice/base?version=1.0", "", nil, 404},
		{"alice", "GET", "/api/plugins/alice/..", "", nil, 404},
		{"alice", "GET", "/api/plugins/alice/%2e%2e", "", nil, 404},
		{"alice", "GET", "/api/plugins/alice/Base", "", nil, 404},
		{"alice", "GET", "/api/plugins/alice%2Fbase", "", nil, 404},
		{"alice", "GET", "/api/plugins/alice/base/package", "", map[string]string{"Range": "bytes=99999999-"}, 200},
		{"alice", "GET", "/api/plugins/alice/base/package", "", map[string]string{"If-Match": `"x"`}, 200},
		{"alice", "GET", "/api/jobs/mine?limit=x", "", nil, 422},
		{"alice", "GET", "/api/jobs/mine?limit=99999999999999999999", "", nil, 422},
		{"alice", "GET", "/api/jobs/mine?limit=-5", "", nil, 200},
		{"admin", "GET", "/api/audit?after=x", "", nil, 422},
		{"admin", "POST", "/api/admin/users", `{"username":"a","username":"b"}`, nil, 422},
		{"admin", "POST", "/api/admin/users", `{"username":"a","USERNAME":"b"}`, nil, 422},
		{"admin", "POST", "/api/admin/users", `{"username":"../x"}`, nil, 422},
		{"admin", "POST", "/api/admin/users", `{"username":"tuneplane"}`, nil, 422},
		{"admin", "POST", "/api/admin/users", `{"username":"alice"}`, nil, 409},
		{"admin", "POST", "/api/admin/users", `{"username":"c","role":"root"}`, nil, 422},
		{"admin", "POST", "/api/admin/users", `{"username":"c","password":"short"}`, nil, 422},
		{"admin", "POST", "/api/tokens", `{"account":"nobody"}`, nil, 404},
		{"alice", "POST", "/api/tokens", `{"label":"` + strings.Repeat("x", 255) + `"}`, nil, 422},
		{"admin", "POST", "/api/admin/users", `{"username":"c","email":"` + strings.Repeat("x", 255) + `"}`, nil, 422},
		{"admin", "POST", "/api/admin/quotas", `{"username":"alice","x":"` + strings.Repeat("x", 64<<10) + `"}`, nil, 413},
		{"admin", "POST", "/api/tokens", `{"expires_in":99999999999}`, nil, 422},
		{"admin", "POST", "/api/tokens", `{"expires_in":-1}`, nil, 422},
		{"admin", "PATCH", "/api/admin/users/admin/role?role=viewer", "", nil, 409},
		{"admin", "PATCH", "/api/admin/users/admin/disabled?disabled=true", "", nil, 409},
		{"admin", "PATCH", "/api/admin/users/alice/disabled?disabled=maybe", "", nil, 422},
		{"admin", "PATCH", "/api/plugins/alice/base", `{}`, nil, 422},
		{"admin", "PATCH", "/api/plugins/alice/base", `{"enabled":"yes"}`, nil, 422},
		{"admin", "PATCH", "/api/plugins/alice/none", `{"enabled":true}`, nil, 404},
		{"admin", "PUT", "/api/plugin-activations/algorithm", `{"expected_generation":0}`, nil, 404},
		{"admin", "PUT", "/api/plugin-activations/prompt", `{"expected_generation":7,"reference":null}`, nil, 409},
		{"admin", "PUT", "/api/admin/catalog/xx", `{}`, nil, 404},
		{"alice", "POST", "/api/submissions/uploads", `{"digest":"zz","size":1}`, nil, 422},
		{"alice", "POST", "/api/submissions/uploads", `{"digest":"` + strings.Repeat("0", 64) + `","size":0}`, nil, 422},
		{"alice", "POST", "/api/submissions/uploads", `{"digest":"` + strings.Repeat("0", 64) + `","size":999999999999}`, nil, 413},
		{"alice", "POST", "/api/submissions/previews", `{"form":"recipe","spec":{}}`, nil, 422},
		{"alice", "POST", "/api/submissions/commits", `{}`, nil, 404},
		{"alice", "POST", "/api/jobs", "", map[string]string{"X-Forge-Meta": "{}"}, 422},
		{"alice", "POST", "/api/jobs", "", map[string]string{"X-Forge-Meta": "x"}, 422},
		{"alice", "POST", "/api/job/stop", "", nil, 404},

		{"alice", "GET", "/v2/alice/base/manifests/1.0.0%2F..", "", nil, 400},
		{"alice", "GET", "/v2/alice/%2e%2e/manifests/1.0.0", "", nil, 400},
		{"alice", "GET", "/v2/Alice/base/manifests/1.0.0", "", nil, 400},
		{"alice", "GET", "/v2/alice/base/manifests/" + strings.Repeat("x", 129), "", nil, 400},
		{"alice", "GET", "/v2/alice/base/manifests/sha256:00", "", nil, 400},
		{"alice", "GET", "/v2/alice/base/manifests/sha256:" + strings.Repeat("A", 64), "", nil, 400},
		{"alice", "GET", "/v2/alice/base/blobs/md5:00", "", nil, 400},
		{"alice", "GET", "/v2/alice/base/tags/list?n=-1", "", nil, 400},
		{"alice", "GET", "/v2/alice/base/tags/list?n=x", "", nil, 400},
		{"alice", "GET", "/v2/alice/base/tags/list?n=99999999999999999999", "", nil, 400},
		{"alice", "POST", "/v2/alice/base/blobs/uploads/?digest=sha256:00", "x", nil, 400},
		{"alice", "POST", "/v2/alice/base/blobs/uploads/?digest=" + digest.FromBytes([]byte("y")).String(), "x", nil, 400},
		{"alice", "POST", "/v2/alice/base/blobs/uploads/?digest=%zz", "x", nil, 422},
		{"alice", "PUT", "/v2/alice/base/blobs/uploads/x?digest=sha256:00", "x", nil, 404},
		{"alice", "PUT", "/v2/alice/base/manifests/x", "{}", map[string]string{"Content-Type": "nonsense"}, 400},
		{"alice", "PUT", "/v2/alice/base/manifests/x", "{}", nil, 400},
		{"alice", "PUT", "/v2/alice/base/manifests/x", `{"mediaType":"a/` + strings.Repeat("b", 300) + `"}`, nil, 400},
		{"alice", "PUT", "/v2/alice/y/manifests/x", strings.Replace(string(corpusFile(t, "m21-index-cycle.json")), "{", `{"artifactType":"a/`+strings.Repeat("b", 300)+`",`, 1), map[string]string{"Content-Type": imageIndex}, 400},
		{"alice", "PUT", "/v2/alice/base/manifests/..", "{}", nil, 400},
	}
	for _, c := range cases {
		r := g.do(call{as: c.as, method: c.method, path: c.path, body: []byte(c.body), header: c.header})
		if err := clientsFault(c.method, c.path, r); err != nil || r.status != c.status {
			t.Errorf("%s %s %.80q: status %d, want %d (%v): %.300s", c.method, c.path, c.body, r.status, c.status, err, r.body)
		}
	}
	if got := g.staging(); len(got) > 0 {
		t.Errorf("left in staging: %q", got)
	}
}

// raw writes a request as it stands and reads the answer; cut ends the sending side in between. After a request that is
// whole that would look to net/http as if the client had gone.
func (g *gatehouse) raw(request string, cut bool) (reply, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		return reply{}, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		return reply{}, err
	}
	if cut {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return reply{}, err
		}
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, body}, err
}

// TestBrokenBodies ends bodies midway, and says other lengths than they have, at every route that reads one.
func TestBrokenBodies(t *testing.T) {
	g := startGatehouse(t)
	pack := archiveOf(t, algorithm("x", "1.0.0"))
	up := g.do(call{as: "alice", method: "POST", path: "/v2/alice/x/blobs/uploads/"}).want(t, 202).header.Get("Location")
	lease := packageUpload(g, "")
	header := "Host: x\r\nConnection: close\r\nAuthorization: Basic " + base64.StdEncoding.EncodeToString([]byte("alice:"+g.tokens["alice"])) + "\r\n"
	admin := strings.Replace(header, "Authorization: ", "X-Unused: ", 1) + "Authorization: Bearer " + g.tokens["admin"] + "\r\n"
	targets := []struct{ line, header string }{
		{"POST /api/plugins/publish", header},
		{"POST /api/jobs", header},
		{"POST /api/admission", header},
		{"POST /api/submissions/previews", header},
		{"PUT /api/submissions/uploads/" + lease, header},
		{"POST /api/admin/users", admin},
		{"PUT /api/admin/catalog/sf", admin},
		{"PATCH /api/plugins/alice/x", admin},
		{"POST /v2/alice/x/blobs/uploads/?digest=" + digest.FromBytes(pack).String(), header},
		{"PATCH " + up, header},
		{"PUT " + up + "?digest=" + digest.FromBytes(pack).String(), header},
		{"PUT /v2/alice/x/manifests/v1", header + "Content-Type: " + imageManifest + "\r\n"},
		{"GET /api/whoami", header},
		{"GET /v2/", header},
	}
	for _, target := range targets {
		method, path, _ := strings.Cut(target.line, " ")
		head := target.line + " HTTP/1.1\r\n" + target.header
		for what, tail := range map[string]string{
			"cut off":                fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(pack)+100, pack),
			"nothing of it":          "Content-Length: 1000\r\n\r\n",
			"chunk cut off":          "Transfer-Encoding: chunked\r\n\r\nff\r\nshort",
			"chunk of no size":       "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
			"chunk of a giant size":  "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx",
			"chunk without an end":   "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
			"length below":           "Content-Length: 1\r\n\r\n{}{}{}",
			"expectation":            "Expect: 100-continue\r\nContent-Length: 10\r\n\r\n",
			"compressed":             "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
			"range that is none":     "Content-Range: x\r\nContent-Length: 2\r\n\r\n{}",
			"range beyond":           "Content-Range: 0-999\r\nContent-Length: 2\r\n\r\n{}",
			"range of another place": "Content-Range: 1000-1001\r\nContent-Length: 2\r\n\r\n{}",
		} {
			cut := slices.Contains([]string{"cut off", "nothing of it", "chunk cut off", "chunk without an end", "expectation"}, what)
			r, err := g.raw(head+tail, cut)
			if err != nil {
				t.Errorf("%s, %s: %v", target.line, what, err)
				continue
			}
			if err := clientsFault(method, path, r); err != nil {
				t.Errorf("%s, %s: status %d: %v", target.line, what, r.status, err)
			}
			if strings.HasPrefix(what, "c") && r.status < 400 && method != http.MethodGet && method != http.MethodPatch && path != "/api/admission" {
				t.Errorf("%s, %s: status %d, want a refusal", target.line, what, r.status)
			}
		}
	}
	for what, request := range map[string]string{
		"a length that is none":    "POST /api/plugins/publish HTTP/1.1\r\n" + header + "Content-Length: x\r\n\r\n",
		"two lengths":              "POST /api/plugins/publish HTTP/1.1\r\n" + header + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
		"a negative length":        "POST /api/plugins/publish HTTP/1.1\r\n" + header + "Content-Length: -1\r\n\r\n",
		"length and chunks":        "POST /api/jobs HTTP/1.1\r\n" + header + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"an unknown encoding":      "POST /api/jobs HTTP/1.1\r\n" + header + "Transfer-Encoding: x\r\n\r\n",
		"no host":                  "GET /api/version HTTP/1.1\r\n\r\n",
		"a header without a colon": "GET /api/version HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
		"NUL in the path":          "GET /api/\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
		"a path that is none":      "GET api HTTP/1.1\r\nHost: x\r\n\r\n",
		"no version":               "GET /api/version\r\n\r\n",
	} {
		if r, err := g.raw(request, true); err != nil || r.status < 400 || r.status > 501 || r.status == 500 {
			t.Errorf("%s: status %d, %v", what, r.status, err)
		}
	}
	for _, line := range []string{"GET http://other/api/version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET /api/version HTTP/1.0\r\n\r\n"} {
		if r, err := g.raw(line, false); err != nil || r.status != http.StatusOK {
			t.Errorf("%q: status %d, %v", line, r.status, err)
		}
	}
	if got := slices.DeleteFunc(g.staging(), func(name string) bool { return strings.Contains(up, strings.TrimPrefix(name, "uploads/")) }); len(got) > 0 {
		t.Errorf("left in staging: %q", got)
	}
	if got := g.plugins(); len(got) > 0 {
		t.Errorf("published: %q", got)
	}
}

// TestChunkedBodies sends bodies without a length.
func TestChunkedBodies(t *testing.T) {
	g := startGatehouse(t)
	content := archiveOf(t, algorithm("x", "1.0.0"))
	chunked := func(b []byte) io.Reader { return io.MultiReader(bytes.NewReader(b)) }
	g.do(call{as: "alice", method: "POST", path: "/api/plugins/publish", reader: chunked(content)}).want(t, 200)
	a, _ := artifactOf(t, archiveOf(t, algorithm("x", "1.0.1")))
	for _, b := range [][]byte{a.layer, a.config} {
		g.do(call{as: "alice", method: "POST", path: "/v2/alice/x/blobs/uploads/?digest=" + digest.FromBytes(b).String(), reader: chunked(b)}).want(t, 201)
	}
	g.do(call{as: "alice", method: "PUT", path: "/v2/alice/x/manifests/1.0.1", reader: chunked(a.manifest), header: map[string]string{"Content-Type": imageManifest}}).want(t, 201)
	g.do(call{as: "alice", method: "POST", path: "/api/plugins/publish", reader: chunked(make([]byte, limit.Compressed+1))}).refused(t, "/api/", 413)
	g.do(call{as: "alice", method: "PUT", path: "/v2/alice/x/manifests/v1", reader: chunked(make([]byte, limit.Manifest+1))}).refused(t, "/v2/", 413)
	g.do(call{as: "alice", method: "POST", path: "/api/jobs", reader: chunked(make([]byte, limit.Document+1))}).refused(t, "/api/", 413)
}
