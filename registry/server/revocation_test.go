package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/denylist"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// denyList is the registry's list of revoked versions, verified with its published key.
func (g *gatehouse) denyList(as string) (*denylist.List, string) {
	g.tb.Helper()
	trust, err := receipt.ParseTrust(g.get(as, "/api/trust").want(g.tb, http.StatusOK).body)
	if err != nil {
		g.tb.Fatal(err)
	}
	r := g.get(as, "/api/denylist").want(g.tb, http.StatusOK)
	list, err := denylist.Verify(r.body, trust, "", time.Now().Add(time.Duration(g.ahead.Load())))
	if err != nil {
		g.tb.Fatal(err)
	}
	return list, r.header.Get("ETag")
}

// TestRevoke revokes a version that jobs use and that another owner published too.
func TestRevoke(t *testing.T) {
	g := startGatehouse(t)
	g.node("box")
	bad, same := g.published("alice", algorithm("p", "1.0.0")), g.published("bob", algorithm("p", "1.0.0"))
	next := g.published("alice", algorithm("p", "1.1.0"))
	g.published("alice", algorithm("p", "0.9.0"))
	job := g.submitted("alice", jobSpec(t, dialect.Forge, "a", pinned(bad)))
	running := g.submitted("alice", jobSpec(t, dialect.Forge, "b", pinned(bad)))
	over := g.submitted("alice", jobSpec(t, dialect.Forge, "c", pinned(bad)))
	g.send("admin", http.MethodPost, "/api/jobs/"+running+"/state", map[string]string{"state": "running"}).want(t, http.StatusOK)
	g.send("alice", http.MethodPost, "/api/job/stop?id="+over, nil).want(t, http.StatusOK)
	key := g.joined(aNode)
	g.record(aNode, signed(t, begun(g.predicate(running)), key)).want(t, http.StatusOK)
	var manifest struct{ Layers []struct{ Digest string } }
	g.get("alice", "/v2/alice/p/manifests/1.0.0").want(t, http.StatusOK).into(t, &manifest)
	layer := "/v2/alice/p/blobs/" + manifest.Layers[0].Digest
	token := g.granted(aNode, job)
	g.withGrant(token, http.MethodGet, layer).want(t, http.StatusOK)

	empty, tag := g.denyList(aNode)
	if empty.Number != 1 || len(empty.Revoked) != 0 {
		t.Errorf("the list before: %+v", empty)
	}
	g.do(call{as: aNode, method: http.MethodGet, path: "/api/denylist", header: map[string]string{"If-None-Match": tag}}).want(t, http.StatusNotModified)
	revoke := func(version, reason string) reply {
		return g.send("admin", http.MethodPost, "/api/plugins/alice/p/revoke", wire.RevokeRequest{Version: version, Reason: reason})
	}
	for _, bad := range [][2]string{{"1.0.0", ""}, {"1.0.0", "two\nlines"}, {"1.0.0", strings.Repeat("x", 501)}, {"", "why"}} {
		revoke(bad[0], bad[1]).want(t, http.StatusUnprocessableEntity)
	}
	revoke("9.9.9", "why").want(t, http.StatusNotFound)

	var done wire.Revoked
	revoke("1.0.0", "sends the weights away").want(t, http.StatusOK).into(t, &done)
	if done.DenyList != 3 || len(done.Same) != 1 || done.Same[0] != "bob/p@1.0.0" || done.Use != (wire.PackUse{QueuedJobs: 1, RunningJobs: 1, ActiveRuns: 1, Runs: 1}) {
		t.Errorf("the answer: %s", jsonText(t, done))
	}
	revoke("1.0.0", "again").want(t, http.StatusConflict)
	list, after := g.denyList(aNode)
	if list.Number != 3 || len(list.Revoked) != 2 || after == tag {
		t.Fatalf("the list: %+v, tag %s", list, after)
	}
	if e := list.Revoked[0]; e.String() != "alice/p@1.0.0" || e.Reason != "sends the weights away" || e.Tree.String() != bad.TreeDigest || e.Manifest.String() != bad.ManifestDigest {
		t.Errorf("its entry: %+v", e)
	}

	// No new job, whatever name the bytes have; those that were admitted stand.
	for _, p := range []wire.Plugin{bad, same} {
		r := g.submit("alice", jobSpec(t, dialect.Forge, "d", pinned(p)))
		if r.want(t, http.StatusUnprocessableEntity); !strings.Contains(string(r.body), "sends the weights away") || !strings.Contains(string(r.body), "job.plugins.record.revoked") {
			t.Errorf("a new job with %s: %s", p.ID, r.body)
		}
	}
	if g.stateOf(job) != "admitted" || g.stateOf(running) != "running" {
		t.Error("a revocation touches jobs that were admitted")
	}
	g.submitted("alice", jobSpec(t, dialect.Forge, "e", pinned(next)))

	// The same files are not published again; the same manifest under the same tag is what it was.
	g.publish("admin", archiveOf(t, algorithm("p", "1.0.0"))).want(t, http.StatusBadRequest)
	// It is final.
	for _, body := range []wire.EnableRequest{{Enabled: new(true), Version: "1.0.0"}, {Enabled: new(false), Version: "1.0.0"}} {
		g.send("admin", http.MethodPatch, "/api/plugins/alice/p", body).want(t, http.StatusConflict)
	}
	var enabled wire.Enabled
	g.send("admin", http.MethodPatch, "/api/plugins/alice/p", wire.EnableRequest{Enabled: new(true)}).want(t, http.StatusOK).into(t, &enabled)
	if enabled.Affected != 2 {
		t.Errorf("all versions enabled: %d affected, want the 2 that are not revoked", enabled.Affected)
	}

	// Its name resolves as before, its files are withheld from all but administrators and auditors.
	var info wire.Plugin
	g.get("vera", "/api/plugins/alice/p?version=1.0.0").want(t, http.StatusOK).into(t, &info)
	if info.Enabled || info.Reason != "sends the weights away" || info.RevokedAt == "" || info.ManifestDigest != bad.ManifestDigest {
		t.Errorf("info: %s", jsonText(t, info))
	}
	if got := g.get("vera", "/v2/alice/p/manifests/1.0.0").want(t, http.StatusOK).header.Get("Docker-Content-Digest"); got != bad.ManifestDigest {
		t.Errorf("the tag resolves to %s, want %s", got, bad.ManifestDigest)
	}
	for as, want := range map[string]int{"vera": http.StatusForbidden, "alice": http.StatusForbidden, "audrey": http.StatusOK, "admin": http.StatusOK} {
		for _, path := range []string{layer, "/api/plugins/alice/p/package?version=1.0.0"} {
			r := g.get(as, path).want(t, want)
			if want == http.StatusForbidden && (!strings.Contains(string(r.body), "REVOKED") || !strings.Contains(string(r.body), "sends the weights away")) {
				t.Errorf("%s as %s: %s", path, as, r.body)
			}
		}
	}
	g.withGrant(token, http.MethodGet, layer).want(t, http.StatusForbidden)
	g.do(call{as: "alice", method: http.MethodPost, path: "/v2/alice/copy/blobs/uploads/?from=alice/p&mount=" + manifest.Layers[0].Digest}).want(t, http.StatusAccepted)
	g.get("vera", "/api/plugins/alice/p/package").want(t, http.StatusOK)
}

// TestRevokeWhatIsActive takes a prompt pack that is active off its place.
func TestRevokeWhatIsActive(t *testing.T) {
	g := startGatehouse(t)
	p, other := g.published("admin", policyPack("prompt", "a")), g.published("admin", policyPack("prompt", "b"))
	body := fmt.Sprintf(`{"expected_generation":0,"reference":{"id":%q,"version":"1","digest":%q}}`, p.ID, p.Digest)
	g.do(call{as: "admin", method: http.MethodPut, path: "/api/plugin-activations/prompt", body: []byte(body)}).want(t, http.StatusOK)
	for i, step := range []struct{ id, want string }{{other.ID, p.ID}, {p.ID, ""}} {
		g.send("admin", http.MethodPost, "/api/plugins/"+step.id+"/revoke", wire.RevokeRequest{Version: "1", Reason: "it lies"}).want(t, http.StatusOK)
		var active struct {
			Generation int
			Reference  struct{ ID string }
		}
		g.get("vera", "/api/plugin-activations/prompt").want(t, http.StatusOK).into(t, &active)
		if active.Reference.ID != step.want || active.Generation != i+1 {
			t.Errorf("after %s was revoked: %+v, want %q active", step.id, active, step.want)
		}
	}
	var synced wire.ExtensionList
	g.get("vera", "/api/extensions?source=user").want(t, http.StatusOK).into(t, &synced)
	if len(synced.Extensions) != 0 {
		t.Errorf("clients sync %s", jsonText(t, synced))
	}
}

// TestDenyListLives holds that a list is signed anew before it is over, and never grows old in between.
func TestDenyListLives(t *testing.T) {
	g := startGatehouse(t)
	_, first := g.denyList("vera")
	if _, again := g.denyList("bob"); again != first {
		t.Error("a list that is young is signed again")
	}
	g.ahead.Store(int64(31 * time.Minute))
	list, later := g.denyList("vera")
	if later == first || list.Number != 1 {
		t.Errorf("after half of its life: %+v, the tag as before: %v", list, later == first)
	}
}

// TestDisableWithReason says why, to whom it may concern, and how much is in use.
func TestDisableWithReason(t *testing.T) {
	g := startGatehouse(t)
	p := g.published("alice", algorithm("p", "1.0.0"))
	g.submitted("alice", jobSpec(t, dialect.Forge, "a", pinned(p)))
	var out wire.Enabled
	g.send("admin", http.MethodPatch, "/api/plugins/alice/p", wire.EnableRequest{Enabled: new(false), Version: "1.0.0", Reason: "diverges on bf16"}).want(t, http.StatusOK).into(t, &out)
	if out.Affected != 1 || out.Use == nil || *out.Use != (wire.PackUse{QueuedJobs: 1}) {
		t.Errorf("the answer: %s", jsonText(t, out))
	}
	r := g.submit("alice", jobSpec(t, dialect.Forge, "b", pinned(p)))
	if r.want(t, http.StatusUnprocessableEntity); !strings.Contains(string(r.body), "alice/p@1.0.0 is disabled: diverges on bf16") {
		t.Errorf("a new job: %s", r.body)
	}
	g.send("admin", http.MethodPatch, "/api/plugins/alice/p", wire.EnableRequest{Enabled: new(true), Version: "1.0.0"}).want(t, http.StatusOK).into(t, &out)
	var info wire.Plugin
	g.get("alice", "/api/plugins/alice/p").want(t, http.StatusOK).into(t, &info)
	if !info.Enabled || info.Reason != "" {
		t.Errorf("info after it was enabled: %s", jsonText(t, info))
	}
	// What nobody has heard of for as long as a lease is counts by itself.
	g.ahead.Store(int64(25 * time.Hour))
	g.send("admin", http.MethodPatch, "/api/plugins/alice/p", wire.EnableRequest{Enabled: new(false)}).want(t, http.StatusOK).into(t, &out)
	if out.Use == nil || *out.Use != (wire.PackUse{SilentJobs: 1}) {
		t.Errorf("a day later: %s", jsonText(t, out))
	}
}
