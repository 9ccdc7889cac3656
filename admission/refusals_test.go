package admission

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

var update = flag.Bool("update", false, "write testdata/refusals.txt")

// mistakes are what new users do, in both dialects: each as the change of a good job. What is said of each stands in
// testdata/refusals.txt, to be read as one who sees nothing else.
var mistakes = []struct {
	what        string
	d           dialect.Dialect
	path, value string
}{
	{"a misspelled section", dialect.TunePlane, "spec.hyperparam", `{"lr":0.001}`},
	{"a misspelled key, dropped by the platform", dialect.Forge, "spec.resources", `{"pools":[{"name":"all","gpu_per_node":4}]}`},
	{"a section left out", dialect.Forge, "spec.framework", ``},
	{"a number in quotes", dialect.TunePlane, "spec.resources", `{"pools":[{"name":"all","nodes":"2"}]}`},
	{"white space in a name", dialect.Forge, "metadata.name", `"my run"`},
	{"a Chinese name", dialect.Forge, "metadata.name", `"实验一"`},
	{"a Chinese experiment", dialect.TunePlane, "spec.source.exp", `"experiments/数学"`},
	{"a Chinese project", dialect.Forge, "metadata.project", `"我的项目"`},
	{"a Cyrillic letter that looks like a Latin one", dialect.TunePlane, "spec.recipe.name", `"verl/tunе"`},
	{"an absolute experiment", dialect.Forge, "spec.source.exp", `"/home/alice/lab/experiments/demo"`},
	{"an experiment above the project", dialect.TunePlane, "spec.source.exp", `"../other/experiments/demo"`},
	{"an entrypoint", dialect.Forge, "spec.source.entrypoint", `"train.py"`},
	{"the method without its framework", dialect.Forge, "spec.recipe.name", `"tune"`},
	{"a misspelled method", dialect.TunePlane, "spec.recipe.name", `"verl/tnue"`},
	{"an older version of the method", dialect.Forge, "spec.recipe.version", `"1.1.0"`},
	{"a shortened digest", dialect.TunePlane, "spec.recipe.digest", `"sha256:1234abcd"`},
	{"a plugin as pip names it", dialect.Forge, "spec.plugins", `["alice/opsd==1.0.0"]`},
	{"a plugin without its owner", dialect.TunePlane, "spec.plugins", `[{"id":"opsd","version":"1.0.0","digest":"sha256:` + strings.Repeat("ab", 32) + `"}]`},
	{"a plugin that nobody published", dialect.Forge, "spec.plugins", `[{"id":"alice/opds","version":"1.0.0","digest":"sha256:` + strings.Repeat("ab", 32) + `"}]`},
	{"an old digest of a plugin", dialect.Forge, "spec.plugins", `[{"id":"alice/opsd","version":"1.0.0","digest":"sha256:` + strings.Repeat("ab", 32) + `"}]`},
	{"two plugins of one name", dialect.Forge, "spec.plugins", `[` + plugin("alice/opsd", "1.0.0", opsdContent) + `,` + plugin("bob/opsd", "1.0.0", opsdContent) + `]`},
	{"a dataset by its name alone", dialect.Forge, "spec.data", `{"train":{"dataset":"gsm8k"}}`},
	{"a dataset as a path", dialect.TunePlane, "spec.data", `{"train":{"dataset":"/data/gsm8k.parquet"}}`},
	{"a dataset as text", dialect.Forge, "spec.data", `{"train":"alice/gsm8k@v1"}`},
	{"a model without its namespace", dialect.TunePlane, "spec.model", `{"base":"qwen3"}`},
	{"a model's revision behind a colon", dialect.TunePlane, "spec.model", `{"base":"hf:Qwen/Qwen3-8B:main"}`},
	{"a checkpoint as a path", dialect.Forge, "spec.model", `{"init_from":"runs/r-1/checkpoint-500"}`},
	{"a checkpoint's step", dialect.TunePlane, "spec.model", `{"init_from":"run/r-1/checkpoint@500"}`},
	{"a volume as a path", dialect.Forge, "spec.data", `{"volumes":["/mnt/corpus"]}`},
	{"a moving version", dialect.TunePlane, "spec.data", `{"taskset":"alice/tasks@latest"}`},
	{"documents of one dialect in the other", dialect.TunePlane, "spec.data", `{"corpus":"alice/handbook@v1"}`},
	{"a role of no pool", dialect.Forge, "spec.resources", `{"pools":[{"name":"all"}],"roles":{"actor":"train","rollout":"all"}}`},
	{"two pools, half of the roles", dialect.TunePlane, "spec.resources", `{"pools":[{"name":"a"},{"name":"b"}],"roles":{"actor":"a"}}`},
	{"a pool without GPUs and CPUs", dialect.TunePlane, "spec.resources", `{"pools":[{"name":"prep","gpus_per_node":0}]}`},
	{"too many GPUs", dialect.Forge, "spec.resources", `{"pools":[{"name":"all","nodes":4,"gpus_per_node":8}]}`},
	{"an unknown kind of hardware", dialect.Forge, "spec.resources", `{"pools":[{"name":"all","series":"H200x8"}]}`},
	{"a misspelled parameter", dialect.Forge, "spec.hyperparams", `{"lrr":0.001}`},
	{"a parameter of another type", dialect.TunePlane, "spec.hyperparams", `{"steps":"100"}`},
	{"an action that the method lacks", dialect.Forge, "spec.lifecycle", `{"on_success":["deploy"]}`},
	{"a gate without its benchmark", dialect.Forge, "spec.evaluation", `{"suites":["gsm8k","math"],"gates":[{"metric":"accuracy","min":0.8}]}`},
	{"a gate that decides nothing", dialect.TunePlane, "spec.evaluation", `{"suites":["gsm8k"],"gates":[{"metric":"gsm8k/accuracy"}]}`},
	{"a gate on a benchmark that does not run", dialect.Forge, "spec.evaluation", `{"suites":["gsm8k"],"gates":[{"metric":"mmlu/accuracy","min":0.8}]}`},
	{"an image from elsewhere", dialect.Forge, "spec.framework.image", `"ghcr.io/alice/train:1"`},
	{"a password in a link", dialect.TunePlane, "spec.framework.image", `"alice:secret@registry.example/train:1"`},
	{"an old client", dialect.TunePlane, "provenance.core_version", `"0.2.9"`},
	{"the other dialect", dialect.Forge, "apiVersion", `"forge/v1"`},
	{"a null where text is needed", dialect.Forge, "metadata.name", `null`},
	{"null for a section", dialect.TunePlane, "spec.resources", `null`},
	{"a key in camel case", dialect.TunePlane, "spec.resources", `{"pools":[{"name":"all","gpusPerNode":4}]}`},
	{"a key in capitals", dialect.TunePlane, "metadata.Name", `"demo"`},
	{"a key with white space", dialect.TunePlane, "spec.hyperparams ", `{}`},
	{"a key with a Cyrillic letter", dialect.TunePlane, "metadata.prоject", `"lab"`},
	{"the runtime of another version", dialect.Forge, "spec.framework.runtime_id", `"verl-0.8.0"`},
	{"a framework version that the method lacks", dialect.TunePlane, "spec.framework.version", `"0.7.1"`},
	{"somebody else's namespace", dialect.Forge, "spec.data", `{"output_dataset":"bob/results@v1"}`},
	{"no framework integration but another's", dialect.TunePlane, "spec.plugins", `[{"id":"tuneplane/framework-trl","version":"0.4.0","digest":"sha256:6e994e6e95bd50e1ab0827cbc8fd72a02b0eadcbbff52c8f351462cbee3fe760"}]`},
	{"an environment without a version", dialect.Forge, "spec.data", `{"environment":"alice/math"}`},
	{"a token in a parameter", dialect.TunePlane, "metadata.labels", `{"token":"hf_` + strings.Repeat("Q", 34) + `"}`},
	{"a section beside spec", dialect.Forge, "resources", `{"pools":[]}`},
	{"variables and credentials", dialect.TunePlane, "spec.env", `{"HF_TOKEN":"x"}`},
	{"a longer name of a section", dialect.TunePlane, "spec.hyperparameters", `{"lr":0.001}`},
	{"an image as an address", dialect.Forge, "spec.framework.image", `"https://alice:secret@registry.example/train:1"`},
	{"a dataset as an address", dialect.TunePlane, "spec.data", `{"train":{"dataset":"s3://bucket/train.jsonl"}}`},
	{"a model as an address", dialect.TunePlane, "spec.model", `{"base":"https://models.example/Qwen/Qwen3-8B"}`},
	{"a misspelled suite", dialect.Forge, "spec.evaluation", `{"suites":["gsm-8k"],"gates":[{"metric":"gsm8k/accuracy","min":0.8}]}`},
	{"half a key", dialect.TunePlane, "spec.evaluation", `{"suites":["gsm8k"],"on_checkpoint":{"every":500}}`},
	{"a checkpoint with two mistakes", dialect.TunePlane, "spec.model", `{"init_from":"r-1/checkpoint@500"}`},
	{"an absolute Chinese experiment", dialect.TunePlane, "spec.source.exp", `"/home/李/experiments/数学"`},
	{"YAML", dialect.Forge, "", "apiVersion: forge/v2\nkind: TrainingJob\n"},
	{"a comma too many", dialect.Forge, "", "{\n  \"apiVersion\": \"forge/v2\",\n  \"kind\": \"TrainingJob\",\n}\n"},
	{"a comment", dialect.TunePlane, "", "{\n  // my job\n  \"apiVersion\": \"tuneplane/v1\"\n}\n"},
	{"NaN", dialect.Forge, "", strings.Replace(document(dialect.Forge), `"spec":{`, `"spec":{"hyperparams":{"lr":NaN},`, 1)},
	{"a key twice", dialect.Forge, "", strings.Replace(document(dialect.Forge), `"source":{`, `"source":{"exp":"experiments/a",`, 1)},
	{"an empty file", dialect.Forge, "", ""},
	{"a list of jobs", dialect.TunePlane, "", "[{}]"},
}

// TestRefusals holds what a user is told of each mistake to testdata/refusals.txt (go test ./admission -run Refusals -update).
// Every line names the field, the rule, what was found and how to mend it.
func TestRefusals(t *testing.T) {
	var b bytes.Buffer
	for _, m := range mistakes {
		src := m.value
		if m.path != "" {
			src = put(t, document(m.d), m.path, m.value)
		}
		in := inputOf(t, m.d, src)
		in.Resolve = nothingElse
		decision, _ := CheckSubmission(in)
		fmt.Fprintf(&b, "# %s (%s)\n", m.what, m.d)
		for _, v := range decision.Violations {
			fmt.Fprintf(&b, "%s\n  fix: %s\n", v, v.Hint)
		}
		for _, v := range decision.Warnings {
			fmt.Fprintf(&b, "warning: %s\n  fix: %s\n", v, v.Hint)
		}
		if len(decision.Violations)+len(decision.Warnings) == 0 {
			t.Errorf("nothing is said of %s", m.what)
		}
		for _, v := range append(decision.Violations, decision.Warnings...) {
			if v.Field == "" && !strings.HasPrefix(v.String(), "line ") || v.Hint == "" || v.Line == 0 {
				t.Errorf("%s: no field, no fix or no place: %+v", m.what, v)
			}
		}
		b.WriteByte('\n')
	}
	const file = "testdata/refusals.txt"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("the refusals are not those of %s; read them and run the test with -update", file)
	}
}
