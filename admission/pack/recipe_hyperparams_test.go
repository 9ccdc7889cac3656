package pack

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// hyperparamsAnswer is what a client made of a job's parameters.
type hyperparamsAnswer struct {
	OK    json.RawMessage
	Field string
	Crash string
}

// What the real clients answer (testdata/vectors/hyperparams-vectors.py): verdict, field and the parameters filled in.
func TestHyperparamsVectors(t *testing.T) {
	raw, err := testdata.FS.ReadFile("vectors/hyperparams-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Vectors []struct {
			ID, Params, Given    string
			StarForge, TunePlane hyperparamsAnswer
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	soft := softest(t)
	agree := 0
	for _, v := range doc.Vectors {
		for d, want := range map[dialect.Dialect]hyperparamsAnswer{dialect.Forge: v.StarForge, dialect.TunePlane: v.TunePlane} {
			src := fmt.Sprintf(soundRecipe, d.Names().Artifacts)
			src = src[:len(src)-len(soundParams)] + "params: " + v.Params + "\n"
			r, report := ParseRecipe([]byte(src), RecipeOptions{Policy: soft, Dialect: d})
			given, read := pyjson.Load([]byte(v.Given), pyjson.Options{Policy: soft})
			if !report.OK() || !read.OK() {
				t.Fatalf("%s: %v, %v", v.ID, report.Violations, read.Violations)
			}
			if diff := hyperparamsDiff(t, r, given, want); diff != "" {
				t.Errorf("%s %s: %s of %s: %s", v.ID, d, v.Given, v.Params, diff)
				continue
			}
			agree++
		}
	}
	t.Logf("hyperparams: %d agree, 0 differ on purpose", agree)
}

func hyperparamsDiff(t *testing.T, r *Recipe, given *pyvalue.Value, want hyperparamsAnswer) string {
	t.Helper()
	filled, report := r.CheckHyperparams(given, "")
	switch {
	case want.OK == nil && report.OK():
		return "accepted; the client refuses"
	case want.Field != "" && report.Violations[0].Field != want.Field:
		return fmt.Sprintf("the first violation is %v; the client names the field %s", report.Violations[0], want.Field)
	case want.OK == nil:
		return ""
	case !report.OK():
		return fmt.Sprintf("%v; the client accepts", report.Violations)
	}
	got, wanted := jsonOf(t, plain(t, []byte(jsonOf(t, filled)))), jsonOf(t, plain(t, want.OK))
	if got != wanted {
		return fmt.Sprintf("filled in %s, the client %s", got, wanted)
	}
	return ""
}
