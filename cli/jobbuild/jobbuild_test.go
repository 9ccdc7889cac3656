package jobbuild

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/pyyaml"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

func input(t *testing.T, d dialect.Dialect, recipe string) Input {
	t.Helper()
	c, ok := catalogue.Builtin(d, catalogue.DefaultRelease(d))
	if !ok {
		t.Fatal("no catalogue")
	}
	e, ok := c.Lookup(recipe)
	if !ok {
		t.Fatalf("no recipe %s", recipe)
	}
	return Input{
		Dialect: d, Release: c.Release(), Recipe: RecipeOf(c, e), Exp: "experiments/x", Project: "lab",
		Profiles:   []Profile{{Name: "h200", Series: "h200", Nodes: 1, GPUsPerNode: 8}, {Name: "b300", Series: "b300", Nodes: 2, GPUsPerNode: 4}, {Name: "plain"}},
		Provenance: Provenance{GitCommit: "30d8307", ConfigSHA: "none"},
		Options:    Options{Profiles: []string{"h200"}},
	}
}

func yaml(t *testing.T, text string) *pyvalue.Value {
	t.Helper()
	v, report := pyyaml.Load([]byte(text), pyyaml.Options{})
	if v == nil {
		t.Fatal(report.Violations)
	}
	return v
}

// The literals are those of Python: what int() reads, then what float() reads, else the text.
func TestLiteral(t *testing.T) {
	for text, want := range map[string]string{
		"yes": "True", "ON": "True", "True": "True", "no": "False", "oFF": "False", "5": "5", "+5": "5", "-0": "0", "1_000": "1000", "007": "7", "１２": "12",
		"1.0": "1.0", "1e-4": "0.0001", "1e-05": "1e-05", ".5": "0.5", "1e3": "1000.0", "1_0.5": "10.5", "abc": "'abc'", "": "''", "1_": "'1_'", "0x10": "'0x10'", "1e": "'1e'",
		"99999999999999999999999": "99999999999999999999999", "none": "'none'", "null": "'null'", "y": "'y'", "-inf": "-inf", "NaN": "nan", "1e999": "inf",
		strings.Repeat("9", 5000): "inf", // int() reads at most 4300 digits
	} {
		if got := literal(text).PyRepr(); got != want {
			t.Errorf("%.40q is %.40s, want %s", text, got, want)
		}
	}
}

func TestProfiles(t *testing.T) {
	for expressions, want := range map[string]string{
		"h200":             `{"pools":[{"name":"all","nodes":1,"gpus_per_node":8,"series":"h200"}],"roles":{"actor":"all","reference":"all","rollout":"all"}}`,
		" h200 : 4 ":       `{"pools":[{"name":"all","nodes":1,"gpus_per_node":4,"series":"h200"}],"roles":{"actor":"all","reference":"all","rollout":"all"}}`,
		"=h200":            `{"pools":[{"name":"all","nodes":1,"gpus_per_node":8,"series":"h200"}],"roles":{"actor":"all","reference":"all","rollout":"all"}}`,
		"b300:٨":           `{"pools":[{"name":"all","nodes":2,"gpus_per_node":4,"series":"b300"}],"roles":{"actor":"all","reference":"all","rollout":"all"}}`,
		"plain":            `{"pools":[{"name":"all","nodes":1,"gpus_per_node":1,"series":"plain"}],"roles":{"actor":"all","reference":"all","rollout":"all"}}`,
		"actor,actor=h200": `{"pools":[{"name":"actor","nodes":1,"gpus_per_node":8,"series":"h200"}],"roles":{"actor":"actor"}}`,
		"rollout, actor=h200:16|reference=b300:4": `{"pools":[{"name":"rollout","nodes":2,"gpus_per_node":8,"series":"h200"},{"name":"reference","nodes":1,"gpus_per_node":4,"series":"b300"}],"roles":{"rollout":"rollout","actor":"rollout","reference":"reference"}}`,
		"h200:0":                        "asks for \"0\" GPUs",
		"h200:":                         "asks for \"\" GPUs",
		"h200:-1":                       "asks for \"-1\" GPUs",
		"h200:²":                        "asks for \"²\" GPUs",
		"h200:99999999999999999999":     "expected a whole number above 0",
		"h200:12":                       "expected at most 8 (one node of h200) or a multiple of it",
		"h200:4:2":                      "asks for \"4:2\" GPUs",
		":4":                            "names no profile",
		",=h200":                        "names no role before the '='",
		"a:b=h200":                      "expected a name without ':'",
		"h201":                          "was h200 meant?",
		"nope":                          "expected one of b300, h200, plain",
		"h200|b300":                     "maps no role, expected <role>=h200 when there are several pools",
		"actor=h200|actor,rollout=b300": "which is mapped already",
		"driver=h200":                   "found the role \"driver\", expected one of actor, reference, rollout",
		"actor=h200|" + strings.Repeat("x", 100000): "the server has no profile",
	} {
		in := input(t, dialect.Forge, "nemo-rl/grpo")
		in.Options.Profiles = strings.Split(expressions, "|")
		job, report := Build(in)
		if !strings.HasPrefix(want, "{") {
			if len(report.Violations) == 0 || !strings.Contains(report.Violations[0].Message, want) || report.Violations[0].Field != "--profile" || len(report.Violations[0].Message) > 1000 {
				t.Errorf("%.40q: %v, want %q", expressions, report.Violations, want)
			}
			continue
		}
		var doc struct {
			Spec struct{ Resources json.RawMessage }
		}
		if err := json.Unmarshal(job.Document, &doc); err != nil || string(doc.Spec.Resources) != want {
			t.Errorf("%q: %v %v\n%s, want\n%s", expressions, report.Violations, err, doc.Spec.Resources, want)
		}
	}
}

// Everything wrong is said at once, each with the option or field and a fix.
func TestAllAtOnce(t *testing.T) {
	in := input(t, dialect.TunePlane, "verl/sft")
	in.Exp, in.FrameworkVersion = "experiments/a b", "9.9"
	in.Config = yaml(t, "data: [1]\neval: {suites: [gsm8k], gates: [{metric: acc, min: 1}, {metric: gsm8k/acc}]}\n")
	in.Options = Options{
		Profiles: []string{"h201"}, Sets: []string{"x", "=1", "zz=nan"}, InitFrom: "r-1", TrainDataset: "a", OutputDataset: "a/b", Environment: "a/../b",
		Taskset: "a/b@latest", Volumes: []string{"a/b@v1"}, Image: "a b", ObservabilityURL: "https://x.example", Then: []string{"deploy", ""},
	}
	_, report := Build(in)
	want := map[string]rule.ID{
		"--profile": "submit.profile", "spec.source.exp": "job.source.exp.segment", "spec.framework.version": "job.handshake.framework.version",
		"--observability-url": "job.framework.observability_url.forbidden", "--model": "submit.input", "--train-data": "submit.input", "--validation-data": "submit.input",
		"--train-dataset": "submit.reference", "--output-dataset": "submit.reference", "--environment": "submit.reference", "--set": "submit.set",
		"spec.hyperparams.zz": "submit.set.finite", "--then": "job.lifecycle.on_success.recipe", "data": "submit.config",
		"spec.model.init_from": "job.model.init_from.format", "spec.data.taskset": "job.data.taskset.version", "spec.data.volumes[]": "job.data.volumes.version",
		"spec.framework.image.reference": "job.framework.image.reference", "spec.evaluation.gates": "job.evaluation.gate.metric.format",
		"spec.evaluation.gates[1]": "job.evaluation.gate.bound.missing",
	}
	got := make(map[string]rule.ID)
	for _, v := range report.Violations {
		if got[v.Field] == "" {
			got[v.Field] = v.Rule
		}
		if v.Hint == "" || v.Message == "" {
			t.Errorf("no fix: %+v", v)
		}
	}
	for field, id := range want {
		if got[field] != id && !(field == "spec.framework.image.reference" && got["spec.framework.image"] == id) {
			t.Errorf("%s: %s, want %s", field, got[field], id)
		}
	}
}

// The output data set that the clients check and forget is sent.
func TestOutputDataset(t *testing.T) {
	in := input(t, dialect.Forge, "nemo-rl/grpo")
	in.Options.OutputDataset = " alice/out@v1 "
	job, report := Build(in)
	if !report.OK() || !strings.Contains(string(job.Document), `"data":{"output_dataset":"alice/out@v1"}`) {
		t.Errorf("%v %s", report.Violations, job.Document)
	}
}

// Forge has no task sets; none is dropped in silence.
func TestTasksetInForge(t *testing.T) {
	in := input(t, dialect.Forge, "nemo-rl/grpo")
	in.Options.Taskset = "alice/set@v1"
	if _, report := Build(in); len(report.Violations) != 1 || report.Violations[0].Field != "--taskset" {
		t.Errorf("%v", report.Violations)
	}
}

// A document that is built is one that gate 2 reads, and reading it changes nothing.
func TestBuiltIsRead(t *testing.T) {
	for _, d := range dialect.All {
		c, _ := catalogue.Builtin(d, catalogue.DefaultRelease(d))
		for _, e := range c.Entries() {
			in := input(t, d, e.Name)
			in.Options.Model, in.Options.TrainData, in.Options.ValidationData, in.Options.NoValidate = "org/m", "t", "v", false
			if e.Framework == customFramework {
				in.Options.Image = "registry.example.org/own:1"
			}
			if e.Observability == catalogue.External {
				in.Options.ObservabilityURL = "https://o.example"
			}
			job, report := Build(in)
			if !report.OK() {
				if len(report.Violations) == 1 && report.Violations[0].Rule == "job.hyperparams.recipe" {
					continue // a recipe with a required parameter
				}
				t.Errorf("%s: %v", e.Name, report.Violations)
				continue
			}
			read, found := jobspec.Parse(job.Document, jobspec.Options{Dialect: d})
			if !found.OK() || string(read.Normalised()) != string(job.Document) {
				t.Errorf("%s: %v\n%s", e.Name, found.Violations, job.Document)
			}
		}
	}
}

// What goes into a header is one line of printable ASCII that says the same.
func TestMetaIsASCII(t *testing.T) {
	m := Meta{Exp: "experiments/größe", Profile: "训练", Project: "p\u2028\U0001F600", ConfigSHA: "none"}
	spec := []byte(`{"a":"ü训\uD800<&>"}`)
	text, err := m.Encode(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range text {
		if c < 0x20 || c > 0x7E {
			t.Fatalf("%q", text)
		}
	}
	var back struct {
		Exp, Profile, Project string
		Spec                  json.RawMessage
	}
	if err := json.Unmarshal(text, &back); err != nil || back.Exp != m.Exp || back.Profile != m.Profile || back.Project != m.Project {
		t.Errorf("%v %+v", err, back)
	}
	var a, b any
	if json.Unmarshal(spec, &a) != nil || json.Unmarshal(back.Spec, &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("spec %s became %s", spec, back.Spec)
	}
}

// No config and no option makes the builder panic, or the document grow without bound.
func FuzzBuild(f *testing.F) {
	f.Add("data: {train: {dataset: a/b}, volumes: [a/b]}\neval: {suites: [x]}", "h200", "lr=1", "run/a/b@step=1")
	f.Add("eval: {gates: [1, {metric: 1}], on_checkpoint: {every_steps: 1.5}}", "a=h200:٣", "x=1e999", "@")
	f.Add("data: {volumes: {a: b}, train: [x]}", "=:", "=", "")
	f.Fuzz(func(t *testing.T, config, profile, set, initFrom string) {
		v, _ := pyyaml.Load([]byte(config), pyyaml.Options{})
		for _, d := range dialect.All {
			in := input(t, d, "nemo-rl/grpo")
			in.Config, in.Options.Profiles, in.Options.Sets, in.Options.InitFrom = v, []string{profile}, []string{set}, initFrom
			job, report := Build(in)
			if report.OK() == (job.Document == nil) {
				t.Fatalf("%v %s", report.Violations, job.Document)
			}
			if report.OK() && !json.Valid(job.Document) {
				t.Fatalf("%q", job.Document)
			}
		}
	})
}
