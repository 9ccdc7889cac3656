package catalogue

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

func readFacts(t *testing.T, file string, to any) {
	t.Helper()
	src, err := testdata.FS.ReadFile(path.Join("vectors", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(src, to); err != nil {
		t.Fatal(err)
	}
}

func TestDigestVectors(t *testing.T) {
	var file struct {
		Vectors []struct {
			ID    string
			Input struct {
				Recipes string `json:"recipes_json"`
			}
			Expect struct {
				Canonical string `json:"canonical_base64"`
				Digest    string `json:"catalog_digest"`
			}
		}
	}
	readFacts(t, "catalog-digest-vectors.json", &file)
	for _, v := range file.Vectors {
		rows, report := pyjson.Load([]byte(v.Input.Recipes), pyjson.Options{})
		if !report.OK() {
			t.Fatalf("%s: %v", v.ID, report.Violations)
		}
		sum, form, err := DigestOf(rows)
		want, _ := base64.StdEncoding.DecodeString(v.Expect.Canonical)
		if err != nil || !bytes.Equal(form, want) || sum.String() != v.Expect.Digest {
			t.Errorf("%s: %s %s (%v), want %s %s", v.ID, form, sum, err, want, v.Expect.Digest)
		}
	}
	t.Logf("%d vectors agree", len(file.Vectors))
}

// TestBuiltin holds the embedded data against what was taken from the packages.
func TestBuiltin(t *testing.T) {
	for _, tt := range []struct {
		dialect       dialect.Dialect
		release, file string
	}{
		{dialect.Forge, "0.3.51", "builtin-catalog-starforge-0.3.51.json"},
		{dialect.Forge, "0.3.56", "builtin-catalog-starforge-0.3.56.json"},
		{dialect.TunePlane, "0.4.0", "builtin-catalog-tuneplane-0.4.0.json"},
	} {
		var facts struct {
			Recipes []struct {
				ID, Version, Framework, Digest string
				CoreRequires                   string            `json:"core_requires"`
				DefaultVersion                 string            `json:"default_version"`
				RuntimeIDs                     map[string]string `json:"runtime_ids"`
			}
			Integrations []Bundled
		}
		readFacts(t, tt.file, &facts)
		c, ok := Builtin(tt.dialect, tt.release)
		if !ok {
			t.Fatalf("no catalogue of %s %s", tt.dialect, tt.release)
		}
		if len(c.Entries()) != len(facts.Recipes) {
			t.Errorf("%s: %d recipes, want %d", tt.file, len(c.Entries()), len(facts.Recipes))
		}
		for _, want := range facts.Recipes {
			e, ok := c.Lookup(want.ID)
			runtimes := make(map[string]string)
			for _, v := range e.Versions {
				runtimes[v.Version] = v.RuntimeID
			}
			if !ok || e.Version != want.Version || e.Digest != want.Digest || e.Framework != want.Framework || e.Adapter != want.Framework ||
				e.CoreRequires != want.CoreRequires || e.DefaultVersion != want.DefaultVersion || !cmp.Equal(runtimes, want.RuntimeIDs) {
				t.Errorf("%s: %+v, want %+v", tt.file, e, want)
			}
			if len(e.Roles) == 0 || e.Plugins == nil || e.Lifecycle == nil || e.Observability == "" {
				t.Errorf("%s: facts of %s are missing: %+v", tt.file, e.Name, e)
			}
		}
		for _, want := range facts.Integrations {
			if sum, ok := c.BundledDigest(want.ID, want.Version); !ok || sum != want.Digest {
				t.Errorf("%s: %s has %q, want %q", tt.file, want.ID, sum, want.Digest)
			}
		}
		if len(c.Bundled()) != len(facts.Integrations) {
			t.Errorf("%s: %d packages, want %d", tt.file, len(c.Bundled()), len(facts.Integrations))
		}
	}
}

func TestReleases(t *testing.T) {
	if got := Releases(dialect.Forge); !slices.Equal(got, []string{"0.3.51", "0.3.56"}) || DefaultRelease(dialect.Forge) != "0.3.56" {
		t.Errorf("forge: %v, default %s", got, DefaultRelease(dialect.Forge))
	}
	if got := Releases(dialect.TunePlane); !slices.Equal(got, []string{"0.4.0"}) || DefaultRelease(dialect.TunePlane) != "0.4.0" {
		t.Errorf("tuneplane: %v, default %s", got, DefaultRelease(dialect.TunePlane))
	}
	if _, ok := Builtin(dialect.Forge, "0.4.0"); ok {
		t.Error("there is a forge 0.4.0")
	}
	older, _ := Builtin(dialect.Forge, "0.3.51")
	newer, _ := Builtin(dialect.Forge, "0.3.56")
	for _, e := range newer.Entries() {
		if o, ok := older.Lookup(e.Name); !ok || o.Digest == e.Digest {
			t.Errorf("%s: the releases share a digest, or the older one lacks it", e.Name)
		}
	}
}

func TestAnswer(t *testing.T) {
	for _, d := range dialect.All {
		c, _ := Builtin(d, DefaultRelease(d))
		out, err := json.Marshal(c.Answer(false))
		if err != nil {
			t.Fatal(err)
		}
		doc, report := pyjson.Load(out, pyjson.Options{})
		if !report.OK() {
			t.Fatal(report.Violations)
		}
		if got := doc.Get("apiVersion").Text; got != d.Names().Catalogue {
			t.Errorf("apiVersion %s", got)
		}
		if got := doc.Get("contract").Get("versions"); len(got.List) != 1 || got.List[0].Text != d.Names().JobSpec {
			t.Errorf("contract.versions %v", got)
		}
		core := doc.Get("core")
		if in, err := InRange(core.Get("version").Text, core.Get("requirement").Text); !in || err != nil {
			t.Errorf("the server's version %s is outside its range (%v)", core.Get("version").Text, err)
		}
		if sum, _, err := DigestOf(doc.Get("recipes")); err != nil || sum.String() != doc.Get("catalog_digest").Text {
			t.Errorf("the digest of the rows is %s, the answer says %s", sum, doc.Get("catalog_digest").Text)
		}
		for _, row := range doc.Get("recipes").List {
			for _, v := range row.Get("supported_framework_versions").List {
				if runtime := row.Get("runtime").Get("versions").Get(v.Text); runtime == nil || runtime.Get("runtime_id").Kind != pyvalue.Str {
					t.Errorf("%s: no runtime for %s", row.Get("name").Text, v.Text)
				}
			}
		}
	}
	if got := string(must(json.Marshal(New(dialect.Forge, "0.3.56", nil, nil).Answer(false)))); !strings.Contains(got, `"recipes":[]`) || !strings.Contains(got, "4f53cda18c2baa0c") {
		t.Errorf("an empty catalogue answers %s", got)
	}
}

// diffEntries compares entries by what they say.
func diffEntries(a, b []Entry) string {
	return cmp.Diff(strings.Split(string(must(json.MarshalIndent(a, "", " "))), "\n"), strings.Split(string(must(json.MarshalIndent(b, "", " "))), "\n"))
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// snapshotOf is the snapshot that the harness takes of an installed client: the rows as the client's own loader has
// them, with much in runtime that nobody compares.
func snapshotOf(t *testing.T, c *Catalogue) []byte {
	t.Helper()
	var rows []map[string]any
	for _, row := range c.Answer(false).Recipes {
		var m map[string]any
		if err := json.Unmarshal(must(json.Marshal(row)), &m); err != nil {
			t.Fatal(err)
		}
		for _, v := range m["runtime"].(map[string]any)["versions"].(map[string]any) {
			v.(map[string]any)["requires"] = []string{"x==1"}
			if v.(map[string]any)["runtime_id"] == "" {
				v.(map[string]any)["runtime_id"] = nil
			}
		}
		rows = append(rows, m)
	}
	return must(json.Marshal(map[string]any{"recipes": rows, "bundled_plugins": c.Bundled(), "note": "ignored"}))
}

func TestSnapshotRoundTrip(t *testing.T) {
	for _, d := range dialect.All {
		c, _ := Builtin(d, DefaultRelease(d))
		got, report := ParseSnapshot(snapshotOf(t, c), d, "0.9.9")
		if !report.OK() {
			t.Fatal(report.Violations)
		}
		if got.Release() != "0.9.9" || got.Dialect() != d || got.Digest() != c.Digest() || !cmp.Equal(got.Bundled(), c.Bundled()) {
			t.Errorf("%s: another catalogue", d)
		}
		if diff := diffEntries(c.Entries(), got.Entries()); diff != "" {
			t.Errorf("%s: entries (-want +got):\n%s", d, diff)
		}
	}
}

func TestSnapshotRefusals(t *testing.T) {
	row := func(change string) string {
		m := map[string]any{
			"name": "verl/grpo", "version": "0.9.0", "digest": "sha256:" + strings.Repeat("a", 64), "framework": "verl",
			"supported_framework_versions": []string{"0.9.0"},
			"runtime":                      map[string]any{"versions": map[string]any{"0.9.0": map[string]any{"runtime_id": "verl-0.9.0"}}},
		}
		if key, value, ok := strings.Cut(change, "="); ok {
			m[key] = json.RawMessage(value)
		}
		return string(must(json.Marshal(m)))
	}
	one := func(change string) string { return `{"recipes":[` + row(change) + `]}` }
	if _, report := ParseSnapshot([]byte(one("")), dialect.Forge, "0.3.56"); !report.OK() {
		t.Fatalf("the plain snapshot is refused: %v", report.Violations)
	}
	tests := map[string]struct {
		src   string
		field string
		rule  rule.ID
	}{
		"no JSON":              {"{", "", "json.syntax"},
		"twice the same key":   {`{"recipes":[],"recipes":[` + row("") + `]}`, "", "json.duplicate_key"},
		"an array":             {"[]", "<root>", "catalogue.snapshot"},
		"no recipes":           {`{"bundled_plugins":[]}`, "recipes", "catalogue.snapshot"},
		"recipes are no array": {`{"recipes":{}}`, "recipes", "catalogue.snapshot"},
		"a row is text":        {`{"recipes":["x"]}`, "recipes[0]", "catalogue.snapshot"},
		"name without a part":  {one(`name="grpo"`), "recipes[0].name", "catalogue.snapshot"},
		"name with a blank":    {one(`name="verl /grpo"`), "recipes[0].name", "catalogue.snapshot"},
		"a number for version": {one(`version=1`), "recipes[0].version", "catalogue.snapshot"},
		"upper-case digest":    {one(`digest="sha256:` + strings.Repeat("A", 64) + `"`), "recipes[0].digest", "catalogue.snapshot"},
		"sha512":               {one(`digest="sha512:` + strings.Repeat("a", 128) + `"`), "recipes[0].digest", "catalogue.snapshot"},
		"no range":             {one(`core_requires="newest"`), "recipes[0].core_requires", "catalogue.snapshot"},
		"no versions":          {one(`supported_framework_versions=[]`), "recipes[0].supported_framework_versions", "catalogue.snapshot"},
		"no runtime":           {one(`runtime={"versions":{}}`), "recipes[0].runtime.versions", "catalogue.snapshot"},
		"version twice":        {one(`supported_framework_versions=["0.9.0","0.9.0"]`), "recipes[0].supported_framework_versions[1]", "catalogue.snapshot"},
		"facts are a text":     {one(`gatehouse="x"`), "recipes[0].gatehouse", "catalogue.snapshot"},
		"facts lack a digest":  {one(`gatehouse={}`), "recipes[0].gatehouse.manifest_digest", "catalogue.snapshot"},
		"parameters in a list": {one(`gatehouse={"params":[1]}`), "recipes[0].gatehouse.params", "catalogue.snapshot"},
		"an unknown type":      {one(`gatehouse={"params":{"a":{"type":"list"}}}`), "recipes[0].gatehouse.params", "catalogue.snapshot"},
		"fewer than no GPUs":   {one(`gatehouse={"lifecycle":{"export":-1}}`), "recipes[0].gatehouse.lifecycle.export", "catalogue.snapshot"},
		"a role is a number":   {one(`gatehouse={"roles":[1]}`), "recipes[0].gatehouse.roles[0]", "catalogue.snapshot"},
		"nothing is started":   {one(`gatehouse={"entrypoint":{"kind":"shell","value":"x"}}`), "recipes[0].gatehouse.entrypoint.kind", "catalogue.snapshot"},
		"name twice":           {`{"recipes":[` + row("") + "," + row("") + `]}`, "recipes[1].name", "catalogue.snapshot"},
		"plugin without id":    {`{"recipes":[` + row("") + `],"bundled_plugins":[{}]}`, "bundled_plugins[0].id", "catalogue.snapshot"},
		"3,000 rows":           {`{"recipes":[` + strings.Repeat("1,", 2999) + `1]}`, "recipes", "catalogue.snapshot"},
		"5 MiB":                {`{"recipes":"` + strings.Repeat("x", 5<<20) + `"}`, "", "json.limit"},
		"a path for a version": {one(`supported_framework_versions=["` + strings.Repeat("9", 2000) + `"]`), "recipes[0].supported_framework_versions[0]", "catalogue.snapshot"},
	}
	for name, tt := range tests {
		c, report := ParseSnapshot([]byte(tt.src), dialect.Forge, "0.3.56")
		if c != nil || report.OK() {
			t.Errorf("%s: taken", name)
			continue
		}
		if !slices.ContainsFunc(report.Violations, func(v rule.Violation) bool { return v.Rule == tt.rule && (tt.field == "" || v.Field == tt.field) }) {
			t.Errorf("%s: %s of %s is not among %v", name, tt.rule, tt.field, report.Violations)
		}
	}
	if _, report := ParseSnapshot([]byte(one("")), dialect.Forge, "newest"); report.OK() {
		t.Error("a release that is no version is taken")
	}
}

func TestHandshake(t *testing.T) {
	c, _ := Builtin(dialect.Forge, "0.3.56")
	older, _ := Builtin(dialect.Forge, "0.3.51")
	grpo, _ := c.Lookup("verl/grpo")
	old, _ := older.Lookup("verl/grpo")
	good := Claim{
		Recipe: grpo.Name, Version: grpo.Version, Digest: grpo.Digest, Kind: "verl", FrameworkVersion: "0.9.0",
		RuntimeID: "verl-0.9.0", CoreVersion: "0.3.56",
	}
	if _, found, ok := c.Handshake(good); !ok || found != nil {
		t.Fatalf("the client's own claim: %v", found)
	}
	custom, _ := c.Lookup("custom/custom")
	if _, found, ok := c.Handshake(Claim{Recipe: custom.Name, Version: custom.Version, Digest: custom.Digest, Kind: "custom", FrameworkVersion: "user-managed", CoreVersion: "0.3.56"}); !ok || found != nil {
		t.Errorf("custom without a runtime id: %v", found)
	}
	tests := []struct {
		change func(*Claim)
		rule   rule.ID
		field  string
		says   []string
	}{
		{func(c *Claim) { c.Recipe = "verl/gpro" }, "job.handshake.recipe.name", "spec.recipe.name", []string{"verl/gpro", "forge 0.3.56", "verl/grpo"}},
		{func(c *Claim) { c.Version = "0.8.0" }, "job.handshake.recipe.version", "spec.recipe.version", []string{"0.8.0", "0.9.0"}},
		{func(c *Claim) { c.Digest = old.Digest }, "job.handshake.recipe.digest", "spec.recipe.digest", []string{old.Digest, grpo.Digest, "its digest in forge 0.3.51"}},
		{func(c *Claim) { c.Kind = "trl" }, "job.handshake.framework.kind", "spec.framework.kind", []string{"trl", "verl"}},
		{func(c *Claim) { c.FrameworkVersion = "1.0.0" }, "job.handshake.framework.version", "spec.framework.version", []string{"1.0.0", "0.9.0"}},
		{func(c *Claim) { c.RuntimeID = "" }, "job.handshake.runtime_id", "spec.framework.runtime_id", []string{`""`, "verl-0.9.0"}},
		{func(c *Claim) { c.CoreVersion = "1.0" }, "job.core_version.range", "provenance.core_version", []string{"1.0", ">=0.1,<1"}},
		{func(c *Claim) { c.CoreVersion = "newest" }, "job.core_version.range", "provenance.core_version", []string{"newest", ">=0.1,<1"}},
	}
	for _, tt := range tests {
		claim := good
		tt.change(&claim)
		_, found, _ := c.Handshake(claim)
		if len(found) != 1 || found[0].Rule != tt.rule || found[0].Field != tt.field {
			t.Errorf("%s: %v", tt.rule, found)
			continue
		}
		for _, word := range tt.says {
			if !strings.Contains(found[0].Message, word) {
				t.Errorf("%s: %q does not name %s", tt.rule, found[0].Message, word)
			}
		}
	}
	if _, found, _ := c.Handshake(Claim{Recipe: grpo.Name, Version: "x", Digest: "y", Kind: "z", FrameworkVersion: "v", CoreVersion: "9"}); len(found) != 5 {
		t.Errorf("all at once: %v", found)
	}
	if _, found, _ := c.Handshake(Claim{Recipe: grpo.Name, CoreVersion: "0.4.0.dev1"}); found != nil {
		t.Errorf("a pre-release within the range: %v", found)
	}
}

func packed(name, owner string) Entry {
	d := digest.FromBytes([]byte(name + owner))
	method := name[strings.IndexByte(name, '/')+1:]
	return Entry{
		Name: name, Version: "1.0.0", Digest: d.String(), Framework: framework(name), Adapter: framework(name),
		Versions: []Variant{{Version: "1.0", RuntimeID: "r-1.0"}}, Pack: &Pack{Owner: owner, Name: method, Version: "1.0.0", Content: d, Tree: d, Manifest: d},
	}
}

func TestWithPacks(t *testing.T) {
	base, _ := Builtin(dialect.TunePlane, "0.4.0")
	all, shadowed := base.WithPacks([]Entry{packed("verl/zeta", "bob"), packed("verl/grpo", "mallory"), packed("verl/alpha", "a.b"), packed("verl/alpha", "c")})
	if len(all.Entries()) != len(base.Entries())+2 || all.Digest() == base.Digest() {
		t.Errorf("%d entries", len(all.Entries()))
	}
	if len(shadowed) != 2 || shadowed[0].Pack.Owner != "c" || shadowed[1].Pack.Owner != "mallory" {
		t.Errorf("shadowed %v", shadowed)
	}
	if e, _ := all.Lookup("verl/grpo"); e.Pack != nil {
		t.Error("a pack replaced what ships in the client")
	}
	if got := all.Entries()[len(base.Entries())].Name; got != "verl/alpha" {
		t.Errorf("packs begin with %s", got)
	}
	for alias, want := range map[string]string{"verl/a.b.alpha": "verl/alpha", "verl/bob.zeta": "verl/zeta"} {
		if e, isAlias, ok := all.Resolve(alias); !ok || !isAlias || e.Name != want {
			t.Errorf("%s is %s (%t, %t)", alias, e.Name, isAlias, ok)
		}
	}
	if e, isAlias, ok := all.Resolve("verl/zeta"); !ok || isAlias || e.Alias() != "verl/bob.zeta" {
		t.Error("a name is taken for an alias")
	}
	if _, _, ok := all.Resolve("verl/builtin.grpo"); ok {
		t.Error("what ships in the client has an alias")
	}
}

func recipe(t *testing.T, d dialect.Dialect) *pack.Recipe {
	t.Helper()
	table := `{"lr":{"name":"lr","type":"float","path":"optim.lr","path_overrides":[["2.0","opt.lr"]],"minimum":0,"exclusive_minimum":true},` +
		`"steps":{"name":"steps","type":"int","path":"train.steps","required":true,"maximum":10},` +
		`"mode":{"name":"mode","type":"enum","path":"same","choices":["a","b"]},"other":{"name":"other","type":"str","path":"same"},` +
		`"new":{"name":"new","type":"bool","path":"new","versions":["2.0"]}}`
	r := &pack.Recipe{Dialect: d, Name: "tune", Version: "1.2.0", Framework: "labfw", CoreRequires: ">=0.3,<1", Roles: []string{"actor"}, Digest: digest.FromBytes(nil)}
	for _, part := range []struct {
		src string
		to  any
	}{
		{table, &r.Params},
		{`{"export":{"kind":"module","value":"x"}}`, &r.Lifecycle},
		{`{"observability":"external","integration":"tuneplane/framework-labfw"}`, &r.AdapterOptions},
		{`{"1.0":{"runtime_id":"labfw-1.0"},"2.0":{"runtime_id":"labfw-2.0"}}`, &r.Runtime.Versions},
	} {
		if err := json.Unmarshal([]byte(part.src), part.to); err != nil {
			t.Fatal(err)
		}
	}
	r.Runtime.DefaultVersion = "2.0"
	return r
}

func TestFromRecipe(t *testing.T) {
	r := recipe(t, dialect.TunePlane)
	e := FromRecipe(r, Pack{Owner: "alice", Name: "tune", Version: "1.2.0"})
	if e.Name != "labfw/tune" || e.Adapter != "labfw" || e.DefaultVersion != "2.0" || e.Digest != r.Digest.String() || e.Observability != External ||
		e.Integration != "tuneplane/framework-labfw" || !slices.Equal(e.Lifecycle, []string{"export"}) || e.Plugins == nil ||
		!slices.Equal(e.Supported(), []string{"1.0", "2.0"}) || e.Alias() != "labfw/alice.tune" || e.CoreRequires != ">=0.3,<1" {
		t.Errorf("%+v", e)
	}
	var back Entry
	if err := json.Unmarshal(must(json.Marshal(e)), &back); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(must(json.Marshal(back)), must(json.Marshal(e))) {
		t.Errorf("what is kept reads as another entry: %s", must(json.Marshal(back)))
	}
	if _, found := back.Hyperparams(value(t, `{"steps":11}`), "1.0"); len(found) != 1 {
		t.Errorf("what is kept checks nothing: %v", found)
	}
}

func value(t *testing.T, src string) *pyvalue.Value {
	t.Helper()
	v, report := pyjson.Load([]byte(src), pyjson.Options{})
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	return v
}

func TestHyperparams(t *testing.T) {
	e := FromRecipe(recipe(t, dialect.TunePlane), Pack{Owner: "alice", Name: "tune", Version: "1"})
	tests := []struct {
		given, version string
		keys           string
		rules          string
	}{
		{`{"lr":0.1,"steps":3}`, "1.0", "lr steps", ""},
		{`{"optim.lr":1e-6,"steps":3}`, "1.0", "lr steps", "job.hyperparams.path_key"},
		{`{"opt.lr":1e-6,"steps":3}`, "2.0", "lr steps", "job.hyperparams.path_key"},
		{`{"optim.lr":1e-6,"steps":3}`, "2.0", "optim.lr steps", "job.hyperparams.recipe"},
		{`{"optim.lr":1,"lr":2,"steps":3}`, "1.0", "optim.lr lr steps", "job.hyperparams.recipe"},
		{`{"same":"a","steps":3}`, "1.0", "same steps", "job.hyperparams.recipe"},
		{`{"steps":3.0}`, "1.0", "steps", "job.hyperparams.recipe"},
		{`{"steps":true}`, "1.0", "steps", "job.hyperparams.recipe"},
		{`{"steps":11}`, "1.0", "steps", "job.hyperparams.recipe"},
		{`{"steps":10,"lr":0}`, "1.0", "steps lr", "job.hyperparams.recipe"},
		{`{"steps":10,"lr":1}`, "1.0", "steps lr", ""},
		{`{"steps":10,"mode":"c"}`, "1.0", "steps mode", "job.hyperparams.recipe"},
		{`{"steps":10,"new":true}`, "1.0", "steps new", "job.hyperparams.recipe"},
		{`{"steps":10,"new":true}`, "2.0", "steps new", ""},
		{`{}`, "1.0", "", "job.hyperparams.recipe"},
		{`{"typo":1,"steps":"x"}`, "1.0", "typo steps", "job.hyperparams.recipe job.hyperparams.recipe"},
	}
	for _, tt := range tests {
		stored, found := e.Hyperparams(value(t, tt.given), tt.version)
		var keys, rules []string
		for _, it := range stored.Items {
			keys = append(keys, it.Key.Text)
		}
		for _, v := range found {
			rules = append(rules, string(v.Rule))
			if !strings.HasPrefix(v.Field, "spec.hyperparams") {
				t.Errorf("%s: field %s", tt.given, v.Field)
			}
		}
		if strings.Join(keys, " ") != tt.keys || strings.Join(rules, " ") != tt.rules {
			t.Errorf("%s for %s: keys %v, %v; want %s, %s", tt.given, tt.version, keys, found, tt.keys, tt.rules)
		}
	}
	unknown := e
	unknown.Params = nil
	given := value(t, `{"anything":[1]}`)
	if stored, found := unknown.Hyperparams(given, "1.0"); stored != given || found != nil {
		t.Error("a recipe whose parameters are not known refuses some")
	}
}

func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(`{"recipes":[{"name":"a/b","version":"1","digest":"sha256:` + strings.Repeat("a", 64) + `","framework":"a","supported_framework_versions":["1"],"runtime":{"versions":{"1":{}}}}]}`))
	f.Add([]byte(`{"recipes":[null],"bundled_plugins":[[]]}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		c, report := ParseSnapshot(src, dialect.TunePlane, "0.4.0")
		if (c == nil) == report.OK() {
			t.Fatalf("catalogue %v, report %v", c, report.Violations)
		}
		if c != nil {
			if _, err := json.Marshal(c.Answer(false)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkDigest(b *testing.B) {
	base, _ := Builtin(dialect.TunePlane, "0.4.0")
	var packs []Entry
	for i := range 5000 {
		packs = append(packs, packed(fmt.Sprintf("fw%d/m%d", i%7, i), "alice"))
	}
	for b.Loop() {
		all, _ := base.WithPacks(packs)
		all.Digest()
	}
}
