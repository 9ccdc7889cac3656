package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// callers are the columns of the access table: nobody, a viewer, an auditor, the operator alice to whom everything that
// is named belongs, another operator, an administrator.
var callers = [...]string{"", "vera", "audrey", "alice", "bob", "admin"}

// Rows of the table that many routes have.
var (
	everybody = [...]int{200, 200, 200, 200, 200, 200}
	signedIn  = [...]int{401, 200, 200, 200, 200, 200}
	onlyAdmin = [...]int{401, 403, 403, 403, 403, 200}
)

// access is a line of the access table. In path, body and header {n} is a number that no other cell has, and {x} what
// before gives.
type access struct {
	method, path string
	body         string
	archive      func(n string) map[string]string // instead of body: a pack to publish
	header       string                           // name: value
	before       func(g *gatehouse, n string) string
	want         [6]int
}

// accessTable has every route and every verb of the distribution protocol. TestAccess holds it to be whole.
func accessTable(g *gatehouse, base wire.Plugin) []access {
	forge := jobSpec(g.tb, dialect.Forge, "a")
	tune := jobSpec(g.tb, dialect.TunePlane, "a")
	job := func(g *gatehouse, _ string) string { return g.submitted("alice", forge) }
	upload := func(g *gatehouse, n string) string {
		r := g.do(call{as: "alice", method: http.MethodPost, path: "/v2/alice/new/blobs/uploads/"}).want(g.tb, http.StatusAccepted)
		return r.header.Get("Docker-Upload-Uuid")
	}
	image := string(corpusFile(g.tb, "m01-empty-layers.json"))
	imageThere := func(g *gatehouse, n string) string {
		g.pushBlob("alice", "alice/images", []byte("{}"))
		m := strings.Replace(image, "schemaVersion", `annotations": {"n": "`+n+`"}, "schemaVersion`, 1)
		g.putManifest("alice", "alice/images", "v"+n, imageManifest, []byte(m)).want(g.tb, http.StatusCreated)
		return digest.FromBytes([]byte(m)).String()
	}
	blobThere := func(g *gatehouse, n string) string {
		g.pushBlob("alice", "alice/images", []byte("blob "+n))
		return digest.FromBytes([]byte("blob " + n)).String()
	}
	emptyBlob := digest.FromBytes([]byte("{}")).String()
	playbook := func(kind string) func(n string) map[string]string {
		return func(n string) map[string]string {
			return map[string]string{"plugin.yaml": "schema: forge/plugin/v1\nname: " + kind + n + "\nversion: \"1\"\nkind: " + kind + "\n", "README.md": "text\n"}
		}
	}
	code := func(n string) map[string]string { return algorithm("p"+n, "1.0.0") }
	writes := [6]int{401, 403, 403, 200, 200, 200}
	ownNamespace := func(status int) [6]int { return [6]int{401, 403, 403, status, 403, status} }

	return []access{
		{method: "GET", path: "/healthz", want: everybody},
		{method: "GET", path: "/readyz", want: everybody},
		{method: "GET", path: "/api/version", want: everybody},
		{method: "GET", path: "/sf@0.3.51/api/version", want: everybody},
		{method: "GET", path: "/api/whoami", want: signedIn},
		{method: "GET", path: "/tp/api/whoami", want: signedIn},
		{method: "GET", path: "/api/admin/users", want: onlyAdmin},
		{method: "POST", path: "/api/admin/users", body: `{"username":"new{n}"}`, want: [6]int{401, 403, 403, 403, 403, 201}},
		{method: "PATCH", path: "/api/admin/users/bob/role?role=operator", want: onlyAdmin},
		{method: "PATCH", path: "/api/admin/users/bob/disabled?disabled=false", want: onlyAdmin},
		{method: "POST", path: "/api/admin/quotas", body: `{"username":"bob","max_concurrent_gpus":0}`, want: onlyAdmin},
		{method: "PUT", path: "/api/admin/catalog/sf?release=9.{n}", before: snapshot, body: "{x}", want: onlyAdmin},
		{method: "GET", path: "/api/tokens", want: signedIn},
		{method: "GET", path: "/api/tokens?account=alice", want: ownNamespace(200)},
		{method: "GET", path: "/api/tokens?all=true", want: onlyAdmin},
		{method: "POST", path: "/api/tokens", body: `{}`, want: [6]int{401, 201, 201, 201, 201, 201}},
		{method: "POST", path: "/api/tokens", body: `{"account":"alice"}`, want: ownNamespace(201)},
		{method: "DELETE", path: "/api/tokens/{x}", before: tokenOfAlice, want: [6]int{401, 404, 404, 204, 404, 204}},
		{method: "GET", path: "/api/audit", want: [6]int{401, 403, 200, 403, 403, 200}},

		{method: "GET", path: "/api/plugins", want: signedIn},
		{method: "POST", path: "/api/plugins/publish", archive: code, want: writes},
		{method: "POST", path: "/api/plugins/publish?owner=alice", archive: code, want: ownNamespace(200)},
		{method: "POST", path: "/api/plugins/publish", archive: playbook("playbook"), want: onlyAdmin},
		{method: "POST", path: "/api/plugins/publish", archive: playbook("prompt"), want: onlyAdmin},
		{method: "POST", path: "/api/plugins/publish?owner=tuneplane", archive: code, want: [6]int{401, 403, 403, 403, 403, 403}},
		{method: "POST", path: "/api/plugins/publish?owner=starforge", archive: code, want: [6]int{401, 403, 403, 403, 403, 403}},
		{method: "POST", path: "/api/plugins/publish?owner=builtin", archive: code, want: [6]int{401, 403, 403, 403, 403, 403}},
		{method: "POST", path: "/api/plugins/publish?owner=v2", archive: code, want: [6]int{401, 403, 403, 403, 403, 403}},
		{method: "GET", path: "/api/plugins/alice/base", want: signedIn},
		{method: "GET", path: "/api/plugins/alice/base/package", want: signedIn},
		{method: "PATCH", path: "/api/plugins/alice/base", body: `{"enabled":true}`, want: onlyAdmin},
		{method: "GET", path: "/api/extensions?source=user", want: signedIn},
		{method: "GET", path: "/api/plugin-activations/playbook", want: signedIn},
		{method: "PUT", path: "/api/plugin-activations/playbook", body: `{"expected_generation":0,"reference":null}`, want: onlyAdmin},

		{method: "GET", path: "/api/recipes", want: signedIn},
		{method: "GET", path: "/api/cluster/status", want: signedIn},
		{method: "GET", path: "/api/usage/mine", want: signedIn},
		{method: "GET", path: "/api/trust", want: signedIn},
		// Who may not is told so before what was sent is looked at.
		{method: "POST", path: "/api/admin/users", body: `nonsense`, want: [6]int{401, 403, 403, 403, 403, 422}},
		{method: "PUT", path: "/api/admin/catalog/sf", body: `nonsense`, want: [6]int{401, 403, 403, 403, 403, 422}},
		{method: "PATCH", path: "/api/plugins/alice/base", body: `nonsense`, want: [6]int{401, 403, 403, 403, 403, 422}},
		{method: "POST", path: "/api/jobs", body: `nonsense`, want: [6]int{401, 403, 403, 422, 422, 422}},
		{method: "POST", path: "/api/admission", body: forge, want: writes},
		{method: "POST", path: "/api/jobs", body: forge, want: writes},
		{method: "GET", path: "/api/jobs/mine", want: signedIn},
		{method: "GET", path: "/api/jobs/{x}", before: job, want: [6]int{401, 404, 200, 200, 404, 200}},
		{method: "GET", path: "/api/jobs/{x}/spec", before: job, want: [6]int{401, 404, 200, 200, 404, 200}},
		{method: "GET", path: "/api/jobs/{x}/receipt", before: job, want: [6]int{401, 404, 200, 200, 404, 200}},
		{method: "POST", path: "/api/job/stop?id={x}", before: job, want: [6]int{401, 403, 403, 200, 404, 200}},
		{method: "POST", path: "/api/submissions/uploads", body: `{"digest":"` + strings.Repeat("0", 64) + `","size":1}`, want: [6]int{401, 403, 403, 201, 201, 201}},
		{method: "PUT", path: "/api/submissions/uploads/{x}", before: packageUpload, body: "package", want: [6]int{401, 403, 403, 403, 404, 404}},
		{method: "POST", path: "/api/submissions/previews", body: previewBody(tune), want: writes},
		{method: "POST", path: "/api/submissions/commits", body: "{x}", want: [6]int{401, 403, 403, 200, 404, 404},
			before: func(g *gatehouse, n string) string {
				p := g.previewed("alice", tune)
				return fmt.Sprintf(`{"preview_id":%q,"digest":%q,"key":%q}`, p.ID, p.Digest, n)
			}},

		{method: "GET", path: "/v2/", want: signedIn},
		{method: "HEAD", path: "/v2/", want: signedIn},
		{method: "GET", path: "/v2/_catalog", want: signedIn},
		{method: "GET", path: "/v2/alice/base/tags/list", want: signedIn},
		{method: "GET", path: "/v2/alice/base/manifests/1.0.0", want: signedIn},
		{method: "HEAD", path: "/v2/alice/base/manifests/1.0.0", want: signedIn},
		{method: "GET", path: "/v2/alice/base/referrers/" + base.ManifestDigest, want: signedIn},
		{method: "GET", path: "/v2/alice/images/blobs/{x}", before: blobThere, want: signedIn},
		{method: "HEAD", path: "/v2/alice/images/blobs/{x}", before: blobThere, want: signedIn},
		{method: "POST", path: "/v2/alice/new/blobs/uploads/", want: ownNamespace(202)},
		{method: "POST", path: "/v2/alice/new/blobs/uploads/?digest=" + emptyBlob, body: "{}", want: ownNamespace(201)},
		{method: "POST", path: "/v2/alice/new/blobs/uploads/?from=alice/images&mount={x}", before: blobThere, want: ownNamespace(201)},
		{method: "POST", path: "/v2/tuneplane/new/blobs/uploads/", want: [6]int{401, 403, 403, 403, 403, 202}},
		{method: "GET", path: "/v2/alice/new/blobs/uploads/{x}", before: upload, want: [6]int{401, 403, 403, 204, 403, 404}},
		{method: "PATCH", path: "/v2/alice/new/blobs/uploads/{x}", before: upload, body: "bytes", want: [6]int{401, 403, 403, 202, 403, 404}},
		{method: "PUT", path: "/v2/alice/new/blobs/uploads/{x}?digest=" + emptyBlob, before: upload, body: "{}", want: [6]int{401, 403, 403, 201, 403, 404}},
		{method: "DELETE", path: "/v2/alice/new/blobs/uploads/{x}", before: upload, want: [6]int{401, 403, 403, 204, 403, 404}},
		{method: "PUT", path: "/v2/alice/images/manifests/new{n}", before: imageThere, body: image, header: "Content-Type: " + imageManifest, want: ownNamespace(201)},
		{method: "DELETE", path: "/v2/alice/images/manifests/v{n}", before: imageThere, want: ownNamespace(202)},
		{method: "DELETE", path: "/v2/alice/images/manifests/{x}", before: imageThere, want: ownNamespace(202)},
		{method: "DELETE", path: "/v2/alice/base/manifests/1.0.0", want: ownNamespace(405)},
		{method: "DELETE", path: "/v2/alice/base/manifests/" + base.ManifestDigest, want: ownNamespace(405)},
		{method: "DELETE", path: "/v2/alice/images/blobs/{x}", before: blobThere, want: ownNamespace(202)},
	}
}

// snapshot is the default release of sf as an administrator imports it.
func snapshot(g *gatehouse, _ string) string {
	var answer struct{ Recipes json.RawMessage }
	g.get("admin", "/sf/api/recipes").want(g.tb, http.StatusOK).into(g.tb, &answer)
	return `{"recipes":` + string(answer.Recipes) + `,"bundled_plugins":[]}`
}

func tokenOfAlice(g *gatehouse, _ string) string {
	var t wire.Token
	g.send("alice", http.MethodPost, "/api/tokens", map[string]string{}).want(g.tb, http.StatusCreated).into(g.tb, &t)
	return t.ID
}

func packageUpload(g *gatehouse, _ string) string {
	var u struct{ ID string }
	g.send("alice", http.MethodPost, "/api/submissions/uploads", map[string]any{"digest": digest.FromBytes([]byte("package")).Hex(), "size": 7}).want(g.tb, http.StatusCreated).into(g.tb, &u)
	return u.ID
}

// cell makes the request of a line for one caller.
func (a access) cell(g *gatehouse, as, n string) call {
	x := ""
	if a.before != nil {
		x = a.before(g, n)
	}
	fill := strings.NewReplacer("{n}", n, "{x}", x).Replace
	c := call{as: as, method: a.method, path: fill(a.path), body: []byte(fill(a.body)), header: map[string]string{}}
	if a.archive != nil {
		c.body = archiveOf(g.tb, a.archive(n))
	}
	if name, value, ok := strings.Cut(fill(a.header), ": "); ok {
		c.header[name] = value
	}
	return c
}

// TestAccess walks the table whole (invariant 9).
func TestAccess(t *testing.T) {
	g := startGatehouse(t)
	base := g.published("alice", algorithm("base", "1.0.0"))
	table := accessTable(g, base)
	covered(t, table)
	n := 0
	for _, line := range table {
		for i, as := range callers {
			n++
			c := line.cell(g, as, fmt.Sprint(n))
			r := g.do(c)
			if r.status != line.want[i] {
				t.Errorf("%s %s as %q: status %d, want %d: %.300s", c.method, c.path, as, r.status, line.want[i], r.body)
			}
			if r.status >= 400 && c.method != http.MethodHead {
				if _, err := refusalOf(c.path, r); err != nil {
					t.Errorf("%s %s as %q: %v", c.method, c.path, as, err)
				}
			}
			if r.status == http.StatusUnauthorized && r.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s: 401 without a challenge", c.method, c.path)
			}
		}
	}
	t.Logf("%d requests of %d lines", n, len(table))
}

// covered requires that the table has every route of the list.
func covered(t *testing.T, table []access) {
	t.Helper()
	parameter := regexp.MustCompile(`:\w+`)
	for _, r := range server.Routes() {
		pattern := regexp.MustCompile("^" + parameter.ReplaceAllString(r.Path, "[^/]+") + "$")
		if !slices.ContainsFunc(table, func(a access) bool {
			path, _, _ := strings.Cut(a.path, "?")
			return a.method == r.Method && pattern.MatchString(path)
		}) {
			t.Errorf("%s %s is not in the access table", r.Method, r.Path)
		}
	}
}

// TestDeadCredentials walks the table with credentials that are none any more: nothing but what is open to everybody
// answers.
func TestDeadCredentials(t *testing.T) {
	g := startGatehouse(t)
	base := g.published("alice", algorithm("base", "1.0.0"))
	table := accessTable(g, base)
	dead := deadTokens(g)
	for what, secret := range dead {
		for i, line := range table {
			c := line.cell(g, "admin", fmt.Sprint(what, i))
			c.token = secret
			want := http.StatusUnauthorized
			if line.want[0] == http.StatusOK {
				want = http.StatusOK
			}
			if r := g.do(c); r.status != want {
				t.Errorf("%s token: %s %s: status %d, want %d: %.200s", what, c.method, c.path, r.status, want, r.body)
			}
		}
	}
}

// deadTokens are secrets that once signed in, or never did.
func deadTokens(g *gatehouse) map[string]string {
	g.tb.Helper()
	mint := func(as, account string, ttl int) wire.Token {
		var t wire.Token
		g.send(as, http.MethodPost, "/api/tokens", wire.NewToken{Account: account, ExpiresIn: int64(ttl)}).want(g.tb, http.StatusCreated).into(g.tb, &t)
		return t
	}
	g.addAccount("gone", "admin")
	expired, revoked, disabled := mint("alice", "", 60), mint("alice", "", 0), g.tokens["gone"]
	g.do(call{as: "x", token: revoked.Secret, method: http.MethodGet, path: "/api/whoami"}).want(g.tb, http.StatusOK)
	g.do(call{as: "alice", method: http.MethodDelete, path: "/api/tokens/" + revoked.ID}).want(g.tb, http.StatusNoContent)
	g.do(call{as: "x", token: disabled, method: http.MethodGet, path: "/api/admin/users"}).want(g.tb, http.StatusOK)
	g.do(call{as: "admin", method: http.MethodPatch, path: "/api/admin/users/gone/disabled?disabled=true"}).want(g.tb, http.StatusOK)
	g.ahead.Add(int64(time.Minute + time.Second))
	return map[string]string{"expired": expired.Secret, "revoked": revoked.Secret, "disabled": disabled, "unknown": "ghs_unknown", "long": strings.Repeat("x", 100_000)}
}

// TestCredentialForms are the forms in which somebody may sign in, and what is none.
func TestCredentialForms(t *testing.T) {
	g := startGatehouse(t)
	secret := g.tokens["alice"]
	try := func(path, authorization string) int {
		return g.do(call{method: http.MethodGet, path: path, header: map[string]string{"Authorization": authorization}}).status
	}
	basic := func(user, password string) string {
		r, _ := http.NewRequest(http.MethodGet, "/", nil)
		r.SetBasicAuth(user, password)
		return r.Header.Get("Authorization")
	}
	for _, path := range []string{"/api/whoami", "/v2/"} {
		for form, want := range map[string]int{
			"Bearer " + secret: 200, "bearer " + secret: 200, basic("alice", secret): 200,
			basic("bob", secret): 401, basic("", secret): 401, basic("alice", ""): 401, "Bearer": 401, "Bearer ": 401, "Basic !!": 401,
			secret: 401, "Digest x": 401, "Bearer " + secret + "x": 401, "Bearer \xff\xfe": 401,
		} {
			if got := try(path, form); got != want {
				t.Errorf("%s with %.20q: status %d, want %d", path, form, got, want)
			}
		}
	}
}

// TestNoWayRoundSignIn asks for every route by other spellings of its path without credentials.
func TestNoWayRoundSignIn(t *testing.T) {
	g := startGatehouse(t)
	for _, r := range append(server.Routes(), server.Route{Method: "GET", Path: "/v2/_catalog"}, server.Route{Method: "GET", Path: "/v2/"}) {
		path := regexp.MustCompile(`:\w+`).ReplaceAllString(r.Path, "x")
		if path == "/api/version" {
			continue
		}
		for _, spelling := range []string{
			path, path + "/", "/" + path, "/." + path, "/x/.." + path, "/api/version/.." + path, "/sf" + path, "/sf@1" + path, "/tp" + path,
			"/sf%2Fzzz" + path, "/sf%2F" + path, "/sf%2fapi%2Fversion" + path, "/sf@%2Fx" + path, "/%73f" + path, "/sf/sf" + path, "/sf/" + path, "/sf;" + path,
			strings.Replace(path, "/a", "/%61", 1), strings.Replace(path, "/v2", "/%762", 1), strings.ToUpper(path), path + "%00", path + "?%zz", path + "%2f", "/healthz" + path, "/healthz/.." + path,
		} {
			c := call{method: r.Method, path: spelling}
			got, err := g.try(c)
			if err != nil {
				t.Fatal(err)
			}
			if got.status < 400 && got.status != http.StatusMovedPermanently || bytes.Contains(got.body, []byte("profiles")) {
				t.Errorf("%s %s: status %d: %.200s", r.Method, spelling, got.status, got.body)
			}
		}
	}
}
