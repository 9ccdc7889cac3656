package server_test

import (
	"net/http"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// TestSignInWhileReadOnly signs in with a password, and is refused with a wrong one, while the registry takes no changes.
func TestSignInWhileReadOnly(t *testing.T) {
	g := startGatehouse(t)
	g.image("alice", "alice/x", "v1")
	g.send("admin", http.MethodPost, "/api/admin/users", wire.NewUser{Username: "pia", Password: "correct horse"}).want(t, http.StatusCreated)
	g.send("admin", http.MethodPut, "/api/admin/read-only", wire.ReadOnly{ReadOnly: true, Reason: "moving"}).want(t, http.StatusOK)
	g.do(call{as: "alice", method: http.MethodPost, path: "/v2/alice/y/blobs/uploads/?digest=" + digest.FromBytes([]byte("{}")).String(), body: []byte("{}")}).want(t, http.StatusServiceUnavailable)
	ask := call{method: http.MethodGet, path: "/v2/token?scope=repository:alice/x:pull", header: basic("pia", "correct horse")}
	var a bearerAnswer
	g.do(ask).want(t, http.StatusOK).into(t, &a)
	g.with(a.Token, http.MethodGet, "/v2/alice/x/manifests/v1").want(t, http.StatusOK)
	ask.header = basic("pia", "wrong horse")
	g.do(ask).want(t, http.StatusUnauthorized)
	g.faults.take() // that it takes no changes is logged
}
