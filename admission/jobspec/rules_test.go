package jobspec

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// example is the document of a rule's example.
func example(info rule.Info) []byte {
	d, e := info.ExampleDialect(), info.Example
	switch {
	case e.Path == "":
		return []byte(e.Value)
	case e.Value == "":
		return without(smallest(d), e.Path)
	}
	return with(smallest(d), e.Path, e.Value)
}

// TestExamples runs every example of the table that is a document by itself, and asks that every rule of documents has one.
// The smallest documents break nothing.
func TestExamples(t *testing.T) {
	for _, d := range dialect.All {
		if _, report := Parse([]byte(smallest(d)), Options{Dialect: d}); len(report.Violations)+len(report.Warnings) > 0 {
			t.Errorf("%s: the smallest document: %v %v", d, report.Violations, report.Warnings)
		}
	}
	var ran int
	for _, info := range rule.All() {
		if !ofDocument(info) {
			continue
		}
		if info.Example.None() || info.Example.Text != "" {
			t.Errorf("%s has no example that is a document", info.ID)
			continue
		}
		ran++
		d := info.ExampleDialect()
		_, report := Parse(example(info), Options{Dialect: d})
		list := report.Violations
		if info.Warns(d, rule.Policy{}) {
			list = report.Warnings
		}
		if !rulesOf(list)[info.ID] {
			t.Errorf("the example of %s breaks %v %v", info.ID, report.Violations, report.Warnings)
		}
		if n := len(rulesOf(report.Violations)); n > 1 {
			t.Errorf("the example of %s breaks other rules too: %v", info.ID, report.Violations)
		}
	}
	t.Logf("%d examples", ran)
}

// ofDocument reports whether a document alone can break a rule.
func ofDocument(info rule.Info) bool {
	return strings.HasPrefix(string(info.ID), "job.") && strings.HasPrefix(info.Source, "jobspec.md") &&
		!strings.HasPrefix(info.Source, "jobspec.md 8") && !strings.HasPrefix(info.Source, "jobspec.md 9")
}

func manyKeys(n int) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		fmt.Fprintf(&b, `"r%d":"nowhere",`, i)
	}
	return b.String() + `"last":"all"}`
}

// TestRulesOfOneDialect checks that a rule of one dialect is not applied in the other.
func TestRulesOfOneDialect(t *testing.T) {
	for _, d := range dialect.All {
		for _, v := range readVectors[vector](t, dialectFiles[d]) {
			_, report := Parse(v.source(), Options{Dialect: d})
			for _, found := range report.Violations {
				info, _ := rule.Lookup(found.Rule)
				if len(info.Dialects) > 0 && info.Dialects[0] != d {
					t.Errorf("%s: %s is no rule of %s", v.ID, found.Rule, d)
				}
			}
		}
	}
}

// TestOnePlace checks, rule by rule, a document that breaks it beside one that does not, where the vectors have none.
func TestOnePlace(t *testing.T) {
	tests := []struct {
		name           string
		d              dialect.Dialect
		path           string
		accept, break_ string
		rule           rule.ID
		field          string
	}{
		{"userinfo in a link", dialect.Forge, "spec.framework.observability_url", `"https://o.example/a@b:c"`, `"https://u:p@o.example/x"`, "job.secret.userinfo", "spec.framework.observability_url"},
		{"userinfo without a scheme", dialect.Forge, "spec.framework.observability_url", `"o.example:3000/d"`, `"u:p@o.example"`, "job.secret.userinfo", "spec.framework.observability_url"},
		{"userinfo in an image", dialect.TunePlane, "spec.framework.image", `"reg:5000/x:1@sha256:` + strings.Repeat("a", 64) + `"`, `"u:p@reg/x"`, "job.secret.userinfo", "spec.framework.image"},
		{"userinfo in a model", dialect.Forge, "spec.model.base", `"hf:gpt2@main"`, `"https://u:p@h.example/m"`, "job.secret.userinfo", "spec.model.base"},
		{"script link", dialect.TunePlane, "spec.framework.observability_url", `"//o.example/x"`, `"javascript:alert(1)"`, "job.framework.observability_url.url", "spec.framework.observability_url"},
		{"relative link scheme", dialect.TunePlane, "spec.framework.observability_url", `"http://o.example"`, `"http:o.example"`, "job.framework.observability_url.url", "spec.framework.observability_url"},
		{"seats of 19 digits", dialect.TunePlane, "spec.resources.leases", `[{"tool":"x","seats":999999999999999999}]`, `[{"tool":"x","seats":1000000000000000000}]`, "job.json.number", "spec.resources.leases[0].seats"},
		{"limit of 30 digits", dialect.Forge, "spec.evaluation", `{"suites":["a"],"limit":1}`, `{"suites":["a"],"limit":100000000000000000000000000000}`, "job.json.number", "spec.evaluation.limit"},
		{"step of 19 digits", dialect.Forge, "spec.model.init_from", `"run/r/checkpoint@step=999999999999999999"`, `"run/r/checkpoint@step=1000000000000000000"`, "job.model.init_from.qualifier", "spec.model.init_from"},
		{"step twice", dialect.TunePlane, "spec.model.init_from", `"run/r/c@step=1,attempt=2"`, `"run/r/c@step=1,step=1"`, "job.model.init_from.qualifier", "spec.model.init_from"},
		{"trailing comma", dialect.TunePlane, "spec.model.init_from", `"run/r/c@attempt=2"`, `"run/r/c@attempt=2,"`, "job.model.init_from.qualifier", "spec.model.init_from"},
		{"unknown key of the object form", dialect.TunePlane, "spec.model.init_from", `{"run_id":"r","kind":"c","attempt":1,"step":null}`, `{"run_id":"r","kind":"c","epoch":1}`, "job.model.init_from.object", "spec.model.init_from"},
		{"negative step of the object form", dialect.TunePlane, "spec.model.init_from", `{"run_id":"r","kind":"c","step":0}`, `{"run_id":"r","kind":"c","step":-1}`, "job.model.init_from.object", "spec.model.init_from"},
		{"GPUs of a CPU pool", dialect.TunePlane, "spec.resources.pools", `[{"name":"a","gpus_per_node":0,"cpus":1,"memory_gb":1,"scratch_gb":0}]`, `[{"name":"a","gpus_per_node":0,"cpus":1}]`, "job.resources.pool.cpu_only.host", "spec.resources.pools[0].memory_gb"},
		{"CPU pool beyond the bound", dialect.TunePlane, "spec.resources.pools", `[{"name":"a","gpus_per_node":0,"cpus":1048576,"memory_gb":1}]`, `[{"name":"a","gpus_per_node":0,"cpus":1048577,"memory_gb":1}]`, "job.resources.pool.host.max", "spec.resources.pools[0].cpus"},
		{"host number of 400 digits", dialect.TunePlane, "spec.resources.pools", `[{"name":"a","cpus":"0000000000000000000000000000016"}]`, `[{"name":"a","cpus":"` + strings.Repeat("9", 400) + `"}]`, "job.resources.pool.host.max", "spec.resources.pools[0].cpus"},
		{"negative host text", dialect.TunePlane, "spec.resources.pools", `[{"name":"a","cpus":"-00"}]`, `[{"name":"a","cpus":"-` + strings.Repeat("9", 400) + `"}]`, "job.resources.pool.host.negative", "spec.resources.pools[0].cpus"},
		{"task set latest", dialect.TunePlane, "spec.data.taskset", `"a/b@v1"`, `"a/b@"`, "job.data.taskset.version", "spec.data.taskset"},
		{"corpus with a leading slash", dialect.Forge, "spec.data.corpus", `"a/b"`, `"/a/b"`, "job.data.corpus.reference", "spec.data.corpus"},
		{"Windows path with a dataset", dialect.TunePlane, "spec.data.train", `{"dataset":"a/b","path":"t"}`, `{"dataset":"a/b","path":"C:\\x"}`, "job.data.path.relative", "spec.data.train.path"},
		{"backslash parent", dialect.Forge, "spec.data.train", `{"path":"a..b/c"}`, `{"path":"a\\..\\b"}`, "job.data.path.relative", "spec.data.train.path"},
		{"tuneplane field in forge", dialect.TunePlane, "spec.resources.network", `{}`, `{"isolation":"job"}`, "job.resources.network.supported", "spec.resources.network"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, report := Parse(with(smallest(tt.d), tt.path, tt.accept), Options{Dialect: tt.d}); !report.OK() {
				t.Errorf("%s is refused: %v", tt.accept, report.Violations)
			}
			_, report := Parse(with(smallest(tt.d), tt.path, tt.break_), Options{Dialect: tt.d})
			for _, v := range report.Violations {
				if v.Rule == tt.rule && v.Field == tt.field {
					return
				}
			}
			t.Errorf("%s: %s of %s is not among %v", tt.break_, tt.rule, tt.field, report.Violations)
		})
	}
}

// TestAllAtOnce checks that one bad part does not hide another, and that nothing is said twice.
func TestAllAtOnce(t *testing.T) {
	src := `{
  "apiVersion": "forge/v2",
  "kind": "EvalJob",
  "metadata": {"name": "-x", "owner": 5},
  "spec": {
    "recipe": {"name": "grpo", "version": "", "digest": "abc"},
    "source": {"exp": "/abs"},
    "framework": {"kind": "verl", "version": "0.9.0"},
    "data": {"volumes": ["ok/a", "bad", "other/a"]},
    "plugins": [{"id": "a/b", "version": "1", "digest": "sha256:x"}, 7]
  }
}`
	_, report := Parse([]byte(src), Options{})
	var got []string
	for _, v := range report.Violations {
		got = append(got, fmt.Sprintf("%d:%d %s %s %s", v.Line, v.Column, v.Rule, v.Field, v.Pointer))
	}
	want := []string{
		"1:1 job.root.required provenance /provenance",
		"3:11 job.kind.value kind /kind",
		"4:24 job.metadata.name.segment metadata.name /metadata/name",
		"4:39 job.metadata.owner.type metadata.owner /metadata/owner",
		"5:11 job.spec.required spec.resources /spec/resources",
		"10:57 job.plugins.digest.hex spec.plugins[0].digest /spec/plugins/0/digest",
		"10:70 job.plugins.item.object spec.plugins[1] /spec/plugins/1",
		"6:24 job.recipe.name.format spec.recipe.name /spec/recipe/name",
		"6:43 job.recipe.version.empty spec.recipe.version /spec/recipe/version",
		"6:57 job.recipe.digest.hex spec.recipe.digest /spec/recipe/digest",
		"7:23 job.source.exp.absolute spec.source.exp /spec/source/exp",
		"9:34 job.data.volumes.format spec.data.volumes[] /spec/data/volumes/1",
		"9:41 job.data.volumes.leaf_collision spec.data.volumes /spec/data/volumes/2",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestUnknownFieldNamesNearest(t *testing.T) {
	tests := []struct {
		path, message string
		d             dialect.Dialect
	}{
		{"spec.hyperparam", "did you mean hyperparams?", dialect.TunePlane},
		{"spec.pulgins", "did you mean plugins?", dialect.TunePlane},
		{"metadata.Name", "did you mean name?", dialect.TunePlane},
		{"spec.data.corpus", "only forge/v2 has it", dialect.TunePlane},
		{"spec.data.taskset", "only tuneplane/v1 has it", dialect.Forge},
		{"provenance.sdk_version", "this object may hold config_sha, core_version", dialect.TunePlane},
		{"spec.hyperparameters", "did you mean hyperparams?", dialect.TunePlane},
		{"resources", "it belongs in spec", dialect.Forge},
		{"spec.display_name", "it belongs in metadata", dialect.TunePlane},
		{"metadata.core_version", "it belongs in provenance", dialect.TunePlane},
		{"spec.series", "it belongs in an entry of spec.resources.pools", dialect.Forge},
		{"spec.resources.gpus", "did you mean gpus_per_node in an entry of spec.resources.pools?", dialect.Forge},
		{"spec.name", "this object may hold data", dialect.Forge},
		{"name", "it belongs in metadata", dialect.TunePlane},
		{"spec.dataset", "it belongs in spec.data.train or spec.data.validation", dialect.TunePlane},
		{"spec.env", "this object may hold data", dialect.TunePlane},
	}
	for _, tt := range tests {
		_, report := Parse(with(smallest(tt.d), tt.path, `"x"`), Options{Dialect: tt.d})
		list := report.Violations
		if tt.d == dialect.Forge {
			list = report.Warnings
		}
		if len(list) != 1 || list[0].Rule != "job.unknown_field" || list[0].Field != tt.path || !strings.Contains(list[0].Message, tt.message) {
			t.Errorf("%s: %v, want a message with %q", tt.path, list, tt.message)
		}
	}
}

// TestSecretsStaySecret checks that no message shows what looks like a credential.
func TestSecretsStaySecret(t *testing.T) {
	const token = "hf_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	src := with(smallest(dialect.TunePlane), "spec.hyperparams", `{"deep":[{"a b":"`+token+`"}],"risk-aaaaaaaaaaaaaaaaaaaaaaaaaa":"task-aaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`)
	_, report := Parse(src, Options{})
	if len(report.Warnings) != 1 || report.Warnings[0].Field != `spec.hyperparams.deep[0].a b` || report.Warnings[0].Pointer != "/spec/hyperparams/deep/0/a b" {
		t.Fatalf("warnings %v", report.Warnings)
	}
	if text := fmt.Sprint(report.Warnings); strings.Contains(text, token[:12]) {
		t.Errorf("the warning shows the credential: %s", text)
	}
	_, report = Parse(with(smallest(dialect.Forge), "spec.framework.observability_url", `"https://root:hunter2@o.example/x"`), Options{})
	if text := fmt.Sprint(report.Violations); report.OK() || strings.Contains(text, "hunter2") {
		t.Errorf("violations %s", text)
	}
	for _, image := range []string{"root:hunter2@reg.example/x", "root:hunter2@reg.example/x y", "root:hunter2@reg.example/x@sha256:1", "root:hun@ter2@reg.example/x"} {
		_, report = Parse(with(smallest(dialect.Forge), "spec.framework.image", strconv.Quote(image)), Options{})
		if text := fmt.Sprint(report.Violations); report.OK() || strings.Contains(text, "ter2") {
			t.Errorf("%s: violations %s", image, text)
		}
	}
}

func TestSoftenedPerDialect(t *testing.T) {
	policy, err := rule.Soften("job.data.dataset.reference")
	if err != nil {
		t.Fatal(err)
	}
	for d, accepted := range map[dialect.Dialect]bool{dialect.Forge: true, dialect.TunePlane: false} {
		_, report := Parse(with(smallest(d), "spec.data.train", `{"dataset":"gsm8k"}`), Options{Dialect: d, Policy: policy})
		if report.OK() != accepted {
			t.Errorf("%s: accepted %t, want %t: %v", d, report.OK(), accepted, report.Violations)
		}
	}
}

func TestDetect(t *testing.T) {
	for version, want := range map[string]dialect.Dialect{
		`"forge/v2"`: dialect.Forge, `"tuneplane/v1"`: dialect.TunePlane, `"tuneplane/v9"`: dialect.TunePlane,
		`"lab/v1"`: dialect.Forge, `7`: dialect.Forge, `null`: dialect.Forge,
	} {
		spec, report := Parse(with(smallest(dialect.Forge), "apiVersion", version), Options{})
		if spec.Dialect != want || report.Dialect != want {
			t.Errorf("%s is read as %s, want %s", version, spec.Dialect, want)
		}
	}
}

// TestDigest checks that the digest depends on what the document says and on nothing else.
func TestDigest(t *testing.T) {
	parse := func(src []byte) *Spec {
		spec, report := Parse(src, Options{})
		if !report.OK() {
			t.Fatal(report.Violations)
		}
		return spec
	}
	sum := func(s *Spec) string {
		d, err := s.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d.String()
	}
	base := parse([]byte(smallest(dialect.Forge)))
	same := parse(bytes.ReplaceAll(with(smallest(dialect.Forge), "spec.model", "null"), []byte(`":`), []byte("\" :\n")))
	if sum(base) != sum(same) {
		t.Error("white space, key order or null change the digest")
	}
	other := parse(with(smallest(dialect.Forge), "metadata.project", `"lab"`))
	if sum(base) == sum(other) {
		t.Error("another project has the same digest")
	}
	before := sum(base)
	base.StampOwner("alice")
	if sum(base) == before || !bytes.Contains(base.Normalised(), []byte(`"owner":"alice"`)) {
		t.Error("the owner is not part of the digest")
	}
	large := parse(with(smallest(dialect.Forge), "spec.hyperparams", `{"n":100000000000000000000}`))
	if !bytes.Contains(large.Normalised(), []byte(`"n":100000000000000000000`)) {
		t.Errorf("stored %s", large.Normalised())
	}
	sum(large)
}

// TestDigestForm pins the form of the digest.
func TestDigestForm(t *testing.T) {
	spec, report := Parse(with(smallest(dialect.Forge), "spec.hyperparams", `{"b":1.0,"a":"é\n","n":100000000000000000000}`), Options{})
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	got, err := spec.Digest()
	if err != nil {
		t.Fatal(err)
	}
	const want = "sha256:02ebcf28cfff60262530c7f4e4b66d6f20e0f5dcc566b1e4fb51102b744fa977"
	if got.String() != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

// TestAddressesOfHubs checks what is said of an address where a reference belongs.
func TestAddressesOfHubs(t *testing.T) {
	for address, want := range map[string]string{
		"https://huggingface.co/Qwen/Qwen3-8B/tree/main": "did you mean hf:Qwen/Qwen3-8B?", "https://www.modelscope.cn/models/Qwen/Qwen3-8B": "did you mean ms:Qwen/Qwen3-8B?",
		"https://huggingface.co/datasets/openai/gsm8k": "did you mean hf:openai/gsm8k?", "s3://bucket/model": `found the address "s3://bucket/model", expected a reference`,
		"https://huggingface.co/": "expected a reference", "https://user:hunter2@h.example/x": `found the address "https://h.example/x"`,
	} {
		_, report := Parse(with(smallest(dialect.TunePlane), "spec.model", fmt.Sprintf(`{"base":%q}`, address)), Options{})
		if text := fmt.Sprint(report.Violations); !strings.Contains(text, want) || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s, want %q", address, text, want)
		}
	}
}
