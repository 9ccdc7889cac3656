package catalogue

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
)

// Every parameter of every recipe that ships in a client is checked as the client itself checks it
// (testdata/vectors/bundled-hyperparams-vectors.py): verdict, field, and what is filled in.
func TestBundledHyperparamsVectors(t *testing.T) {
	var file struct {
		Vectors []struct {
			Dialect                       dialect.Dialect
			Recipe, Version, Given, Field string
			Filled                        json.RawMessage
		}
	}
	readFacts(t, "bundled-hyperparams-vectors.json", &file)
	refused := 0
	for _, v := range file.Vectors {
		e, ok := newest(t, v.Dialect).Lookup(v.Recipe)
		given, report := pyjson.Load([]byte(v.Given), pyjson.Options{})
		if !ok || !report.OK() {
			t.Fatalf("%s %s %s: %v", v.Dialect, v.Recipe, v.Given, report.Violations)
		}
		r := pack.Recipe{Framework: e.Framework, Name: e.Method(), Params: *e.Params}
		filled, found := r.CheckHyperparams(given, v.Version)
		switch {
		case v.Filled == nil:
			refused++
			if found.OK() || found.Violations[0].Field != v.Field {
				t.Errorf("%s %s %s %s: %v; the client refuses %s", v.Dialect, v.Recipe, v.Version, v.Given, found.Violations, v.Field)
			}
		case !found.OK():
			t.Errorf("%s %s %s %s: %v; the client accepts", v.Dialect, v.Recipe, v.Version, v.Given, found.Violations)
		default:
			if diff := cmp.Diff(values(t, v.Filled), values(t, must(json.Marshal(filled)))); diff != "" {
				t.Errorf("%s %s %s (-client +ours):\n%s", v.Dialect, v.Recipe, v.Given, diff)
			}
		}
	}
	t.Logf("bundled-hyperparams: %d agree, of which %d refused; 0 differ on purpose", len(file.Vectors), refused)
}

func values(t *testing.T, src []byte) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal(src, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
