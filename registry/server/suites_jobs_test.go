package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// asks runs gate 2 on a job with a data section.
func (g *gatehouse) asks(t *testing.T, d dialect.Dialect, data string) decision {
	t.Helper()
	spec := strings.Replace(jobSpec(t, d, "a"), `"resources"`, `"data":{`+data+`},"resources"`, 1)
	var out decision
	g.do(call{as: "alice", method: http.MethodPost, path: "/api/admission", body: []byte(spec)}).want(t, http.StatusOK).into(t, &out)
	return out
}

func (d decision) warns(rule string) bool {
	return slices.ContainsFunc(d.Warnings, func(v violation) bool { return v.Rule == rule })
}

func (d decision) refuses(rule string) bool {
	return slices.ContainsFunc(d.Violations, func(v violation) bool { return v.Rule == rule })
}

// TestJobsNameSuites holds that what a job names is looked up here: pinned to the newest when it has no version, refused when it
// is not there or not for the account, and unchecked only in a registry that holds nothing of the kind.
func TestJobsNameSuites(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	const access = "job.data.environment.access"
	if d := g.asks(t, dialect.Forge, `"environment":"alice/shop@v1"`); !d.Allowed || !d.warns("job.reference.unchecked") {
		t.Errorf("a registry without environments: %+v", d)
	}
	push := func(as, name, version string, public bool) {
		pushing{g: g, as: as, kind: "environment", name: name, version: version, public: public}.all(shop)
	}
	push("alice", "shop", "1.9", false)
	push("alice", "shop", "1.10", false)
	push("bob", "open", "v1", true)
	push("bob", "hidden", "v1", false)
	pushing{g: g, as: "alice", kind: "taskset", name: "set", version: "v1"}.all(tasks())

	d := g.asks(t, dialect.Forge, `"environment":"alice/shop"`)
	if !d.Allowed || !d.warns("job.data.environment.unpinned") || !strings.Contains(string(d.Value.Spec), `"alice/shop@1.10"`) {
		t.Errorf("an environment without a version: %+v, %s", d, d.Value.Spec)
	}
	for _, named := range []string{"alice/shop@1.9", "bob/open@v1", "bob/open"} {
		if d := g.asks(t, dialect.Forge, fmt.Sprintf(`"environment":%q`, named)); !d.Allowed || d.warns("job.reference.unchecked") {
			t.Errorf("%s: %+v", named, d)
		}
	}
	var said []string
	for _, named := range []string{"alice/shop@2", "alice/Shop", "bob/hidden@v1", "bob/absent@v1"} {
		d := g.asks(t, dialect.Forge, fmt.Sprintf(`"environment":%q`, named))
		if d.Allowed || !d.refuses(access) {
			t.Errorf("%s: %+v", named, d)
			continue
		}
		for _, v := range d.Violations {
			said = append(said, strings.ReplaceAll(v.Message, "hidden", "absent"))
		}
	}
	if n := len(said); n < 2 || said[n-1] != said[n-2] {
		t.Errorf("what is hidden and what is absent read differently: %q", said)
	}
	if d := g.asks(t, dialect.TunePlane, `"taskset":"alice/set@v1"`); !d.Allowed {
		t.Errorf("a taskset: %+v", d)
	}
	if d := g.asks(t, dialect.TunePlane, `"taskset":"alice/set@v2"`); d.Allowed || !d.refuses(access) {
		t.Errorf("a taskset's version that is not there: %+v", d)
	}
	spec := strings.Replace(jobSpec(t, dialect.Forge, "b"), `"resources"`, `"data":{"environment":"alice/shop"},"resources"`, 1)
	var job wire.Submitted
	g.submit("alice", spec).want(t, http.StatusOK).into(t, &job)
	push("alice", "shop", "3.0", false)
	if stored := g.get("alice", "/api/jobs/"+job.RunID+"/spec").want(t, http.StatusOK); !strings.Contains(string(stored.body), `"alice/shop@1.10"`) {
		t.Errorf("the stored spec does not pin the environment: %s", stored.body)
	}
}

// activation is the answer of /api/plugin-activations.
type activation struct {
	Generation int64           `json:"generation"`
	Applied    bool            `json:"applied"`
	Reference  json.RawMessage `json:"reference"`
}

// TestActivations holds what wire.md 4.6 asks: publishing activates nothing, a change names the generation that it was decided
// on, of many at once one wins, and only an enabled version with the very digest is activated, in either dialect.
func TestActivations(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	read := func(kind string) (a activation) {
		g.get("alice", "/api/plugin-activations/"+kind).want(t, http.StatusOK).into(t, &a)
		return a
	}
	set := func(as, kind string, expected int64, ref any) reply {
		return g.send(as, http.MethodPut, "/api/plugin-activations/"+kind, map[string]any{"expected_generation": expected, "reference": ref})
	}
	for _, kind := range []string{"playbook", "prompt"} {
		forge := g.published("admin", policyPack(kind, kind))
		other := policyPack(kind, "tp-"+kind)
		other["plugin.yaml"] = strings.NewReplacer("forge/plugin/v1", "tuneplane/plugin/v1", "kind:", "capability:").Replace(other["plugin.yaml"])
		tune := g.published("admin", other)
		if a := read(kind); a.Generation != 0 || string(a.Reference) != "null" {
			t.Errorf("%s: publishing activated %+v", kind, a)
		}
		refOf := func(p wire.Plugin) map[string]string {
			return map[string]string{"id": p.ID, "version": p.Version, "digest": p.Digest}
		}
		set("alice", kind, 0, refOf(forge)).want(t, http.StatusForbidden)
		var a activation
		set("admin", kind, 0, refOf(forge)).want(t, http.StatusOK).into(t, &a)
		if !a.Applied || a.Generation != 1 {
			t.Errorf("%s: activated %+v", kind, a)
		}
		set("admin", kind, 0, refOf(tune)).want(t, http.StatusConflict)
		set("admin", kind, 1, refOf(tune)).want(t, http.StatusOK)
		wrong := refOf(forge)
		wrong["digest"] = refOf(tune)["digest"]
		set("admin", kind, 2, wrong).want(t, http.StatusConflict)
		for _, missing := range []map[string]string{{"id": "admin/none", "version": "1", "digest": "x"}, {"id": forge.ID, "version": "9", "digest": "x"}, {"id": "", "version": "", "digest": ""}, {"id": "../x", "version": "1", "digest": ""}} {
			set("admin", kind, 2, missing).want(t, http.StatusNotFound)
		}
		g.send("admin", http.MethodPatch, "/api/plugins/"+forge.ID, map[string]any{"enabled": false}).want(t, http.StatusOK)
		set("admin", kind, 2, refOf(forge)).want(t, http.StatusConflict)
		g.send("admin", http.MethodPatch, "/api/plugins/"+forge.ID, map[string]any{"enabled": true}).want(t, http.StatusOK)

		var wins sync.Map
		var changes sync.WaitGroup
		for i := range 16 {
			changes.Go(func() {
				ref := any(refOf(forge))
				if i%2 == 1 {
					ref = nil
				}
				if r := set("admin", kind, 2, ref); r.status == http.StatusOK {
					wins.Store(i, true)
				} else if r.status != http.StatusConflict {
					t.Errorf("%s: change %d: status %d: %s", kind, i, r.status, r.body)
				}
			})
		}
		changes.Wait()
		won := 0
		wins.Range(func(any, any) bool { won++; return true })
		if a := read(kind); won != 1 || a.Generation != 3 {
			t.Errorf("%s: %d of the changes at once won, generation %d", kind, won, a.Generation)
		}
		set("admin", kind, 3, nil).want(t, http.StatusOK)
		if a := read(kind); a.Generation != 4 || string(a.Reference) != "null" {
			t.Errorf("%s: deactivated: %+v", kind, a)
		}
		set("admin", kind, -1, nil).want(t, http.StatusConflict)
		g.send("admin", http.MethodPut, "/api/plugin-activations/"+kind, map[string]any{"reference": nil}).want(t, http.StatusUnprocessableEntity)
	}
	recipe := g.published("alice", algorithm("algo", "1.0.0"))
	set("admin", "prompt", 4, map[string]string{"id": recipe.ID, "version": recipe.Version, "digest": recipe.Digest}).want(t, http.StatusConflict)
	g.get("admin", "/api/plugin-activations/recipe").want(t, http.StatusNotFound)
	set("admin", "algorithm", 0, nil).want(t, http.StatusNotFound)
}
