package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyyaml"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
)

// asJSON is a YAML document of testdata/packs as JSON, which YAML reads alike, for the other dialect if need be.
func asJSON(t *testing.T, file string, d dialect.Dialect) string {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("../testdata/packs", file))
	if err != nil {
		t.Fatal(err)
	}
	text := string(src)
	if d == dialect.TunePlane {
		text = strings.ReplaceAll(text, "forge/", "tuneplane/")
	}
	doc, report := pyyaml.Load([]byte(text), pyyaml.Options{})
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	out, err := canonical.Python(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// documentFamilies are the families of rules about a document of a pack, with the smallest document and the gate.
var documentFamilies = map[string]struct {
	smallest func(*testing.T, dialect.Dialect) string
	check    func([]byte, CheckOptions) Decision
}{
	"manifest": {func(_ *testing.T, d dialect.Dialect) string {
		if d == dialect.TunePlane {
			return `{"schema":"tuneplane/plugin/v1","name":"grad-clip","version":"1.0.0","capability":"algorithm","entrypoint":"main:install"}`
		}
		return `{"schema":"forge/plugin/v1","name":"grad-clip","version":"1.0.0","kind":"algorithm","entrypoint":"main:install"}`
	}, CheckManifest},
	"recipe":    {func(t *testing.T, d dialect.Dialect) string { return asJSON(t, "tiny-sft/recipe.yaml", d) }, CheckRecipe},
	"benchmark": {func(t *testing.T, d dialect.Dialect) string { return asJSON(t, "arithmetic/benchmark.yaml", d) }, CheckBenchmark},
	"yaml": {nil, func(src []byte, opt CheckOptions) Decision {
		_, report := pyyaml.Load(src, pyyaml.Options{})
		return report.Decide(Publish, Subject{}, nil)
	}},
	"json": {nil, func(src []byte, opt CheckOptions) Decision {
		_, report := pyjson.Load(src, pyjson.Options{})
		return report.Decide(Publish, Subject{}, nil)
	}},
}

// TestDocumentExamples runs the examples of the rules about documents of packs through their gate.
func TestDocumentExamples(t *testing.T) {
	var ran int
	for _, info := range rule.All() {
		family, _, _ := strings.Cut(string(info.ID), ".")
		f, ok := documentFamilies[family]
		if !ok || info.Example.Text != "" {
			continue
		}
		ran++
		d, src := info.ExampleDialect(), info.Example.Value
		if info.Example.Path != "" {
			src = put(t, f.smallest(t, d), info.Example.Path, src)
		}
		decision := f.check([]byte(src), CheckOptions{Dialect: d})
		found := false
		for _, v := range append(decision.Violations, decision.Warnings...) {
			found = found || v.Rule == info.ID
		}
		if !found {
			t.Errorf("the example of %s, %.300s, breaks %v %v", info.ID, src, decision.Violations, decision.Warnings)
		}
	}
	t.Logf("%d examples", ran)
}
