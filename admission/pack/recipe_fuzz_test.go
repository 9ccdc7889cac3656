package pack

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// softest turns every rule of ours that may be softened into a warning.
func softest(t testing.TB) rule.Policy {
	t.Helper()
	var ids []rule.ID
	for _, info := range rule.All() {
		if info.Softenable() {
			ids = append(ids, info.ID)
		}
	}
	p, err := rule.Soften(ids...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// seedDocuments hands the documents of the vectors and of the corpus to add.
func seedDocuments(t testing.TB, add func([]byte)) {
	t.Helper()
	for _, file := range []string{"recipe-vectors.json", "benchmark-vectors.json"} {
		for _, v := range readVectors(t, file) {
			for _, side := range []*vectorSide{v.StarForge, v.TunePlane} {
				if side == nil {
					continue
				}
				for _, e := range side.Input.Tree {
					if strings.HasSuffix(e.Path, ".yaml") {
						add(e.Data)
					}
				}
			}
		}
	}
	hostile, err := fs.Glob(testdata.FS, "corpus/y*.yaml")
	if err != nil || len(hostile) == 0 {
		t.Fatalf("corpus: %v, %v", hostile, err)
	}
	for _, p := range hostile {
		src, err := testdata.FS.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		add(src)
	}
}

// FuzzRecipe holds of recipe.yaml and benchmark.yaml that no document makes a reader panic or report without end,
// that every finding is of a rule in the table, that a value can be written as JSON, that an accepted recipe has its
// digests, and that softening the rules of ours changes no value.
func FuzzRecipe(f *testing.F) {
	seedDocuments(f, func(src []byte) { f.Add(src) })
	for _, d := range dialect.All {
		f.Add([]byte(sound(d)))
	}
	soft := softest(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, d := range dialect.All {
			r, report := ParseRecipe(src, RecipeOptions{Dialect: d, Name: "demo"})
			checkReport(t, report)
			softened, softReport := ParseRecipe(src, RecipeOptions{Dialect: d, Name: "demo", Policy: soft})
			checkReport(t, softReport)
			if r != nil {
				checkRecipe(t, r, softened, report)
			}
			b, report := ParseBenchmark(src, BenchmarkOptions{Dialect: d})
			checkReport(t, report)
			if b != nil {
				jsonOf(t, b.Localized("zh"))
			}
		}
	})
}

func checkReport(t *testing.T, report rule.Report) {
	t.Helper()
	if n := len(report.Violations) + len(report.Warnings); n > 8*maxFaults {
		t.Errorf("%d findings", n)
	}
	for _, v := range append(report.Violations, report.Warnings...) {
		if _, ok := rule.Lookup(v.Rule); !ok || v.Message == "" || len(v.Message) > 8<<10 || strings.ContainsAny(v.Message+v.Field, "\x00\x1b\n") {
			t.Errorf("finding %+v", v)
		}
	}
}

func checkRecipe(t *testing.T, r, softened *Recipe, report rule.Report) {
	t.Helper()
	if softened == nil || jsonOf(t, r.Record()) != jsonOf(t, softened.Record()) {
		t.Error("softening the rules of ours changes the value")
	}
	if report.OK() && (r.ManifestDigest.IsZero() || r.Digest.IsZero() || r.ID() == "/" || len(r.SupportedVersions()) == 0) {
		t.Errorf("accepted without its identity: %+v", r.Record())
	}
	_, faults := r.CheckHyperparams(nil, "")
	checkReport(t, faults)
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Errorf("no JSON: %v", err)
	}
	return string(text)
}
