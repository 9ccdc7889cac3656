package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// bearerAnswer is what the token endpoint says.
type bearerAnswer struct {
	Token       string `json:"token"`
	AccessToken string `json:"access_token"`
	ExpiresIn   int    `json:"expires_in"`
	IssuedAt    string `json:"issued_at"`
	Refresh     string `json:"refresh_token"`
	Scope       string `json:"scope"`
	Account     string `json:"account"`
}

// basic is a header that signs in.
func basic(user, secret string) map[string]string {
	r, _ := http.NewRequest(http.MethodGet, "/", nil)
	r.SetBasicAuth(user, secret)
	return map[string]string{"Authorization": r.Header.Get("Authorization")}
}

// bearerFor asks the token endpoint as an account; "" asks as nobody.
func (g *gatehouse) bearerFor(as string, scopes ...string) bearerAnswer {
	g.tb.Helper()
	c := call{method: http.MethodGet, path: "/v2/token?" + url.Values{"service": {"x"}, "scope": scopes}.Encode()}
	if as != "" {
		c.header = basic(as, g.tokens[as])
	}
	var a bearerAnswer
	g.do(c).want(g.tb, http.StatusOK).into(g.tb, &a)
	return a
}

// with makes a request with a bearer token.
func (g *gatehouse) with(token, method, path string) reply {
	g.tb.Helper()
	return g.do(call{method: method, path: path, header: map[string]string{"Authorization": "Bearer " + token}})
}

// image pushes an image without layers as its owner and gives its digest.
func (g *gatehouse) image(as, repository, tag string) string {
	g.tb.Helper()
	g.pushBlob(as, repository, []byte("{}"))
	m := corpusFile(g.tb, "m01-empty-layers.json")
	g.putManifest(as, repository, tag, imageManifest, m).want(g.tb, http.StatusCreated)
	return digest.FromBytes(m).String()
}

// private makes a repository private.
func (g *gatehouse) private(as, repository string, readers ...string) {
	g.tb.Helper()
	yes, list := true, append([]string{}, readers...)
	g.send(as, http.MethodPatch, "/api/repositories/"+repository, wire.RepositoryAccess{Private: &yes, Readers: &list}).want(g.tb, http.StatusOK)
}

// robot makes a robot of an account and keeps its secret among the tokens.
func (g *gatehouse) robot(owner, name string, scopes ...auth.Scope) string {
	g.tb.Helper()
	var r wire.Robot
	g.send(owner, http.MethodPost, "/api/robots", wire.NewRobot{Name: name, Scopes: scopes, ExpiresIn: 3600}).want(g.tb, http.StatusCreated).into(g.tb, &r)
	g.tokens[r.Name] = r.Secret
	return r.Name
}

func scope(pattern string, verbs ...auth.Verb) auth.Scope {
	return auth.Scope{Repository: pattern, Actions: verbs}
}

// TestChallenge is what a client without credentials hears.
func TestChallenge(t *testing.T) {
	g := startGatehouse(t)
	service := g.server.Service().Settings().RegistryID
	for path, scope := range map[string]string{
		"/v2/":                         "",
		"/v2/_catalog":                 `,scope="registry:catalog:*"`,
		"/v2/alice/x/manifests/latest": `,scope="repository:alice/x:pull"`,
		"/v2/alice/x/tags/list":        `,scope="repository:alice/x:pull"`,
	} {
		want := `Bearer realm="` + g.url + `/v2/token",service="` + service + `"` + scope
		r := g.do(call{method: http.MethodGet, path: path, header: map[string]string{"Host": "evil.example"}}).want(t, http.StatusUnauthorized)
		if got := r.header.Get("WWW-Authenticate"); got != want {
			t.Errorf("%s: challenge %s, want %s", path, got, want)
		}
	}
	r := g.do(call{method: http.MethodPost, path: "/v2/alice/x/blobs/uploads/?mount=" + digest.FromBytes(nil).String() + "&from=bob/y"})
	if got := r.header.Get("WWW-Authenticate"); !strings.HasSuffix(got, `,scope="repository:alice/x:pull,push repository:bob/y:pull"`) {
		t.Errorf("mount: challenge %s", got)
	}
	if got := g.do(call{method: http.MethodGet, path: "/api/whoami"}).header.Get("WWW-Authenticate"); got != `Bearer realm="Gatehouse"` {
		t.Errorf("/api: challenge %s", got)
	}
}

func TestChallengeAtAnyAddress(t *testing.T) {
	g := startGatehouse(t, func(s *setup) { s.config.Listen, s.config.InsecureHTTP = "0.0.0.0:0", true })
	_, port, _ := strings.Cut(strings.TrimPrefix(g.url, "http://"), "]:")
	if port == "" {
		_, port, _ = strings.Cut(strings.TrimPrefix(g.url, "http://"), ":")
	}
	g.url = "http://127.0.0.1:" + port
	if got := g.do(call{method: http.MethodGet, path: "/v2/"}).header.Get("WWW-Authenticate"); got != `Basic realm="Gatehouse"` {
		t.Errorf("challenge %s, want Basic: nobody knows the address", got)
	}
}

// TestBearerScopes holds a bearer token to what it was made for, and gives no more than is allowed.
func TestBearerScopes(t *testing.T) {
	g := startGatehouse(t)
	g.image("alice", "alice/x", "v1")
	g.image("bob", "bob/y", "v1")

	a := g.bearerFor("alice", "repository:alice/x:pull,push", "repository:bob/y:pull,push,delete repository:bob/y:*", "nonsense", "registry:catalog:*")
	if a.Token == "" || a.Token != a.AccessToken || a.ExpiresIn != 300 || a.IssuedAt == "" || a.Refresh != "" {
		t.Errorf("answer %+v", a)
	}
	if want := "repository:alice/x:pull,push repository:bob/y:pull registry:catalog:*"; a.Scope != want {
		t.Errorf("granted %q, want %q", a.Scope, want)
	}
	for path, want := range map[string]int{
		"/v2/": 200, "/v2/alice/x/manifests/v1": 200, "/v2/bob/y/manifests/v1": 200, "/v2/_catalog": 200,
		"/v2/alice/other/manifests/v1": 401, "/api/whoami": 401, "/api/plugins": 401, "/api/tokens": 401,
	} {
		r := g.with(a.Token, http.MethodGet, path)
		if r.status != want {
			t.Errorf("%s: status %d, want %d: %s", path, r.status, want, r.body)
		}
		if path == "/v2/alice/other/manifests/v1" && !strings.HasSuffix(r.header.Get("WWW-Authenticate"), `scope="repository:alice/other:pull",error="insufficient_scope"`) {
			t.Errorf("challenge %s", r.header.Get("WWW-Authenticate"))
		}
	}
	if r := g.with(a.Token, http.MethodPost, "/v2/alice/x/blobs/uploads/"); r.status != http.StatusAccepted {
		t.Errorf("push within the scope: status %d", r.status)
	}
	if r := g.with(a.Token, http.MethodDelete, "/v2/alice/x/manifests/v1"); r.status != http.StatusUnauthorized {
		t.Errorf("delete without its scope: status %d", r.status)
	}
	// What the account itself may not do is no question of scopes.
	if r := g.with(a.Token, http.MethodPost, "/v2/bob/y/blobs/uploads/"); r.status != http.StatusForbidden {
		t.Errorf("push to another's: status %d", r.status)
	}
	none := g.bearerFor("alice")
	if r := g.with(none.Token, http.MethodGet, "/v2/"); r.status != http.StatusOK {
		t.Errorf("/v2/ with a token for nothing: status %d", r.status)
	}
	if r := g.with(none.Token, http.MethodGet, "/v2/_catalog"); r.status != http.StatusUnauthorized {
		t.Errorf("catalogue without its scope: status %d", r.status)
	}
	nobody := g.bearerFor("", "repository:alice/x:pull")
	if nobody.Scope != "" {
		t.Errorf("nobody was granted %q", nobody.Scope)
	}
	if r := g.with(nobody.Token, http.MethodGet, "/v2/"); r.status != http.StatusUnauthorized {
		t.Errorf("/v2/ as nobody with a bearer token: status %d", r.status)
	}
}

// TestBearerDies ends the account or the credential below a bearer and a refresh token.
func TestBearerDies(t *testing.T) {
	g := startGatehouse(t)
	g.image("alice", "alice/x", "v1")
	for name, end := range map[string]func(*gatehouse, wire.Token, string){
		"revoked": func(g *gatehouse, k wire.Token, account string) {
			g.do(call{as: account, method: http.MethodDelete, path: "/api/tokens/" + k.ID}).want(t, http.StatusNoContent)
		},
		"disabled": func(g *gatehouse, _ wire.Token, account string) {
			g.do(call{as: "admin", method: http.MethodPatch, path: "/api/admin/users/" + account + "/disabled?disabled=true"}).want(t, http.StatusOK)
		},
	} {
		account := "gone-" + name
		g.addAccount(account, auth.Operator)
		var k wire.Token
		g.send(account, http.MethodPost, "/api/tokens", wire.NewToken{}).want(t, http.StatusCreated).into(t, &k)
		var a, again bearerAnswer
		g.do(call{method: http.MethodGet, path: "/v2/token?offline_token=true&scope=repository:alice/x:pull", header: basic(account, k.Secret)}).want(t, http.StatusOK).into(t, &a)
		refresh := func() reply {
			form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {a.Refresh}, "scope": {"repository:alice/x:pull"}, "service": {"x"}}
			return g.do(call{method: http.MethodPost, path: "/v2/token", body: []byte(form.Encode()), header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
		}
		refresh().want(t, http.StatusOK).into(t, &again)
		for _, token := range []string{a.Token, again.Token} {
			g.with(token, http.MethodGet, "/v2/alice/x/manifests/v1").want(t, http.StatusOK)
		}
		end(g, k, account)
		for _, token := range []string{a.Token, again.Token} {
			r := g.with(token, http.MethodGet, "/v2/alice/x/manifests/v1").want(t, http.StatusUnauthorized)
			if !strings.HasSuffix(r.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
				t.Errorf("%s: challenge %s", name, r.header.Get("WWW-Authenticate"))
			}
		}
		refresh().want(t, http.StatusUnauthorized)
	}
	a := g.bearerFor("alice", "repository:alice/x:pull")
	g.ahead.Add(int64(5*time.Minute + time.Second))
	g.with(a.Token, http.MethodGet, "/v2/alice/x/manifests/v1").want(t, http.StatusUnauthorized)
}

// TestBearerForgeries are tokens that are none.
func TestBearerForgeries(t *testing.T) {
	g := startGatehouse(t)
	a := g.bearerFor("alice", "repository:alice/x:pull")
	head, rest, _ := strings.Cut(a.Token, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	none := "eyJhbGciOiJub25lIn0" // {"alg":"none"}
	for what, token := range map[string]string{
		"alg none": none + "." + payload + ".", "alg none with a signature": none + "." + payload + "." + signature,
		"another payload": head + ".eyJ1c2UiOiJhY2Nlc3MifQ." + signature, "no signature": head + "." + payload + ".",
		"a long one": head + "." + strings.Repeat("A", 1<<15) + "." + signature, "two dots": "eyJ..",
	} {
		if r := g.with(token, http.MethodGet, "/v2/"); r.status != http.StatusUnauthorized {
			t.Errorf("%s: status %d", what, r.status)
		}
	}
	other := startGatehouse(t)
	if r := other.with(a.Token, http.MethodGet, "/v2/"); r.status != http.StatusUnauthorized {
		t.Errorf("a token of another registry: status %d", r.status)
	}
	// A refresh token is no access token, and the other way about.
	var offline bearerAnswer
	g.do(call{method: http.MethodGet, path: "/v2/token?offline_token=true", header: basic("alice", g.tokens["alice"])}).want(t, http.StatusOK).into(t, &offline)
	g.with(offline.Refresh, http.MethodGet, "/v2/").want(t, http.StatusUnauthorized)
	g.do(call{method: http.MethodGet, path: "/v2/token", header: basic("alice", a.Token)}).want(t, http.StatusUnauthorized)
	g.do(call{method: http.MethodGet, path: "/v2/token", header: basic("alice", offline.Refresh)}).want(t, http.StatusOK)
	g.do(call{method: http.MethodGet, path: "/v2/token", header: basic("bob", offline.Refresh)}).want(t, http.StatusUnauthorized)
}

func TestTokenEndpointRefusals(t *testing.T) {
	g := startGatehouse(t)
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	for _, tt := range []struct {
		what string
		c    call
		want int
	}{
		{"unknown grant", call{method: http.MethodPost, path: "/v2/token", header: form, body: []byte("grant_type=x")}, 422},
		{"large form", call{method: http.MethodPost, path: "/v2/token", header: form, body: []byte("grant_type=password&x=" + strings.Repeat("a", 1<<17))}, 422},
		{"many scopes", call{method: http.MethodGet, path: "/v2/token?scope=" + strings.Repeat("repository:a:pull+", 65)}, 422},
		{"no method", call{method: http.MethodDelete, path: "/v2/token"}, 405},
		{"bearer", call{method: http.MethodGet, path: "/v2/token", header: map[string]string{"Authorization": "Bearer x"}}, 401},
		{"exchange without issuers", call{method: http.MethodPost, path: "/v2/token", header: form, body: []byte("grant_type=" + url.QueryEscape("urn:ietf:params:oauth:grant-type:token-exchange"))}, 403},
		{"refresh with nothing", call{method: http.MethodPost, path: "/v2/token", header: form, body: []byte("grant_type=refresh_token")}, 401},
	} {
		r := g.do(tt.c)
		if r.status != tt.want || !json.Valid(r.body) {
			t.Errorf("%s: status %d, want %d: %.200s", tt.what, r.status, tt.want, r.body)
		}
	}
}

// TestPasswords signs in with a password where that is possible, and counts those that are wrong.
func TestPasswords(t *testing.T) {
	var ahead atomic.Int64 // the clock stands still otherwise: hashing takes time on a busy machine
	start := time.Now()
	g := startGatehouse(t, func(s *setup) {
		s.change = func(d *registry.Deps) { d.Now = func() time.Time { return start.Add(time.Duration(ahead.Load())) } }
	})
	g.send("admin", http.MethodPost, "/api/admin/users", wire.NewUser{Username: "pia", Password: "correct horse"}).want(t, http.StatusCreated)
	try := func(account, password string) reply {
		return g.do(call{method: http.MethodGet, path: "/v2/token?scope=repository:pia/x:push", header: basic(account, password)})
	}
	var a bearerAnswer
	try("pia", "correct horse").want(t, http.StatusOK).into(t, &a)
	if a.Scope != "repository:pia/x:push" {
		t.Errorf("granted %q", a.Scope)
	}
	g.with(a.Token, http.MethodPost, "/v2/pia/x/blobs/uploads/").want(t, http.StatusAccepted)
	g.do(call{method: http.MethodGet, path: "/v2/", header: basic("pia", "correct horse")}).want(t, http.StatusUnauthorized)

	wrong, unknown := try("pia", "wrong horse").want(t, http.StatusUnauthorized), try("nobody", "wrong horse").want(t, http.StatusUnauthorized)
	if string(withoutID(wrong.body)) != string(withoutID(unknown.body)) {
		t.Errorf("a wrong password answers %s, an unknown account %s", wrong.body, unknown.body)
	}
	locked := func() (retry string) {
		for range 12 {
			if r := try("pia", "wrong horse"); r.status == http.StatusTooManyRequests {
				return r.header.Get("Retry-After")
			}
		}
		return ""
	}
	if retry := locked(); retry != "1" {
		t.Fatalf("Retry-After %q after many wrong passwords, want 1", retry)
	}
	if r := try("pia", "correct horse"); r.status != http.StatusTooManyRequests {
		t.Errorf("the right password while locked: status %d", r.status)
	}
	secret, _, err := g.server.Service().CreateToken(t.Context(), auth.Principal{Account: "admin", Role: auth.Admin}, "pia", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	try("pia", secret).want(t, http.StatusOK) // nobody is locked out of a token
	ahead.Add(int64(time.Second))
	if retry := locked(); retry != "2" {
		t.Errorf("Retry-After %q the second time, want 2", retry)
	}
	ahead.Add(int64(2 * time.Second))
	try("pia", "correct horse").want(t, http.StatusOK)
	try("pia", "wrong horse").want(t, http.StatusUnauthorized) // the count began anew
	try("pia", "correct horse").want(t, http.StatusOK)
}

// withoutID takes the request's id out of an answer.
func withoutID(body []byte) []byte {
	var v map[string]any
	if json.Unmarshal(body, &v) != nil {
		return body
	}
	delete(v, "requestId")
	if list, ok := v["errors"].([]any); ok {
		for _, e := range list {
			if m, ok := e.(map[string]any); ok {
				delete(m, "requestId")
			}
		}
	}
	out, _ := json.Marshal(v)
	return out
}

// TestRefusalsAreRecorded counts what a flood of wrong tokens leaves in the log.
func TestRefusalsAreRecorded(t *testing.T) {
	now := time.Now()
	g := startGatehouse(t, func(s *setup) { s.change = func(d *registry.Deps) { d.Now = func() time.Time { return now } } })
	for range 50 {
		g.with("ghs_wrong", http.MethodGet, "/v2/").want(t, http.StatusUnauthorized)
	}
	g.do(call{as: "bob", method: http.MethodPost, path: "/v2/alice/x/blobs/uploads/"}).want(t, http.StatusForbidden)
	count := func() (rows []registry.AuditRow) {
		all, err := g.server.Service().Audit(t.Context(), auth.Principal{Account: "admin", Role: auth.Admin}, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range all {
			if row.Outcome != "ok" {
				rows = append(rows, row)
			}
		}
		return rows
	}
	rows := count()
	if len(rows) != 21 {
		t.Fatalf("%d rows of 51 refusals, want 20 of nobody and 1 of bob", len(rows))
	}
	last := rows[20]
	if last.Account != "bob" || last.Subject != "alice/x" || last.Outcome != "DENIED" || last.Remote != "127.0.0.1" || last.Request == "" {
		t.Errorf("row of bob: %+v", last)
	}
	g.server.Service().SettleRefusals(t.Context(), true)
	if rows = count(); len(rows) != 22 || !strings.HasPrefix(rows[21].Detail, "and 30 more since ") {
		t.Errorf("after the minute: %+v", rows[len(rows)-1])
	}
}
