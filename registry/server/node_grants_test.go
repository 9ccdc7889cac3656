package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// withGrant is a request with the token of a grant.
func (g *gatehouse) withGrant(token, method, path string) reply {
	g.tb.Helper()
	return g.do(call{method: method, path: path, header: map[string]string{"Authorization": "Bearer " + token}})
}

// TestGrantIsByDigest holds that the grant for a receipt reads the bytes of one version of a pack, private or not, and neither
// another version nor anything by a tag.
func TestGrantIsByDigest(t *testing.T) {
	g := startGatehouse(t)
	old, pinnedVersion := g.published("alice", algorithm("p", "1.1.0")), g.published("alice", algorithm("p", "1.2.0"))
	g.private("alice", "alice/p")
	_, r := g.sendAs("alice", dialect.Forge, jobSpec(t, dialect.Forge, "a", pinned(pinnedVersion)))
	var made wire.Submitted
	r.want(t, http.StatusOK).into(t, &made)
	job, other := made.RunID, g.submitted("alice", jobSpec(t, dialect.Forge, "b"))
	g.node("box")
	token := g.granted(aNode, job)
	var manifest struct {
		Config struct{ Digest string }
		Layers []struct{ Digest string }
	}
	g.withGrant(token, http.MethodGet, "/v2/alice/p/manifests/"+pinnedVersion.ManifestDigest).want(t, http.StatusOK).into(t, &manifest)
	var before struct{ Layers []struct{ Digest string } }
	g.get("alice", "/v2/alice/p/manifests/"+old.ManifestDigest).want(t, http.StatusOK).into(t, &before)
	for path, want := range map[string]int{
		"/v2/alice/p/manifests/" + pinnedVersion.ManifestDigest: http.StatusOK,
		"/v2/alice/p/blobs/" + manifest.Config.Digest:           http.StatusOK,
		"/v2/alice/p/blobs/" + manifest.Layers[0].Digest:        http.StatusOK,
		"/api/jobs/" + job + "/spec":                            http.StatusOK,
		"/api/jobs/" + job + "/receipt":                         http.StatusOK,
		"/api/jobs/" + job + "/package":                         http.StatusOK,
		"/v2/alice/p/manifests/1.2.0":                           http.StatusForbidden,
		"/v2/alice/p/manifests/" + old.ManifestDigest:           http.StatusForbidden,
		"/v2/alice/p/blobs/" + before.Layers[0].Digest:          http.StatusForbidden,
		"/v2/alice/q/blobs/" + manifest.Layers[0].Digest:        http.StatusForbidden,
		"/v2/alice/p/blobs/" + pinnedVersion.ManifestDigest:     http.StatusNotFound, // it is a manifest, no blob
		"/v2/alice/p/tags/list":                                 http.StatusForbidden,
		"/v2/alice/p/referrers/" + pinnedVersion.ManifestDigest: http.StatusForbidden,
		"/v2/_catalog":                               http.StatusForbidden,
		"/api/jobs/" + job:                           http.StatusForbidden,
		"/api/jobs/" + job + "/decision":             http.StatusForbidden,
		"/api/jobs/" + other + "/spec":               http.StatusNotFound,
		"/api/plugins/alice/p/package?version=1.2.0": http.StatusForbidden,
		"/api/denylist":                              http.StatusForbidden,
		"/api/runs":                                  http.StatusForbidden,
	} {
		if r := g.withGrant(token, http.MethodGet, path); r.status != want {
			t.Errorf("%s: status %d, want %d: %.200s", path, r.status, want, r.body)
		}
	}
	for _, c := range [][2]string{{http.MethodPut, "/v2/alice/p/manifests/" + pinnedVersion.ManifestDigest}, {http.MethodDelete, "/v2/alice/p/manifests/" + pinnedVersion.ManifestDigest},
		{http.MethodPost, "/v2/alice/p/blobs/uploads/"}, {http.MethodPost, "/api/runs"}, {http.MethodPost, "/api/node/grants"}, {http.MethodPut, "/api/node/key"}} {
		if r := g.withGrant(token, c[0], c[1]); r.status != http.StatusForbidden {
			t.Errorf("%s %s: status %d, want 403", c[0], c[1], r.status)
		}
	}
	g.ahead.Store(int64(11 * time.Minute))
	g.withGrant(token, http.MethodGet, "/v2/alice/p/blobs/"+manifest.Config.Digest).want(t, http.StatusUnauthorized)
}

// TestGrantsThatAreRefused asks with receipts that give no right to anything, and holds that a grant ends with its node.
func TestGrantsThatAreRefused(t *testing.T) {
	g, job := withJob(t)
	stranger, theirs := withJob(t)
	g.node("box")
	ask := func(body []byte) reply {
		return g.do(call{as: aNode, method: http.MethodPost, path: "/api/node/grants", body: body})
	}
	ask(stranger.receipt(theirs)).want(t, http.StatusForbidden)
	ask([]byte("{}")).want(t, http.StatusUnprocessableEntity)
	good := g.receipt(job)
	ask([]byte(strings.Replace(string(good), `"sig":"`, `"sig":"AAAA`, 1))).want(t, http.StatusForbidden)

	// A job that ended is launched again for a while, one that was stopped never.
	g.send("admin", http.MethodPost, "/api/jobs/"+job+"/state", map[string]string{"state": "failed"}).want(t, http.StatusOK)
	ask(good).want(t, http.StatusOK)
	g.ahead.Store(int64(25 * time.Hour))
	ask(good).want(t, http.StatusForbidden)
	g.ahead.Store(0)
	stopped := g.submitted("alice", jobSpec(t, dialect.Forge, "c"))
	g.send("alice", http.MethodPost, "/api/job/stop?id="+stopped, nil).want(t, http.StatusOK)
	ask(g.receipt(stopped)).want(t, http.StatusForbidden)
	late := g.submitted("alice", jobSpec(t, dialect.Forge, "d"))
	envelope := g.receipt(late)
	g.ahead.Store(int64(31 * 24 * time.Hour))
	ask(envelope).want(t, http.StatusForbidden)
	g.ahead.Store(0)

	live := g.submitted("alice", jobSpec(t, dialect.Forge, "e"))
	token := g.granted(aNode, live)
	g.withGrant(token, http.MethodGet, "/api/jobs/"+live+"/spec").want(t, http.StatusOK)
	g.send("admin", http.MethodPost, "/api/nodes/box/token", nil).want(t, http.StatusOK)
	g.withGrant(token, http.MethodGet, "/api/jobs/"+live+"/spec").want(t, http.StatusUnauthorized)
	g.get(aNode, "/api/denylist").want(t, http.StatusUnauthorized)
}

// TestNodeKeys holds that keys overlap, that there are a few of them, and that a node which was removed and let in again signs
// with none of those that it had.
func TestNodeKeys(t *testing.T) {
	g, job := withJob(t)
	g.node("box")
	g.send("admin", http.MethodPost, "/api/nodes", wire.NewNode{Name: "box"}).want(t, http.StatusConflict)
	for _, name := range []string{"", "Box", "a/b", "a+b", strings.Repeat("a", 65)} {
		g.send("admin", http.MethodPost, "/api/nodes", wire.NewNode{Name: name}).want(t, http.StatusUnprocessableEntity)
	}
	first := g.joined(aNode)
	attested := func(want bool) {
		t.Helper()
		var got wire.RunReceived
		g.record(aNode, signed(t, g.predicate(job), first)).want(t, http.StatusOK).into(t, &got)
		if got.Attested != want {
			t.Errorf("the first key: attested %v, want %v", got.Attested, want)
		}
	}
	for range 3 {
		g.joined(aNode)
	}
	attested(true)
	g.joined(aNode)
	attested(false)
	var nodes wire.NodeList
	g.get("admin", "/api/nodes").want(t, http.StatusOK).into(t, &nodes)
	if len(nodes.Nodes) != 1 || len(nodes.Nodes[0].Keys) != 4 || nodes.Nodes[0].Secret != "" {
		t.Errorf("nodes: %s", jsonText(t, nodes))
	}
	text := nodes.Nodes[0].Keys[0].PublicKey
	g.send("admin", http.MethodDelete, "/api/nodes/box", nil).want(t, http.StatusNoContent)
	g.get(aNode, "/api/denylist").want(t, http.StatusUnauthorized)
	g.node("box")
	g.send(aNode, http.MethodPut, "/api/node/key", wire.NewNodeKey{PublicKey: text}).want(t, http.StatusConflict)
	g.get("admin", "/api/nodes").want(t, http.StatusOK).into(t, &nodes)
	if len(nodes.Nodes) != 1 || len(nodes.Nodes[0].Keys) != 0 {
		t.Errorf("nodes after one was let in again: %s", jsonText(t, nodes))
	}
	// Nobody makes a person of a node.
	for _, c := range []call{
		{method: http.MethodPost, path: "/api/tokens", body: []byte(`{"account":"node/box"}`)},
		{method: http.MethodPost, path: "/api/robots", body: []byte(`{"name":"r","owner":"node/box","expires_in":60,"scopes":[{"repository":"**","actions":["pull"]}]}`)},
		{method: http.MethodPost, path: "/api/password", body: []byte(`{"username":"node/box","new":"a long password"}`)},
		{method: http.MethodPut, path: "/api/admin/namespaces", body: []byte(`{"pattern":"x","owner":"node/box"}`)},
		{method: http.MethodPatch, path: "/api/admin/users/" + "node%2Fbox" + "/role?role=admin"},
	} {
		c.as = "admin"
		if r := g.do(c); r.status != http.StatusUnprocessableEntity && r.status != http.StatusNotFound {
			t.Errorf("%s %s: status %d: %.200s", c.method, c.path, r.status, r.body)
		}
	}
	var users wire.UserList
	g.get("admin", "/api/admin/users").want(t, http.StatusOK).into(t, &users)
	if strings.Contains(fmt.Sprint(users), "node/") {
		t.Error("a node is listed among the accounts")
	}
}
