package server_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// recipes is GET /api/recipes as the clients read it (wire.md 5.1).
type recipes struct {
	APIVersion string `json:"apiVersion"`
	Contract   struct{ Versions []string }
	Core       struct{ Version, Requirement string }
	Digest     string `json:"catalog_digest"`
	Recipes    []map[string]any
}

func (g *gatehouse) recipes(base string) recipes {
	g.tb.Helper()
	var r recipes
	g.get("vera", base+"/api/recipes").want(g.tb, http.StatusOK).into(g.tb, &r)
	return r
}

func (r recipes) names() []string {
	names := make([]string, len(r.Recipes))
	for i, row := range r.Recipes {
		names[i] = row["name"].(string)
	}
	return names
}

// find is the first row of a name, as the clients look for it; nil when there is none.
func (r recipes) find(name string) map[string]any {
	for _, row := range r.Recipes {
		if row["name"] == name {
			return row
		}
	}
	return nil
}

// clientDigest computes the catalogue digest as the clients do.
func (r recipes) clientDigest(tb testing.TB) string {
	tb.Helper()
	rows := make([]map[string]any, len(r.Recipes))
	for i, row := range r.Recipes {
		rows[i] = map[string]any{"name": row["name"], "version": row["version"], "digest": row["digest"]}
	}
	text, err := json.Marshal(rows) // sorted keys, no blanks; every value is ASCII
	if err != nil {
		tb.Fatal(err)
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// TestCatalogueOfEachClient asks by base path, by User-Agent and by nothing.
func TestCatalogueOfEachClient(t *testing.T) {
	g := startGatehouse(t)
	byAgent := func(agent string) recipes {
		var r recipes
		g.do(call{as: "vera", method: "GET", path: "/api/recipes", header: map[string]string{"User-Agent": agent}}).want(t, 200).into(t, &r)
		return r
	}
	cases := map[string]struct {
		got     recipes
		d       dialect.Dialect
		release string
	}{
		"nothing":         {g.recipes(""), dialect.Forge, "0.3.56"},
		"sf's agent":      {byAgent("Python-urllib/3.12"), dialect.Forge, "0.3.56"},
		"tp's agent":      {byAgent("tuneplane-cli/0.4.0 (Linux; x86_64) python/3.12.0"), dialect.TunePlane, "0.4.0"},
		"tp, unknown":     {byAgent("tuneplane-cli/9.9.9 (x)"), dialect.TunePlane, "0.4.0"},
		"/sf":             {g.recipes("/sf"), dialect.Forge, "0.3.56"},
		"/sf@0.3.51":      {g.recipes("/sf@0.3.51"), dialect.Forge, "0.3.51"},
		"/sf, unknown":    {g.recipes("/sf@9.9.9"), dialect.Forge, "0.3.56"},
		"/tp":             {g.recipes("/tp"), dialect.TunePlane, "0.4.0"},
		"/tp@0.4.0":       {g.recipes("/tp@0.4.0"), dialect.TunePlane, "0.4.0"},
		"/sf over tp":     {g.recipes("/sf"), dialect.Forge, "0.3.56"},
		"release of none": {g.recipes("/sf@"), dialect.Forge, "0.3.56"},
	}
	for name, c := range cases {
		known, ok := catalogue.Builtin(c.d, c.release)
		if !ok {
			t.Fatalf("no release %s of %s", c.release, c.d)
		}
		n := c.d.Names()
		if c.got.APIVersion != n.Catalogue || !slices.Equal(c.got.Contract.Versions, []string{n.JobSpec}) || c.got.Core.Version != c.release || c.got.Core.Requirement == "" {
			t.Errorf("%s: %q %q %+v", name, c.got.APIVersion, c.got.Contract.Versions, c.got.Core)
		}
		if c.got.Digest != c.got.clientDigest(t) || c.got.Digest != known.Digest().String() || len(c.got.Recipes) != len(known.Entries()) {
			t.Errorf("%s: digest %s, by the client's rule %s, of the release %s", name, c.got.Digest, c.got.clientDigest(t), known.Digest())
		}
	}
	old, current := cases["/sf@0.3.51"].got, cases["/sf"].got
	for _, name := range old.names() {
		if other := current.find(name); other != nil && other["digest"] == old.find(name)["digest"] {
			t.Errorf("%s has one digest in two releases", name)
		}
	}
	for path, want := range map[string]string{"/api/version": "forge/v2", "/sf/api/version": "forge/v2", "/tp/api/version": "tuneplane/v1"} {
		var v struct{ Server, API string }
		g.do(call{method: "GET", path: path}).want(t, 200).into(t, &v)
		if v.API != want || v.Server == "" {
			t.Errorf("%s: %+v", path, v)
		}
	}
}

// TestImportedRelease imports a snapshot and sees that release, and no other, change; a job is held to it.
func TestImportedRelease(t *testing.T) {
	g := startGatehouse(t)
	g.published("alice", recipePack(t, "mine"))
	before := g.recipes("/sf@0.3.51")
	row := maps.Clone(before.find(shippedRecipe(t, dialect.Forge).Name))
	row["digest"] = "sha256:" + strings.Repeat("1", 64)
	shadow := maps.Clone(row)
	shadow["name"], shadow["framework"], shadow["adapter"] = "custom/mine", "custom", "custom"
	var imported struct {
		Recipes  int
		Release  string
		Shadowed []string
	}
	g.send("admin", "PUT", "/api/admin/catalog/sf?release=0.9.1", map[string]any{"recipes": []any{row, shadow}, "bundled_plugins": []any{}}).want(t, 200).into(t, &imported)
	if imported.Recipes != 2 || imported.Release != "0.9.1" || !slices.Equal(imported.Shadowed, []string{"alice/mine"}) {
		t.Errorf("import %+v", imported)
	}
	got := g.recipes("/sf@0.9.1")
	if len(got.Recipes) != 2 || got.Core.Version != "0.9.1" || got.find("custom/mine")["digest"] != row["digest"] || got.Digest != got.clientDigest(t) {
		t.Errorf("%+v", got)
	}
	if again := g.recipes("/sf@0.3.51"); again.Digest != before.Digest {
		t.Error("another release changed")
	}
	spec := jobSpec(t, dialect.Forge, "a")
	for path, status := range map[string]int{"/api/jobs": 200, "/sf/api/jobs": 200, "/sf@0.9.1/api/jobs": 422} {
		g.do(call{as: "alice", method: "POST", path: path, body: []byte(spec)}).want(t, status)
	}
	for what, doc := range map[string]string{
		"no recipes": `{"recipes":[],"bundled_plugins":[]}`, "twice": `{"recipes":[` + text(t, row) + `,` + text(t, row) + `],"bundled_plugins":[]}`,
		"no digest": `{"recipes":[{"name":"a/b"}],"bundled_plugins":[]}`, "no object": `[]`, "a key twice": `{"recipes":[],"recipes":[]}`,
	} {
		r := g.do(call{as: "admin", method: "PUT", path: "/api/admin/catalog/sf?release=0.9.1", body: []byte(doc)})
		if got := r.refused(t, "/api/", 422); got.Decision == nil || len(got.Decision.Violations) == 0 {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if again := g.recipes("/sf@0.9.1"); again.Digest != got.Digest {
		t.Error("a refused import changed the release")
	}
	g.send("admin", "PUT", "/api/admin/catalog/sf?release=x", map[string]any{"recipes": []any{row}, "bundled_plugins": []any{}}).refused(t, "/api/", 422)
}

func text(tb testing.TB, v any) string {
	tb.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(out)
}

// tuneplaneRecipe is a recipe pack of the other dialect.
func tuneplaneRecipe(tb testing.TB, name string) map[string]string {
	files := recipePack(tb, name)
	swap := strings.NewReplacer("forge/", "tuneplane/", "kind: recipe", "capability: recipe")
	for _, f := range []string{"plugin.yaml", "recipe.yaml"} {
		files[f] = swap.Replace(files[f])
	}
	return files
}

// TestPublishedRecipe follows a recipe pack through the catalogue, the sync and the handshake.
func TestPublishedRecipe(t *testing.T) {
	g := startGatehouse(t)
	p := g.published("alice", recipePack(t, "mine"))
	row := g.recipes("/sf").find("custom/mine")
	if row == nil || row["version"] != "0.3.0" || row["framework"] != "custom" || row["adapter"] != "custom" || !strings.HasPrefix(fmt.Sprint(row["digest"]), "sha256:") {
		t.Fatalf("row %v", row)
	}
	if all := g.recipes("/sf"); all.Digest != all.clientDigest(t) {
		t.Error("the digest is not of the answer")
	}
	if g.recipes("/tp").find("custom/mine") != nil {
		t.Error("tuneplane's clients see a recipe of forge")
	}
	entry := catalogue.Entry{Name: "custom/mine", Version: "0.3.0", Digest: row["digest"].(string), Framework: "custom", Versions: []catalogue.Variant{{Version: "user-managed"}}, Roles: []string{"trainer"}}
	spec := strings.Replace(jobOf(dialect.Forge, entry, "a"), `"version":"user-managed"`, `"version":"user-managed","image":"registry.example/x","observability_url":"https://o.example"`, 1)
	id := g.submitted("alice", spec)
	stored := string(g.get("alice", "/api/jobs/"+id+"/spec").want(t, 200).body)
	alias := g.submitted("alice", strings.Replace(spec, `"custom/mine"`, `"custom/alice.mine"`, 1))
	if again := string(g.get("alice", "/api/jobs/"+alias+"/spec").want(t, 200).body); again != stored {
		t.Errorf("by its alias %s, by its name %s", again, stored)
	}

	extensions := func(base string) []string {
		var list struct {
			Extensions []struct {
				ID, Kind, Version, Digest string
				Enabled                   bool
			}
		}
		g.get("bob", base+"/api/extensions?source=user").want(t, 200).into(t, &list)
		rows := []string{}
		for _, e := range list.Extensions {
			if !e.Enabled || e.Digest == "" {
				t.Errorf("extension %+v", e)
			}
			rows = append(rows, e.ID+"@"+e.Version)
		}
		return rows
	}
	g.published("alice", algorithm("code", "1.0.0"))
	g.published("alice", ownPack(t, "arithmetic"))
	g.published("bob", tuneplaneRecipe(t, "theirs"))
	if sf, tp := extensions("/sf"), extensions("/tp"); !slices.Equal(sf, []string{"alice/arithmetic@2.0.1", "alice/mine@0.3.0"}) || !slices.Equal(tp, []string{"bob/theirs@0.3.0"}) {
		t.Errorf("extensions %q and %q", sf, tp)
	}

	// Nobody else takes the id, in either way in, nor a built-in one; the other dialect has ids of its own.
	if got := g.publish("bob", archiveOf(t, recipePack(t, "mine"))).refused(t, "/api/", 409); !slices.Equal(got.Decision.rules(), []string{"publish.recipe.taken"}) || !strings.Contains(got.Detail, "alice/mine") {
		t.Errorf("a taken id: %q", got.Detail)
	}
	g.published("bob", tuneplaneRecipe(t, "mine"))
	builtin := shippedRecipe(t, dialect.Forge)
	taken := recipePack(t, builtin.Method())
	taken["recipe.yaml"] = strings.Replace(taken["recipe.yaml"], "framework: custom", "framework: "+builtin.Framework, 1)
	if got := g.publish("bob", archiveOf(t, taken)).refused(t, "/api/", 409); !strings.Contains(got.Detail, builtin.Name) {
		t.Errorf("a built-in id: %q", got.Detail)
	}

	enable := func(on bool) {
		g.send("admin", "PATCH", "/api/plugins/"+p.ID, map[string]any{"enabled": on, "version": p.Version}).want(t, 200)
	}
	enable(false)
	if g.recipes("/sf").find("custom/mine") != nil || slices.Contains(extensions("/sf"), "alice/mine@0.3.0") {
		t.Error("a disabled recipe is listed")
	}
	g.submit("alice", spec).refused(t, "/api/", 422)
	g.publish("bob", archiveOf(t, recipePack(t, "mine"))).refused(t, "/api/", 409) // once taken it stays taken
	enable(true)
	if g.recipes("/sf").find("custom/mine") == nil {
		t.Error("an enabled recipe is not listed")
	}
	g.submitted("alice", spec)
}

// TestLatestOfEachDialect publishes versions of both dialects under one name.
func TestLatestOfEachDialect(t *testing.T) {
	g := startGatehouse(t)
	for _, v := range []string{"1.0.0", "1.10.0", "1.9.0", "2.0.0rc1", "nightly"} {
		g.published("alice", algorithm("both", v))
	}
	for _, v := range []string{"3.0.0", "1.0.0.dev1"} {
		g.published("alice", tuneplaneAlgorithm("both", v))
	}
	g.publish("alice", archiveOf(t, tuneplaneAlgorithm("both", "1.0.0"))).refused(t, "/api/", 409)
	latest := func(base string) string {
		var p wire.Plugin
		g.get("bob", base+"/api/plugins/alice/both").want(t, 200).into(t, &p)
		if len(p.Versions) != 7 {
			t.Errorf("%d versions", len(p.Versions))
		}
		var list wire.PluginList
		g.get("bob", base+"/api/plugins").want(t, 200).into(t, &list)
		if len(list.Plugins) != 1 || list.Plugins[0].LatestVersion != p.Version {
			t.Errorf("listed %+v, shown %s", list.Plugins, p.Version)
		}
		r := g.get("bob", base+"/api/plugins/alice/both/package").want(t, 200)
		if got := r.header.Get("X-Content-Digest"); got != p.Digest {
			t.Errorf("the package is %s, the info %s", got, p.Digest)
		}
		return p.Version
	}
	disable := func(version string) {
		g.send("admin", "PATCH", "/api/plugins/alice/both", map[string]any{"enabled": false, "version": version}).want(t, 200)
	}
	steps := []struct{ disable, sf, tp string }{
		{"", "1.10.0", "3.0.0"}, {"1.10.0", "1.9.0", "3.0.0"}, {"3.0.0", "1.9.0", "1.0.0.dev1"},
		{"1.9.0", "1.0.0", "1.0.0.dev1"}, {"1.0.0", "2.0.0rc1", "1.0.0.dev1"}, {"2.0.0rc1", "nightly", "1.0.0.dev1"},
	}
	for _, s := range steps {
		if s.disable != "" {
			disable(s.disable)
		}
		if sf, tp := latest("/sf"), latest("/tp"); sf != s.sf || tp != s.tp {
			t.Errorf("without %s: %s and %s, want %s and %s", s.disable, sf, tp, s.sf, s.tp)
		}
	}
	g.get("bob", "/api/plugins/alice/both?version=latest").refused(t, "/api/", 404)
	g.send("admin", "PATCH", "/api/plugins/alice/both", map[string]any{"enabled": false, "version": "9"}).refused(t, "/api/", 404)
	var n struct {
		Affected int `json:"versions_affected"`
	}
	g.send("admin", "PATCH", "/api/plugins/alice/both", map[string]any{"enabled": false}).want(t, 200).into(t, &n)
	if n.Affected != 7 {
		t.Errorf("%d versions disabled, want 7", n.Affected)
	}
	var p wire.Plugin
	g.get("bob", "/sf/api/plugins/alice/both").want(t, 200).into(t, &p)
	if p.Enabled {
		t.Errorf("all are disabled, shown %+v", p)
	}
}

// TestActivation moves the active prompt by compare-and-set.
func TestActivation(t *testing.T) {
	g := startGatehouse(t)
	prompt := map[string]string{"plugin.yaml": "schema: forge/plugin/v1\nname: tone\nversion: \"1\"\nkind: prompt\n", "README.md": "text\n"}
	p := g.published("admin", prompt)
	put := func(generation int, reference any) reply {
		return g.send("admin", "PUT", "/tp/api/plugin-activations/prompt", map[string]any{"expected_generation": generation, "reference": reference})
	}
	ref := func(digest string) map[string]string {
		return map[string]string{"id": p.ID, "version": p.Version, "digest": digest}
	}
	put(0, ref("sha256:0")).refused(t, "/api/", 409)
	put(1, ref(p.Digest)).refused(t, "/api/", 409)
	put(0, ref(p.Digest)).want(t, 200)
	put(0, nil).refused(t, "/api/", 409)
	var a struct {
		Generation int
		Reference  *struct{ Digest string }
	}
	g.get("bob", "/tp/api/plugin-activations/prompt").want(t, 200).into(t, &a)
	if a.Generation != 1 || a.Reference == nil || a.Reference.Digest != p.Digest {
		t.Errorf("%+v", a)
	}
	put(1, nil).want(t, 200)
	g.send("admin", "PATCH", "/api/plugins/admin/tone", map[string]any{"enabled": false}).want(t, 200)
	put(2, ref(p.Digest)).refused(t, "/api/", 409)
	put(2, map[string]string{"id": "nobody/x", "version": "1", "digest": "x"}).refused(t, "/api/", 404)
}
