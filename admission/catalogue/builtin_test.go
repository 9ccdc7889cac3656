package catalogue

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
)

// What the real packages say of their recipes when they are asked (testdata/vectors/bundled-catalogue-*.json) is what the
// data says, which was read out of the packages' files.
func TestBuiltinFacts(t *testing.T) {
	for file, c := range map[string]*Catalogue{"bundled-catalogue-sf.json": newest(t, dialect.Forge), "bundled-catalogue-tp.json": newest(t, dialect.TunePlane)} {
		var facts struct {
			Recipes []struct {
				ID                string
				ManifestDigest    string `json:"manifest_digest"`
				TemplateDigest    string `json:"template_digest"`
				Digest            string
				Roles, Plugins    []string
				Entrypoint        struct{ Kind, Value string }
				Observability     string
				LifecycleGPUs     map[string]int64           `json:"lifecycle_resources"`
				ParameterDefaults map[string]json.RawMessage `json:"param_defaults"`
			}
			RequiredInputs map[string][]string `json:"required_inputs"`
			Integrations   []Bundled
		}
		readFacts(t, file, &facts)
		for _, want := range facts.Recipes {
			e, _ := c.Lookup(want.ID)
			got := want
			got.ManifestDigest, got.TemplateDigest, got.Digest, got.Roles, got.Plugins = e.ManifestDigest, e.TemplateDigest, e.Digest, e.Roles, e.Plugins
			got.Entrypoint.Kind, got.Entrypoint.Value, got.Observability = e.Entrypoint.Kind, e.Entrypoint.Value, e.Observability
			got.LifecycleGPUs = e.LifecycleResources
			if len(want.LifecycleGPUs) == 0 {
				want.LifecycleGPUs = nil
			}
			got.ParameterDefaults = make(map[string]json.RawMessage)
			for name, p := range e.Params.All() {
				if p.Default.Value != nil {
					got.ParameterDefaults[name], _ = json.Marshal(p.Default)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", file, want.ID, diff)
			}
			if inputs := facts.RequiredInputs; inputs != nil && !slices.Equal(inputs[e.Framework], e.RequiredInputs) {
				t.Errorf("%s %s: inputs %v, want %v", file, want.ID, e.RequiredInputs, inputs[e.Framework])
			}
		}
		if len(facts.Recipes) != len(c.Entries()) || len(facts.Integrations) != len(c.Bundled()) {
			t.Errorf("%s: %d recipes and %d packages, want %d and %d", file, len(c.Entries()), len(c.Bundled()), len(facts.Recipes), len(facts.Integrations))
		}
	}
}

func newest(t *testing.T, d dialect.Dialect) *Catalogue {
	t.Helper()
	c, ok := Builtin(d, DefaultRelease(d))
	if !ok {
		t.Fatalf("no release of %s", d)
	}
	return c
}

// The benchmarks too, of every release.
func TestBuiltinBenchmarks(t *testing.T) {
	for file, c := range releases(t) {
		var facts struct{ Benchmarks []Benchmark }
		readFacts(t, file, &facts)
		if diff := cmp.Diff(facts.Benchmarks, c.Benchmarks()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func releases(t *testing.T) map[string]*Catalogue {
	all := make(map[string]*Catalogue)
	for _, d := range dialect.All {
		for _, release := range Releases(d) {
			c, ok := Builtin(d, release)
			if !ok {
				t.Fatalf("no data of %s %s", d, release)
			}
			all["builtin-catalog-"+d.Names().Package+"-"+release+".json"] = c
		}
	}
	return all
}

// A snapshot that Encode wrote is the catalogue again, byte for byte what data holds.
func TestEncodeRoundTrip(t *testing.T) {
	for file, c := range releases(t) {
		src, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, report := ParseSnapshot(src, c.Dialect(), c.Release())
		if !report.OK() {
			t.Fatalf("%s: %v", file, report.Violations)
		}
		if diff := diffEntries(c.Entries(), again.Entries()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
		if have, err := data.ReadFile(dataFile(c.Dialect(), c.Release())); err != nil || string(have) != string(src) {
			t.Errorf("%s: the data is not what Encode writes (%v)", file, err)
		}
	}
}

// Hyperparameters of recipes that ship in a client are checked, as the client itself does: the rule of every kind is hit.
func TestBuiltinHyperparams(t *testing.T) {
	tests := []struct {
		dialect               dialect.Dialect
		recipe, version, json string
		fields                []string // of the violations
	}{
		{dialect.Forge, "verl/dapo", "0.9.0", `{"filter_metric":"acc","overlong_buffer_len":8,"overlong_penalty_factor":1}`, nil},
		{dialect.Forge, "verl/dapo", "0.9.0", `{"filter_metric":"none"}`, []string{"spec.hyperparams.filter_metric"}},
		{dialect.Forge, "verl/dapo", "0.9.0", `{"overlong_buffer_len":0}`, []string{"spec.hyperparams.overlong_buffer_len"}},
		{dialect.Forge, "verl/dapo", "0.9.0", `{"overlong_buffer_len":1.5,"overlong_buffer_enable":1}`, []string{"spec.hyperparams.overlong_buffer_enable", "spec.hyperparams.overlong_buffer_len"}},
		{dialect.TunePlane, "verl/dapo", "0.9.0", `{"overlong_bufer_len":1}`, []string{"spec.hyperparams"}},
		{dialect.TunePlane, "evalkit/benchmark", "1.0.0", `{"runner":"judge"}`, []string{"spec.hyperparams"}},
		{dialect.TunePlane, "evalkit/benchmark", "1.0.0", `{"runner":"judge","suites":"gsm8k"}`, nil},
		{dialect.TunePlane, "custom/custom", "user-managed", `{"x":1}`, []string{"spec.hyperparams"}},
	}
	for _, tt := range tests {
		e, _ := newest(t, tt.dialect).Lookup(tt.recipe)
		given, report := pyjson.Load([]byte(tt.json), pyjson.Options{})
		if !report.OK() {
			t.Fatal(report.Violations)
		}
		_, found := e.Hyperparams(given, tt.version)
		var fields []string
		for _, v := range found {
			fields = append(fields, v.Field)
		}
		slices.Sort(fields)
		if !slices.Equal(fields, tt.fields) {
			t.Errorf("%s %s %s: %v, want %v", tt.dialect, tt.recipe, tt.json, found, tt.fields)
		}
	}
}

// A parameter that only some framework versions offer is refused for the others; which those are comes from the data.
func TestBuiltinParameterVersions(t *testing.T) {
	seen := 0
	for _, e := range newest(t, dialect.TunePlane).Entries() {
		for name, p := range e.Params.All() {
			for _, version := range e.Supported() {
				if len(p.Versions) == 0 || p.Type != "bool" && p.Type != "int" && p.Type != "str" && p.Type != "float" {
					continue
				}
				seen++
				value := map[string]string{"bool": "true", "int": "4", "str": `"a"`, "float": "0.5"}[p.Type]
				if len(p.Choices) > 0 {
					raw, _ := json.Marshal(p.Choices[0])
					value = string(raw)
				}
				given, _ := pyjson.Load([]byte(`{"`+name+`":`+value+`}`), pyjson.Options{})
				_, found := e.Hyperparams(given, version)
				if offered := slices.Contains(p.Versions, version); offered != (len(found) == 0) {
					t.Errorf("%s %s of %s in %s: offered %t, found %v", e.Name, name, p.Versions, version, offered, found)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no parameter names its versions: the test tests nothing")
	}
}

// TestUnknownParameterNamesWhatWasMeant holds a refusal to the words that users of other tools write.
func TestUnknownParameterNamesWhatWasMeant(t *testing.T) {
	c := newest(t, dialect.Forge)
	e, ok := c.Lookup("nemo-rl/grpo")
	if !ok {
		t.Fatal("no nemo-rl/grpo")
	}
	for key, meant := range map[string]string{
		"lr": "learning_rate", "optimizer.lr": "learning_rate", "learning_rat": "learning_rate", "grpo.max_num_steps": "max_num_steps",
	} {
		_, found := e.Hyperparams(value(t, `{"`+key+`":1}`), "0.7.0")
		want := fmt.Sprintf("found %q (did you mean %s", key, meant)
		if len(found) == 1 && found[0].Rule == "job.hyperparams.path_key" {
			continue // a path of exactly one parameter is taken
		}
		if len(found) != 1 || !strings.HasPrefix(found[0].Message, want) || !strings.Contains(found[0].Message, fmt.Sprintf("which are %q", meant)) {
			t.Errorf("%s: %v, want %q", key, found, want)
		}
	}
}
