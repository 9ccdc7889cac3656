package server_test

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry/api"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// TestDeadCredentials walks the matrix with credentials that are none any more: nothing but what is open to everybody
// answers.
func TestDeadCredentials(t *testing.T) {
	m := startMatrix(t)
	table, _ := readAccess(t)
	table = slices.DeleteFunc(table, func(a access) bool { return a.kind == "open" || strings.HasPrefix(a.path, "/v2/token") })
	dead := deadTokens(m.gatehouse)
	for what, secret := range dead {
		for _, a := range table {
			c, _ := m.request(a, "admin")
			c.token = secret
			want := http.StatusUnauthorized
			if a.want[0] == http.StatusOK || signsIn(a.path) {
				want = a.want[0]
			}
			if r := m.do(c); r.status != want && r.status != http.StatusTooManyRequests {
				t.Errorf("%s token: %v: status %d, want %d: %.200s", what, a, r.status, want, r.body)
			}
		}
	}
}

// signsIn reports whether a path is one that nobody has credentials for yet, or whose query holds all that it looks at.
func signsIn(path string) bool {
	return isPage(path) || strings.HasPrefix(path, api.SuiteUploads) || strings.HasPrefix(path, "/api/cli/") || strings.HasPrefix(path, "/api/auth/")
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
	left, over := g.session("alice"), g.session("alice")
	g.send("", http.MethodPost, "/api/auth/logout", wire.RefreshToken{RefreshToken: left.RefreshToken}).want(g.tb, http.StatusOK)
	g.ahead.Add(int64(time.Hour + time.Second))
	return map[string]string{"signed out": left.AccessToken, "a session's expired": over.AccessToken, "a session's refresh": over.RefreshToken, "expired": expired.Secret, "revoked": revoked.Secret, "disabled": disabled, "unknown": "ghs_unknown", "long": strings.Repeat("x", 100_000)}
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
		if path == "/api/version" || signsIn(path) {
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

// Many clients behind one address find out at once that their bearer tokens' time is over, and each is told so: only the 401
// has them fetch another. What nobody was ever given is slowed down all the same.
func TestExpiredBearersAreNoGuesses(t *testing.T) {
	g := startGatehouse(t)
	token := g.bearerFor("alice", "repository:alice/x:pull").Token
	g.ahead.Store(int64(10 * time.Minute))
	for i := range 100 {
		if r := g.with(token, http.MethodGet, "/v2/"); r.status != http.StatusUnauthorized || !strings.Contains(r.header.Get("WWW-Authenticate"), "invalid_token") {
			t.Fatalf("request %d with a token that has expired: status %d, %s", i, r.status, r.header.Get("WWW-Authenticate"))
		}
	}
	slowed := false
	for range 100 {
		slowed = slowed || g.with(token+"x", http.MethodGet, "/v2/").status == http.StatusTooManyRequests
	}
	if !slowed {
		t.Error("a hundred requests with a forged token were not slowed down")
	}
	g.with(g.bearerFor("alice", "repository:alice/x:pull").Token, http.MethodGet, "/v2/").want(t, http.StatusOK)
}
