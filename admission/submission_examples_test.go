package admission

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// put changes a document at a dotted path: a JSON value stands there afterwards, or nothing.
func put(t *testing.T, doc, path, value string) string {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal([]byte(doc), &root); err != nil {
		t.Fatal(err)
	}
	keys := strings.Split(path, ".")
	at := root
	for _, key := range keys[:len(keys)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = make(map[string]any)
			at[key] = next
		}
		at = next
	}
	if at[keys[len(keys)-1]] = json.RawMessage(value); value == "" {
		delete(at, keys[len(keys)-1])
	}
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// nothingElse resolves nothing but what the examples have beside what they are about.
func nothingElse(ref jobspec.Reference) Resolution {
	if ref.Text == "gsm8k" || ref.Kind == jobspec.RefSource || ref.Kind == jobspec.RefMetric {
		return Resolution{State: Resolved}
	}
	return Resolution{State: NotFound}
}

// TestSubmissionExamples runs the examples of the rules that need a server through the gate, and asks that every rule of the
// gate has one. Each breach names its place in the document.
func TestSubmissionExamples(t *testing.T) {
	var ran int
	for _, info := range rule.All() {
		if !slices.Contains(info.Gates, Submission) || !strings.HasPrefix(string(info.ID), "job.") {
			continue
		}
		if info.Example.None() {
			t.Errorf("%s has no example", info.ID)
			continue
		}
		if strings.HasPrefix(info.Source, "jobspec.md") && !strings.HasPrefix(info.Source, "jobspec.md 8") || info.Example.Text != "" {
			continue // package jobspec runs those, or it is told
		}
		ran++
		d := info.ExampleDialect()
		in := inputOf(t, d, put(t, document(d), info.Example.Path, info.Example.Value))
		in.Resolve = nothingElse
		decision, _ := CheckSubmission(in)
		list := decision.Violations
		if info.Warns(d, rule.Policy{}) {
			list = decision.Warnings
		}
		i := slices.IndexFunc(list, func(v Violation) bool { return v.Rule == info.ID })
		if i < 0 {
			t.Errorf("the example of %s breaks %v %v", info.ID, decision.Violations, decision.Warnings)
			continue
		}
		if v := list[i]; v.Line == 0 || v.Column == 0 || v.Pointer == "" || v.Hint == "" {
			t.Errorf("%s: no place or no fix: %+v", info.ID, v)
		}
	}
	t.Logf("%d examples", ran)
}

// TestSubmissionPlaces checks that a breach that only the server sees stands where it is in the document, in document order with
// what the document alone breaks.
func TestSubmissionPlaces(t *testing.T) {
	src := `{
  "apiVersion": "tuneplane/v1", "kind": "TrainingJob", "metadata": {"name": "demo"},
  "provenance": {"core_version": "9.0"},
  "spec": {
    "recipe": {
      "name": "verl/tune",
      "version": "9.9.9",
      "digest": "sha256:` + strings.Repeat("ab", 32) + `"
    },
    "source": {"exp": "experiments/demo"},
    "framework": {"kind": "verl", "version": "0.9.0", "runtime_id": "other"},
    "hyperparams": {"lr": 1, "optim.steps": 2},
    "plugins": [
      {"id": "alice/opsd", "version": "1.0.1", "digest": "` + opsdContent.String() + `"},
      {"id": "tuneplane/framework-verl", "version": "0.4.0", "digest": "` + opsdContent.String() + `"}
    ],
    "resources": {"pools": [{"name": "all", "series": "h900", "gpus_per_node": 99}], "roles": {"actor": "all", "a.b": "all"}}
  }
}`
	in := inputOf(t, dialect.TunePlane, src)
	in.File = "job.json"
	in.Beside = &Beside{Exp: "experiments/other"}
	decision, _ := CheckSubmission(in)
	if decision.Catalogue != in.Catalogue.Digest().String() {
		t.Errorf("the decision names the catalogue %q", decision.Catalogue)
	}
	var got []string
	for _, v := range decision.Violations {
		got = append(got, v.File+" "+place(v)+" "+string(v.Rule)+" "+v.Pointer)
	}
	want := []string{
		"job.json 3:34 job.core_version.range /provenance/core_version",
		"job.json 7:18 job.handshake.recipe.version /spec/recipe/version",
		"job.json 8:17 job.handshake.recipe.digest /spec/recipe/digest",
		"job.json 11:69 job.handshake.runtime_id /spec/framework/runtime_id",
		"job.json 12:30 job.hyperparams.recipe /spec/hyperparams",
		"job.json 14:39 job.plugins.record.unknown /spec/plugins/0/version",
		"job.json 15:72 job.plugins.record.digest /spec/plugins/1/digest",
		"job.json 17:28 job.quota.gpus /spec/resources/pools",
		"job.json 17:55 job.resources.series.exists /spec/resources/pools/0/series",
		" 0:0 job.meta.agree ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSeedExamplesWithCatalogue checks the platform's own documents against the bundled recipe that they name: what their
// index.json says under with_catalogue.
func TestSeedExamplesWithCatalogue(t *testing.T) {
	var index struct {
		Examples []struct {
			File      string
			Dialect   dialect.Dialect
			Gatehouse struct {
				With *struct {
					Hyperparams json.RawMessage
					Warnings    []RuleID
				} `json:"with_catalogue"`
			}
		}
	}
	const folder = "jobspec/testdata/seed-examples/"
	read := func(file string) []byte {
		src, err := os.ReadFile(folder + file)
		if err != nil {
			t.Fatal(err)
		}
		return src
	}
	if err := json.Unmarshal(read("index.json"), &index); err != nil {
		t.Fatal(err)
	}
	var checked int
	for _, e := range index.Examples {
		want := e.Gatehouse.With
		if want == nil {
			continue
		}
		checked++
		in := inputOf(t, e.Dialect, string(read(e.File)))
		decision, _ := CheckSubmission(in)
		for _, id := range want.Warnings {
			if !slices.ContainsFunc(decision.Warnings, func(v Violation) bool { return v.Rule == id }) {
				t.Errorf("%s: %s is not among the warnings %v", e.File, id, decision.Warnings)
			}
		}
		var stored struct {
			Spec struct{ Hyperparams json.RawMessage }
		}
		value, ok := decision.Value.(SubmissionValue)
		if !ok {
			t.Fatalf("%s: no value: %v", e.File, decision.Violations)
		}
		if err := json.Unmarshal(value.Spec, &stored); err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, want.Hyperparams); err != nil {
			t.Fatal(err)
		}
		if got := string(stored.Spec.Hyperparams); got != compact.String() {
			t.Errorf("%s: hyperparameters are stored as %s, want %s", e.File, got, compact.String())
		}
	}
	if checked != 3 {
		t.Errorf("checked %d documents, want 3", checked)
	}
}

func place(v Violation) string { return strconv.Itoa(v.Line) + ":" + strconv.Itoa(v.Column) }
