package lock

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// testCatalogue has one recipe, with a deprecated framework version, and one of which little is known.
func testCatalogue(t *testing.T) *catalogue.Catalogue {
	t.Helper()
	var params catalogue.Params
	if err := params.UnmarshalJSON([]byte(`{"lr": {"name": "lr", "type": "float", "path": "optim.lr"}, "note": {"name": "note", "type": "str"}}`)); err != nil {
		t.Fatal(err)
	}
	return catalogue.New(dialect.Forge, "0.3.56", []catalogue.Entry{{
		Name: "fw/tune", Version: "1.0", Digest: "sha256:d", ManifestDigest: "sha256:m", TemplateDigest: "sha256:t", Framework: "fw", CoreRequires: ">=0.1,<1",
		DefaultVersion: "2.0", Versions: []catalogue.Variant{{Version: "1.0", RuntimeID: "fw-1", Status: catalogue.Deprecated, Sunset: "2027-01-01"}, {Version: "2.0", RuntimeID: "fw-2"}},
		Params: &params, Entrypoint: &pack.Entrypoint{Kind: "file", Value: "run.py"},
	}, {
		Name: "fw/vague", Version: "1.0", Digest: "sha256:d", Framework: "fw", DefaultVersion: "2.0", Versions: []catalogue.Variant{{Version: "2.0", RuntimeID: "fw-2"}},
	}}, nil)
}

func inspect(t *testing.T, text string) Inspection {
	t.Helper()
	return Inspect(Subject{Source: []byte(text), Path: "x/recipe.lock.json", Command: "x", Catalogue: testCatalogue(t)})
}

const current = `{
  "apiVersion": "forge/recipe-lock/v4",
  "bindings": {
    "entrypoint": {
      "kind": "file",
      "value": "run.py"
    },
    "params": {
      "lr": {
        "path": "optim.lr",
        "type": "float"
      }
    }
  },
  "created_by": {
    "core_version": "0.3.56"
  },
  "framework": {
    "kind": "fw",
    "runtime_id": "fw-2",
    "version": "2.0"
  },
  "recipe": {
    "digest": "sha256:d",
    "manifest_digest": "sha256:m",
    "name": "fw/tune",
    "template_digest": "sha256:t",
    "version": "1.0"
  },
  "requires": {
    "core": ">=0.1,<1"
  }
}
`

// A message names what stands in the way, where it is recorded, and what to do.
func TestMessages(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(current, old, new, 1) }
	for name, test := range map[string]struct {
		text  string
		state State
		want  []string
	}{
		"current":    {current, Current, nil},
		"older":      {replace("sha256:d", "sha256:e"), Compatible, []string{"records an older form of fw/tune"}},
		"deprecated": {replace(`"fw-2",`+"\n"+`    "version": "2.0"`, `"fw-1", "version": "1.0"`), UpgradeAdvised, []string{"fw 1.0 is deprecated and goes after 2027-01-01", "Move to 2.0"}},
		"runtime":    {replace("fw-2", "fw-3"), Incompatible, []string{"framework.runtime_id was fw-3 and is fw-2", "sf recipe upgrade x"}},
		"gone":       {replace(`"lr"`, `"lrate"`), Incompatible, []string{"the parameter 'lrate' is gone from fw/tune"}},
		"moved":      {replace("optim.lr", "opt.lr"), Incompatible, []string{"moved from opt.lr to optim.lr"}},
		"retyped":    {replace(`"float"`, `"int"`), Incompatible, []string{"changed its type from int to float"}},
		"entrypoint": {replace("run.py", "go.py"), Incompatible, []string{"the entrypoint moved from file:go.py to file:run.py"}},
		"removed":    {replace(`"version": "2.0"`, `"version": "3.0"`), RuntimeRemoved, []string{"x/recipe.lock.json:21:16: framework.version", `no longer has fw "3.0"; it has 1.0, 2.0`, "--accept-runtime-change"}},
		"unknown":    {replace("fw/tune", "fw/tone"), Malformed, []string{"x/recipe.lock.json:26:13: recipe.name", "did you mean fw/tune?"}},
		"unnamed":    {replace("fw/tune", " "), Malformed, []string{"recipe.name: is missing or empty"}},
		"api":        {replace("/v4", "/v9"), Malformed, []string{`x/recipe.lock.json:2:17: apiVersion: found "forge/recipe-lock/v9"`}},
		"cut":        {current[:40], Malformed, []string{"x/recipe.lock.json:2:"}},
		"a list":     {"[]", Malformed, []string{"the document must be an object, found list"}},
		"deep":       {strings.Repeat("[", 20_000), Malformed, []string{"deep"}},
	} {
		got := inspect(t, test.text)
		if got.State != test.state || got.Admits != test.state.Admits() {
			t.Errorf("%s: %s (%s), want %s", name, got.State, got.Message, test.state)
		}
		for _, want := range test.want {
			if !strings.Contains(got.Message, want) {
				t.Errorf("%s: %q does not say %q", name, got.Message, want)
			}
		}
	}
	if got := Inspect(Subject{Path: "p", Catalogue: testCatalogue(t)}); got.State != Malformed || !strings.Contains(got.Message, "sf new") {
		t.Errorf("no file: %s: %s", got.State, got.Message)
	}
	if got := Inspect(Subject{Path: "p", Unread: errors.New("no right to read it"), Catalogue: testCatalogue(t)}); got.State != Malformed || got.Message != "no right to read it" {
		t.Errorf("a file that can't be read: %s: %s", got.State, got.Message)
	}
	old := catalogue.New(dialect.Forge, "1.5", testCatalogue(t).Entries(), nil)
	if got := Inspect(Subject{Source: []byte(current), Path: "p", Catalogue: old}); got.State != CoreIncompat || !strings.Contains(got.Message, `requires the client ">=0.1,<1", this is 1.5`) {
		t.Errorf("another client release: %s: %s", got.State, got.Message)
	}
}

func configOf(text string) func(catalogue.Entry) (*pyvalue.Value, error) {
	return func(catalogue.Entry) (*pyvalue.Value, error) {
		doc, err := load([]byte(text))
		if err != nil {
			return nil, err
		}
		return doc, nil
	}
}

func TestPlan(t *testing.T) {
	v2 := `{"apiVersion": "forge/recipe-lock/v2", "recipe": {"name": "fw/tune", "framework": "fw", "framework_version": "2.0"}, "x": 1}`
	plan, err := inspect(t, v2).Plan(Upgrade{}, configOf(`{"optim": {"lr": null}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(current, string(plan.Text)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]Change{{Field: "entrypoint", Current: "file:run.py"}, {Field: "params.lr", Current: "optim.lr (float)"}},
		DiffBindings(inspect(t, v2).Lock(), plan.Lock)); diff != "" {
		t.Errorf("bindings (-want +got)\n%s", diff)
	}
	gone := strings.Replace(current, `"version": "2.0"`, `"version": "3.0"`, 1)
	for name, test := range map[string]struct {
		text    string
		upgrade Upgrade
		version string
		refused State
	}{
		"keeps the version":      {current, Upgrade{}, "2.0", ""},
		"moves":                  {current, Upgrade{FrameworkVersion: " 1.0 "}, "1.0", ""},
		"accepts nothing else":   {current, Upgrade{AcceptRuntimeChange: true}, "2.0", ""},
		"gone":                   {gone, Upgrade{}, "", RuntimeRemoved},
		"gone, accepted":         {gone, Upgrade{AcceptRuntimeChange: true}, "2.0", ""},
		"gone, another":          {gone, Upgrade{FrameworkVersion: "1.0"}, "1.0", ""},
		"unknown version":        {current, Upgrade{FrameworkVersion: "9"}, "", RuntimeRemoved},
		"malformed":              {"{}", Upgrade{FrameworkVersion: "2.0"}, "", Malformed},
		"incompatible is mended": {strings.Replace(current, "run.py", "go.py", 1), Upgrade{}, "2.0", ""},
	} {
		plan, err := inspect(t, test.text).Plan(test.upgrade, configOf(`{}`))
		refused, ok := errors.AsType[*Refused](err)
		switch {
		case test.refused != "":
			if !ok || refused.State != test.refused {
				t.Errorf("%s: %v, want it refused as %s", name, err, test.refused)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case plan.Lock.FrameworkVersion != test.version || plan.State != Current:
			t.Errorf("%s: moves to %s (%s), want %s", name, plan.Lock.FrameworkVersion, plan.State, test.version)
		}
	}
	if _, err := inspect(t, current).Plan(Upgrade{}, configOf(`[`)); err == nil {
		t.Error("a config that can't be read did not end the upgrade")
	}
	vague := strings.Replace(current, "fw/tune", "fw/vague", 1)
	if got := inspect(t, vague); got.State != Compatible {
		t.Errorf("a recipe of which little is known: %s: %s", got.State, got.Message)
	}
	if _, err := inspect(t, vague).Plan(Upgrade{}, configOf(`{}`)); err == nil || !strings.Contains(err.Error(), "sf admin catalog import") {
		t.Errorf("a lock of what is not known: %v", err)
	}
}

// What a lock says is written back the same, and no lock makes the reader fail.
func FuzzRecipeLock(f *testing.F) {
	f.Add(current)
	f.Add(`{"apiVersion": "forge/recipe-lock/v2", "recipe": {"name": ["x"], "framework": 1.50}}`)
	f.Add(`{"apiVersion": "forge/recipe-lock/v3", "recipe": {"name": "\ud800"}, "bindings": {"params": {"é": {"path": 1}}}}`)
	f.Fuzz(func(t *testing.T, src string) {
		r, err := ParseRecipe([]byte(src), dialect.Forge)
		if err != nil {
			return
		}
		r.APIVersion = dialect.Forge.Names().RecipeLock
		text, err := r.Encode()
		if err != nil {
			return // a lone surrogate
		}
		again, err := ParseRecipe(text, dialect.Forge)
		if err != nil {
			t.Fatalf("does not read back: %v\n%s", err, text)
		}
		twice, err := again.Encode()
		if err != nil || string(twice) != string(text) {
			t.Fatalf("writing is not stable: %v\n%s\n%s", err, text, twice)
		}
	})
}
