package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// shippedRecipe is a recipe that ships in the dialect's default client release and asks for nothing of the user.
func shippedRecipe(tb testing.TB, d dialect.Dialect) catalogue.Entry {
	tb.Helper()
	c, ok := catalogue.Builtin(d, catalogue.DefaultRelease(d))
	if !ok {
		tb.Fatalf("no catalogue of %s", d)
	}
	for _, e := range c.Entries() {
		if e.Framework != "custom" && len(e.Versions) > 0 && len(e.Plugins) == 0 && !needsParams(e) {
			return e
		}
	}
	tb.Fatalf("%s ships no recipe", d)
	return catalogue.Entry{}
}

// needsParams reports whether the recipe has parameters that a job must set.
func needsParams(e catalogue.Entry) bool {
	if e.Params == nil {
		return false
	}
	for _, p := range e.Params.All() {
		if p.Required {
			return true
		}
	}
	return false
}

// jobPackage is what a client packs for the experiment of a jobSpec.
func jobPackage(tb testing.TB, exp string) string {
	tb.Helper()
	return string(archiveOf(tb, map[string]string{
		"experiments/" + exp + "/config.yaml": "x: 1\n", "experiments/" + exp + "/src/train.py": "pass\n", "common/util.py": "", "configs/base.yaml": "{}\n",
	}))
}

// plugin is an entry of spec.plugins.
func plugin(id, version, digest string) string {
	return fmt.Sprintf(`{"id":%q,"version":%q,"digest":%q}`, id, version, digest)
}

// pinned is the entry that names a published version.
func pinned(p wire.Plugin) string { return plugin(p.ID, p.Version, p.Digest) }

// jobSpec is a JobSpec of a shipped recipe on 8 GPUs.
func jobSpec(tb testing.TB, d dialect.Dialect, exp string, plugins ...string) string {
	tb.Helper()
	return jobOf(d, shippedRecipe(tb, d), exp, plugins...)
}

// jobOf is a JobSpec of a recipe on 8 GPUs.
func jobOf(d dialect.Dialect, e catalogue.Entry, exp string, plugins ...string) string {
	v := e.Versions[0]
	roles := e.Roles
	if len(roles) == 0 {
		roles = []string{"trainer"}
	}
	places := make([]string, len(roles))
	for i, r := range roles {
		places[i] = fmt.Sprintf(`%q:"all"`, r)
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"TrainingJob","metadata":{"name":%q},"spec":{"recipe":{"name":%q,"version":%q,"digest":%q},`+
		`"source":{"exp":"experiments/%s"},"framework":{"kind":%q,"version":%q,"runtime_id":%q},`+
		`"resources":{"pools":[{"name":"all","series":"h200","nodes":1,"gpus_per_node":8}],"roles":{%s}},"plugins":[%s]},"provenance":{"core_version":%q}}`,
		d.Names().JobSpec, exp, e.Name, e.Version, e.Digest, exp, e.Framework, v.Version, v.RuntimeID, strings.Join(places, ","), strings.Join(plugins, ","), catalogue.DefaultRelease(d))
}

// submit sends a spec as a JSON body.
func (g *gatehouse) submit(as, spec string) reply {
	g.tb.Helper()
	return g.do(call{as: as, method: http.MethodPost, path: "/api/jobs", body: []byte(spec)})
}

// submitted submits a spec, which must be admitted, and gives the job's id.
func (g *gatehouse) submitted(as, spec string) string {
	g.tb.Helper()
	var job wire.Submitted
	g.submit(as, spec).want(g.tb, http.StatusOK).into(g.tb, &job)
	return job.RunID
}

// previewBody is what tp sends for a preview.
func previewBody(spec string, more ...string) string {
	return fmt.Sprintf(`{"form":"source","project":"","profile":"h200","spec":%s,"metadata":{"profile":"h200","spec":%s}%s}`, spec, spec, strings.Join(more, ""))
}

// preview is the answer to one.
type preview struct {
	ID       string `json:"id"`
	Digest   string `json:"digest"`
	Resolved struct {
		Execution struct {
			Fleet string `json:"fleet_id"`
			GPUs  int    `json:"requested_gpus"`
		} `json:"execution"`
		Spec json.RawMessage `json:"spec"`
	} `json:"resolved"`
}

// previewed previews a tuneplane spec, which must be admitted.
func (g *gatehouse) previewed(as, spec string) preview {
	g.tb.Helper()
	var p preview
	g.do(call{as: as, method: http.MethodPost, path: "/api/submissions/previews", body: []byte(previewBody(spec))}).want(g.tb, http.StatusOK).into(g.tb, &p)
	return p
}

// commit commits a preview.
func (g *gatehouse) commit(as string, p preview, key string) reply {
	g.tb.Helper()
	return g.send(as, http.MethodPost, "/api/submissions/commits", map[string]string{"preview_id": p.ID, "digest": p.Digest, "key": key})
}
