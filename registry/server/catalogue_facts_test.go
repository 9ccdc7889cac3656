package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// Our own client asks for all facts and has the server's catalogue, entry by entry; without them the answer says only what
// is new to it. The real clients' handshake passes over both.
func TestFactsOfTheCatalogue(t *testing.T) {
	g := startGatehouse(t)
	g.published("alice", recipePack(t, "mine"))
	for d, base := range map[dialect.Dialect]string{dialect.Forge: "/sf@0.3.51", dialect.TunePlane: "/tp"} {
		body := g.get("vera", base+"/api/recipes?facts=1").want(t, http.StatusOK).body
		c, err := catalogue.ParseAnswer(body, d)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range c.Entries() {
			if e.Params == nil || e.Roles == nil || e.ManifestDigest == "" || e.TemplateDigest == "" || e.Entrypoint == nil || e.RequiredInputs == nil {
				t.Errorf("%s: facts of %s are missing: %+v", base, e.Name, e)
			}
		}
		if e, alias, ok := c.Resolve("custom/alice.mine"); ok != (d == dialect.Forge) || ok && (!alias || e.Pack.ID() != "alice/mine" || e.Title == "") {
			t.Errorf("%s: the alias gives %+v", base, e)
		}
		answer, report := pyjson.Load(body, pyjson.Options{})
		if !report.OK() {
			t.Fatal(report.Violations)
		}
		e := shippedRecipe(t, d)
		e, _ = c.Lookup(e.Name)
		claim := catalogue.Claim{Recipe: e.Name, Version: e.Version, Digest: e.Digest, Kind: e.Framework, FrameworkVersion: e.DefaultVersion, RuntimeID: e.Versions[0].RuntimeID}
		if err := catalogue.VerifyAnswer(answer, d, c.Release(), claim); err != nil {
			t.Errorf("%s: %v", base, err)
		}
	}
	plain := g.recipes("/sf")
	if row := plain.find("custom/mine"); row["gatehouse"].(map[string]any)["alias"] != "custom/alice.mine" {
		t.Errorf("the alias is not shown: %v", row["gatehouse"])
	}
	if row := plain.find("custom/custom"); row["gatehouse"] != nil {
		t.Errorf("facts that nobody asked for: %v", row["gatehouse"])
	}
}

// A release that is exported and imported under another version is the same but for that.
func TestExportedRelease(t *testing.T) {
	g := startGatehouse(t)
	document := g.get("vera", "/api/admin/catalog/tp?release=0.4.0").want(t, 200).body
	g.do(call{as: "admin", method: "PUT", path: "/api/admin/catalog/tp?release=0.9.0", body: document}).want(t, 200)
	if again := g.get("vera", "/api/admin/catalog/tp?release=0.9.0").want(t, 200).body; string(again) != string(document) {
		t.Error("another snapshot comes out than went in")
	}
	if a, b := g.recipes("/tp@0.4.0"), g.recipes("/tp@0.9.0"); a.Digest != b.Digest || b.Core.Version != "0.9.0" {
		t.Errorf("%s of %s, want %s of 0.9.0", b.Digest, b.Core.Version, a.Digest)
	}
	var list wire.CatalogueReleases
	g.get("vera", "/api/admin/catalog").want(t, 200).into(t, &list)
	var names []string
	for _, r := range list.Releases {
		names = append(names, string(r.Dialect)+" "+r.Release+" "+r.ImportedBy)
	}
	if !slices.Equal(names, []string{"forge 0.3.51 ", "forge 0.3.56 ", "tuneplane 0.4.0 ", "tuneplane 0.9.0 admin"}) {
		t.Errorf("releases %q", names)
	}
	g.get("vera", "/api/admin/catalog/tp?release=8").refused(t, "/api/", 404)
	g.get("vera", "/api/admin/catalog/lab").refused(t, "/api/", 404)
}

// Hyperparameters of a recipe that ships in the client are checked at gate 2, like those of a published one.
func TestHyperparamsOfShippedRecipes(t *testing.T) {
	g := startGatehouse(t)
	for _, d := range dialect.All {
		c, _ := catalogue.Builtin(d, catalogue.DefaultRelease(d))
		e, _ := c.Lookup("verl/dapo")
		base := "/" + d.Names().Client
		submit := func(hyperparams string) reply {
			spec := strings.Replace(jobOf(d, e, "a"), `"source":`, `"hyperparams":`+hyperparams+`,"source":`, 1)
			return g.do(call{as: "alice", method: "POST", path: base + "/api/admission", body: []byte(spec)})
		}
		good := submit(`{"filter_metric":"acc","overlong_buffer_len":16}`).want(t, 200).body
		if strings.Contains(string(good), `"hyperparams"`) && strings.Contains(string(good), `"unchecked":[{"kind":"hyperparams"`) {
			t.Errorf("%s: hyperparams are unchecked: %s", d, good)
		}
		for hyperparams, field := range map[string]string{
			`{"filter_metric":"best"}`: "spec.hyperparams.filter_metric", `{"overlong_buffer_len":0}`: "spec.hyperparams.overlong_buffer_len",
			`{"overlong_buffer_len":"8"}`: "spec.hyperparams.overlong_buffer_len", `{"overlong":1}`: "spec.hyperparams",
		} {
			var decision struct {
				Allowed    bool
				Violations []struct{ Rule, Field string }
			}
			submit(hyperparams).into(t, &decision)
			if decision.Allowed || len(decision.Violations) != 1 || decision.Violations[0].Rule != "job.hyperparams.recipe" || decision.Violations[0].Field != field {
				t.Errorf("%s %s: %+v", d, hyperparams, decision)
			}
		}
	}
}
