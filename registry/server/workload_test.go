package server_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// documents are identity documents and what they say, for tests of what follows once one is verified. Package oidc tests the
// verification, against an issuer that runs.
type documents map[string]registry.Workload

func (d documents) Verify(_ context.Context, document string) (registry.Workload, error) {
	switch w, ok := d[document]; {
	case document == "down":
		return w, &registry.Error{Code: registry.Unavailable}
	case !ok:
		return w, registry.Errorf(registry.Unauthorized, "no such document")
	default:
		return w, nil
	}
}

func workload(issuer, sub string) registry.Workload {
	return registry.Workload{Issuer: issuer, Claims: map[string]any{"sub": sub, "env": []any{"test", "prod"}, "admin": true}}
}

// TestWorkloadExchange turns documents into a robot's token by the first rule that fits.
func TestWorkloadExchange(t *testing.T) {
	const issuer = "https://ci.example"
	g := startGatehouse(t, func(s *setup) {
		s.config = configured(t, s.config, `
workload_identity:
- issuer: https://ci.example
  audience: https://registry.example
  rules:
  - {claims: {sub: "repo:team/*:ref:refs/heads/main", env: prod}, robot: alice+ci, ttl: 10m}
  - {claims: {sub: "repo:lost/x", admin: "true"}, robot: alice+gone}
- issuer: https://other.example
  audience: https://registry.example
  rules:
  - {claims: {sub: other}, robot: alice+ci}
`)
		s.change = func(d *registry.Deps) {
			d.Workloads = documents{
				"main": workload(issuer, "repo:team/x:ref:refs/heads/main"), "branch": workload(issuer, "repo:team/x:ref:refs/heads/dev"),
				"lost": workload(issuer, "repo:lost/x"), "other": workload(issuer, "other"),
			}
		}
	})
	g.image("alice", "alice/app", "v1")
	g.robot("alice", "ci", scope("alice/app", auth.Pull))
	exchange := func(document string) reply {
		form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {document}, "subject_token_type": {"urn:ietf:params:oauth:token-type:jwt"}}
		return g.do(call{method: http.MethodPost, path: "/v2/token", body: []byte(form.Encode()), header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}})
	}
	var a bearerAnswer
	exchange("main").want(t, http.StatusOK).into(t, &a)
	if a.Account != "alice+ci" || a.ExpiresIn != 600 {
		t.Errorf("answer %+v", a)
	}
	for document, want := range map[string]int{"branch": 403, "lost": 403, "other": 403, "": 401, "nonsense": 401, "down": 503} {
		if r := exchange(document); r.status != want {
			t.Errorf("document %q: status %d, want %d: %s", document, r.status, want, r.body)
		}
	}
	// The token is one of the robot: as a password, as a bearer, for the token endpoint, within its scopes.
	g.tokens["alice+ci"] = a.Token
	g.get("alice+ci", "/v2/alice/app/manifests/v1").want(t, http.StatusOK)
	g.with(a.Token, http.MethodGet, "/v2/alice/app/manifests/v1").want(t, http.StatusOK)
	g.get("alice+ci", "/v2/bob/app/manifests/v1").want(t, http.StatusForbidden)
	if got := g.bearerFor("alice+ci", "repository:alice/app:pull,push").Scope; got != "repository:alice/app:pull" {
		t.Errorf("granted %q", got)
	}
	rows, err := g.server.Service().Audit(t.Context(), auth.Principal{Account: "admin", Role: auth.Admin}, 0)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]int{}
	for _, row := range rows {
		if row.Action == "token.exchange" {
			outcomes[row.Outcome]++
			if row.Outcome == "ok" && (row.Account != "alice+ci" || !strings.Contains(row.Detail, "repo:team/x:ref:refs/heads/main at "+issuer)) {
				t.Errorf("row %+v", row)
			}
		}
	}
	if outcomes["ok"] != 1 || outcomes["DENIED"] != 3 || outcomes["UNAUTHORIZED"] != 2 {
		t.Errorf("rows by outcome: %v", outcomes)
	}
	g.ahead.Add(int64(11 * 60 * 1e9))
	g.with(a.Token, http.MethodGet, "/v2/alice/app/manifests/v1").want(t, http.StatusUnauthorized)
	g.faults.take() // the issuer that is down is logged
}

// configured is a configuration with what a file adds to it.
func configured(t *testing.T, c server.Config, file string) server.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gatehouse.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := server.LoadConfig(server.Input{Flags: map[string]string{"data": c.Data, "listen": c.Listen, "config": path}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAccessConfiguration refuses what would open more than was meant.
func TestAccessConfiguration(t *testing.T) {
	for file, want := range map[string]string{
		"anonymous_read: ['a/*/b']": "anonymous_read: [0]", "anonymous_read: ['']": "anonymous_read: [0]", "robot_ttl: 0s": "robot_ttl",
		"workload_identity: [{issuer: http://x.example, audience: a}]":                                                      "not https",
		"workload_identity: [{issuer: https://x.example}]":                                                                  "audience",
		"workload_identity: [{issuer: https://x.example, audience: a}, {issuer: https://x.example, audience: a}]":           "twice",
		"workload_identity: [{issuer: https://x.example, audience: a, rules: [{claims: {sub: '*'}, robot: a+b}]}]":          "fits everything",
		"workload_identity: [{issuer: https://x.example, audience: a, rules: [{robot: a+b}]}]":                              "claims",
		"workload_identity: [{issuer: https://x.example, audience: a, rules: [{claims: {sub: x}, robot: alice}]}]":          "no robot",
		"workload_identity: [{issuer: https://x.example, audience: a, rules: [{claims: {sub: x}, robot: a+b, ttl: 13h}]}]":  "ttl",
		"workload_identity: [{issuer: https://x.example, audience: a, rules: [{claims: {sub: x}, robot: a+b, typo: 13h}]}]": "typo",
	} {
		path := filepath.Join(t.TempDir(), "gatehouse.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := server.LoadConfig(server.Input{Flags: map[string]string{"data": t.TempDir(), "config": path}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a fault with %q", file, err, want)
		}
	}
}
