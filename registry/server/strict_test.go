package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// TestMisspelledMembers sends bodies that grant, limit or keep something, with a member misspelled: each is refused by name, since
// without that member it would mean public, without a limit, for ever, or really removed.
func TestMisspelledMembers(t *testing.T) {
	g := startGatehouse(t)
	for _, c := range []struct{ as, method, path, body, names string }{
		{"alice", http.MethodPatch, "/api/repositories/alice/app", `{"privat":true}`, "privat"},
		{"alice", http.MethodPost, "/api/tokens", `{"label":"x","expires":60}`, "expires"},
		{"alice", http.MethodPost, "/api/robots", `{"name":"x","scopes":[{"repository":"alice/**","actions":["pull"],"tags":"v*"}],"expires_in":60}`, "tags"},
		{"admin", http.MethodPut, "/api/admin/owners/alice/quota", `{"byte":5}`, "byte"},
		{"admin", http.MethodPut, "/api/admin/namespaces", `{"pattern":"x/*","owner":"alice","until":"2030-01-01"}`, "until"},
		{"admin", http.MethodPut, "/api/admin/read-only", `{"readonly":true}`, "readonly"},
		{"admin", http.MethodPost, "/api/gc", `{"dryRun":true}`, "dryRun"},
		{"admin", http.MethodPost, "/api/admin/fsck", `{"repair_from":"/x"}`, "repair_from"},
	} {
		r := g.do(call{as: c.as, method: c.method, path: c.path, body: []byte(c.body)})
		if r.status != http.StatusUnprocessableEntity || !strings.Contains(string(r.body), c.names) {
			t.Errorf("%s %s %s: status %d: %s, want 422 that names %s", c.method, c.path, c.body, r.status, r.body, c.names)
		}
	}
	var tokens wire.TokenList
	g.get("alice", "/api/tokens").want(t, http.StatusOK).into(t, &tokens)
	for _, token := range tokens.Tokens {
		if token.Label == "x" {
			t.Errorf("a refused request made token %s", token.ID)
		}
	}
}
