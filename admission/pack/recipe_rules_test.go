package pack

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pyyaml"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/testdata"
	"github.com/google/go-cmp/cmp"
)

// soundRecipe passes every rule. %s is the artifacts' version.
const soundRecipe = `name: demo
version: "1.0.0"
framework: trl
template: template
entrypoint: {kind: module, value: trl.scripts.sft}
adapter_options: {observability: platform}
lifecycle: {eval: {kind: file, value: eval.py}}
lifecycle_resources: {eval: 1}
runtime:
  default_version: "1.10.0"
  versions:
    "1.10.0": {requires: [trl==1.10.0], runtime_id: trl-1.10.0, deployment_artifact: true}
metrics: {primary: [train/loss], aliases: {train/loss: [loss]}}
artifacts: {version: %s, checkpoints: [], logs: [], exports: [], evaluations: [], formats: {checkpoint: pt, log: text, hf_export: hf, eval_report: json}}
` + soundParams

const soundParams = `params:
  lr: {type: float, path: optim.lr, default: 1.0e-5, min: 0, exclusive_min: true}
  steps: {type: int, min: 1, max: 10, required: true}
  mode: {type: enum, choices: [fast, slow, 3], default: fast}
  flag: {type: bool}
  note: {type: str, choices: [a, b]}
`

func sound(d dialect.Dialect) string { return fmt.Sprintf(soundRecipe, d.Names().Artifacts) }

// findings are the violations and warnings as "rule field line".
func findings(report rule.Report) (all []string) {
	for _, v := range slices.Concat(report.Violations, report.Warnings) {
		all = append(all, fmt.Sprintf("%s %s %d", v.Rule, v.Field, v.Line))
	}
	return all
}

func TestSoundRecipe(t *testing.T) {
	for _, d := range dialect.All {
		r, report := ParseRecipe([]byte(sound(d)), RecipeOptions{Name: "demo"})
		if got := findings(report); got != nil {
			t.Errorf("%s: %v", d, got)
		}
		if r.Dialect != d || r.ID() != "trl/demo" || r.ManifestDigest.IsZero() || r.Digest != HandshakeDigest(r.ManifestDigest) {
			t.Errorf("%s: read as %s, id %s, digests %s %s", d, r.Dialect, r.ID(), r.ManifestDigest, r.Digest)
		}
	}
}

// Every fault of a document is found, in the client's order, ours behind the client's, each at its line.
func TestRecipeReportsEverything(t *testing.T) {
	const document = `Version: 1
name: 1.10
framework: " trl "
template: ../x
entrypoint: {kind: script, value: /run.py}
adapter_options: {observability: none, orchestrator: slurm, ray_cluster_profile: x}
lifecycle: {"a b": {kind: module}, eval: [x]}
lifecycle_resources: {eval: -1, export: true}
runtime:
  default_version: "2"
  versions:
    "1.10": {requires: a, source: {kind: oci, reference: a b}, status: gone, image: x}
    "1.10.0": {runtime_id: r, source: {kind: sif, reference: x.sif}}
    "1.11.0": {runtime_id: r, deployment_artifact: true, source: {kind: oci, reference: a@b, ray_version: "2"}}
metrics: {primary: [], aliases: {a: x}, semantics: {m: {direction: up, display: x}}, objective: [zz, zz], equivalences: [{keys: [a], reason: no_critic}]}
artifacts: {version: %s, checkpoints: [/x], logs: x, formats: {checkpoint: ""}}
requires: {core: ">>1"}
params: {lr: {type: real, choices: 1}, n: 5, 7: {}, eps: {type: float, default: 1e-5, min: 1e-8}}
i18n: {zh: {titel: x, params: {gone: {doc: d}, lr: {path: p}}}, fr: x}
plugins: 5
roles: ab
category: RL
modalities: [smell]
validation: {sample_kind: x, reward_semantics: y, observer_versions: z}
sunset: 2026-01-01
`
	common := func(tuneplane []string, forge []string) map[dialect.Dialect][]string {
		return map[dialect.Dialect][]string{dialect.TunePlane: tuneplane, dialect.Forge: forge}
	}
	options := common([]string{
		"recipe.adapter_options adapter_options.observability 6", "recipe.adapter_options adapter_options.orchestrator 6",
		"recipe.adapter_options adapter_options.ray_cluster_profile 6",
	}, []string{"recipe.adapter_options adapter_options.observability 6"})
	requirement := func(version string, line int) map[dialect.Dialect][]string {
		return common(nil, []string{fmt.Sprintf("recipe.runtime.requires runtime.versions.%s.requires %d", version, line)})
	}
	onlyTunePlane := func(lines ...string) map[dialect.Dialect][]string { return common(lines, nil) }
	for _, d := range dialect.All {
		_, report := ParseRecipe(fmt.Appendf(nil, document, d.Names().Artifacts), RecipeOptions{Dialect: d, Name: "demo"})
		want := slices.Concat(
			[]string{"recipe.missing version 1", "recipe.template template 4"},
			options[d],
			[]string{
				"recipe.lifecycle lifecycle 7", "recipe.lifecycle lifecycle.a b.value 7", "recipe.lifecycle lifecycle.eval 7",
				"recipe.lifecycle_resources lifecycle_resources 8", "recipe.lifecycle_resources lifecycle_resources.eval 8",
				"recipe.lifecycle_resources lifecycle_resources.export 8",
				"recipe.runtime runtime.versions.1.10.image 12", "recipe.runtime  12",
				"recipe.runtime.source runtime.versions.1.10.source.reference 12", "recipe.runtime runtime.versions.1.10.status 12",
				"recipe.runtime.source runtime.versions.1.10.0.source.reference 13", "recipe.runtime.source runtime.versions.1.10.0.source.sha256 13",
				"recipe.runtime.source runtime.versions.1.11.0.source.ray_version 14", "recipe.runtime.source runtime.versions.1.11.0.source.reference 14",
				"recipe.runtime runtime.default_version 10", "recipe.requires requires.core 17",
				"recipe.runtime.exact runtime.versions.1.10 12", "recipe.runtime.id runtime.versions.1.10.runtime_id 12",
			},
			requirement("1.10", 12)[d],
			[]string{"recipe.runtime.source runtime.versions.1.10.0.source 13"},
			requirement("1.10.0", 13)[d],
			[]string{"recipe.runtime.id runtime.versions.1.11.0.runtime_id 14", "recipe.runtime.source runtime.versions.1.11.0.source 14"},
			requirement("1.11.0", 14)[d],
			[]string{
				"recipe.i18n i18n.zh 19", "recipe.i18n i18n.zh.params 19", "recipe.i18n i18n.zh.params.lr.zh 19", "recipe.i18n i18n.fr 19",
				"recipe.param params.lr.type 18", "recipe.param params.lr.choices 18", "recipe.param  18",
				"recipe.entrypoint entrypoint.kind 5", "recipe.entrypoint entrypoint.value 5",
				"recipe.metrics metrics.primary 15", "recipe.metrics metrics.aliases.a 15",
				"recipe.metrics.semantics metrics.semantics.m.direction 15", "recipe.metrics.semantics metrics.semantics.m.display 15",
			},
			onlyTunePlane(
				"recipe.metrics.objective metrics.objective 15", "recipe.metrics.equivalences metrics.equivalences[0].keys 15",
				"recipe.metrics.objective metrics.objective 15", "recipe.metrics.objective metrics.objective 15",
			)[d],
			[]string{
				"recipe.artifacts artifacts.formats 16", "recipe.artifacts artifacts.formats 16", "recipe.artifacts artifacts.checkpoints 16",
				"recipe.artifacts artifacts.logs 16", "recipe.artifacts artifacts.exports 16", "recipe.artifacts artifacts.evaluations 16",
				"recipe.list  20", "recipe.category category 22",
			},
			onlyTunePlane("recipe.modalities modalities 23")[d],
			[]string{
				"recipe.validation validation.observer_versions 24", "recipe.validation validation.sample_kind 24",
				"recipe.validation validation.reward_semantics 24",
				"recipe.framework.blank  3", "recipe.name.pack  2", "recipe.hashable  18",
				"yaml.scalar name 2", "recipe.param.name  18", "yaml.scalar.unquoted params.7 18",
				"recipe.param.bound params.eps.min 18", "recipe.param.default params.eps.default 18", "recipe.letters roles 21",
				"recipe.ignored Version 1", "recipe.ignored sunset 25",
			},
		)
		if diff := cmp.Diff(want, findings(report)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", d, diff)
		}
		for _, v := range report.Violations {
			if v.Message == "" || v.Hint == "" || v.File != RecipeFile {
				t.Errorf("%+v lacks a part", v)
			}
		}
		if hint := report.Violations[0].Hint; !strings.Contains(hint, `"Version"`) {
			t.Errorf("the hint of a missing field does not name its look-alike: %s", hint)
		}
	}
}

// Each change to the sound recipe breaks exactly one rule.
func TestRecipeFaults(t *testing.T) {
	for _, test := range []struct{ old, new, want string }{
		{"name: demo", "name: other", "recipe.name.pack  1"},
		{"name: demo", "name: de mo", "recipe.name name 1"},
		{`version: "1.0.0"`, `version: " "`, "recipe.version version 2"},
		{`version: "1.0.0"`, "version: 0x10", "yaml.scalar version 2"},
		{`version: "1.0.0"`, "version: 2", "yaml.scalar.unquoted version 2"},
		{"framework: trl", "framework: t/l", "recipe.framework framework 3"},
		{"framework: trl", "framework: ' trl'", "recipe.framework.blank  3"},
		{"framework: trl", "Framework: trl", "recipe.missing framework 1"},
		{"template: template", "template: /tmp", "recipe.template template 4"},
		{"lifecycle_resources: {eval: 1}", "lifecycle_resources: {eval: 1.0}", "recipe.lifecycle_resources lifecycle_resources.eval 8"},
		{`default_version: "1.10.0"`, "default_version: 1.10", "yaml.scalar runtime.default_version 10"},
		{"runtime_id: trl-1.10.0", "runtime_id: a b", "recipe.runtime.id runtime.versions.1.10.0.runtime_id 12"},
		{"aliases: {train/loss: [loss]}", "aliases: {}, semantics: [x]", "recipe.metrics.semantics  13"},
		{"params:", "x: {1: a, b: c}\nparams:", "recipe.hashable  15"},
		{"params:", "x: !!set {a}\nparams:", "recipe.hashable  15"},
		{"params:", "x: \"\\ud800\"\nparams:", "recipe.hashable  15"},
		{"params:", "params: 5\nx:", "recipe.params  15"},
		{"params:", "params: &a\n  z: {}", "yaml.alias  15"},
	} {
		for _, d := range dialect.All {
			src := strings.Replace(sound(d), test.old, test.new, 1)
			_, report := ParseRecipe([]byte(src), RecipeOptions{Dialect: d, Name: "demo"})
			if got := findings(report); !slices.Contains(got, test.want) {
				t.Errorf("%s %q: found %v, want %s", d, test.new, got, test.want)
			}
		}
	}
}

func TestRecipeRoots(t *testing.T) {
	for _, test := range []struct{ src, want string }{
		{"", "recipe.missing"},
		{"[]", "recipe.missing"},
		{"0", "recipe.missing"},
		{"x", "recipe.root"},
		{"[a]", "recipe.root"},
		{"a: [", "yaml.syntax"},
		{"a: \xff", "yaml.encoding"},
		{strings.Repeat("#", limit.Document+1), "recipe.limit"},
	} {
		r, report := ParseRecipe([]byte(test.src), RecipeOptions{})
		if len(report.Violations) == 0 || string(report.Violations[0].Rule) != test.want || (r == nil) != (test.want != "recipe.missing") {
			t.Errorf("%.20q: recipe %v, violations %v; want %s first", test.src, r, report.Violations, test.want)
		}
	}
}

// The faults of a huge document cost little and are counted.
func TestRecipeManyFaults(t *testing.T) {
	var b strings.Builder
	b.WriteString(sound(dialect.Forge))
	const n = 20_000
	for i := range n {
		fmt.Fprintf(&b, "  p%d: {type: x}\n", i)
	}
	_, report := ParseRecipe([]byte(b.String()), RecipeOptions{Name: "demo"})
	if len(report.Violations) != maxFaults+1 {
		t.Fatalf("%d violations, want %d", len(report.Violations), maxFaults+1)
	}
	if got, want := report.Violations[maxFaults].Message, fmt.Sprintf("%d more", n-maxFaults); !strings.Contains(got, want) {
		t.Errorf("last message %q, want %q in it", got, want)
	}
}

// A short alias for a long list costs its length wherever it stands for a text, so there is a limit to how many there
// are.
func TestRecipeManyAliases(t *testing.T) {
	for _, n := range []int{maxRepeats, maxRepeats + 1} {
		src := sound(dialect.Forge) + "x: &a [" + strings.Repeat("y", 4000) + "]\nroles: [" + strings.Repeat("*a, ", n) + "]\n"
		_, report := ParseRecipe([]byte(src), RecipeOptions{Name: "demo", Policy: softest(t)})
		if refused := !report.OK(); refused != (n > maxRepeats) || refused && report.Violations[0].Rule != "recipe.limit" {
			t.Errorf("%d aliases: %v", n, report.Violations)
		}
	}
}

func TestRecipeTemplate(t *testing.T) {
	file := func(p string) vectorEntry { return vectorEntry{Path: p, Data: []byte("x")} }
	abc := digest.FromBytes([]byte("a/b\x00x\x00"))
	for _, test := range []struct {
		template string
		tree     []vectorEntry
		want     digest.Digest
		rules    []string
	}{
		{"t", []vectorEntry{file("t/a/b"), file("other")}, abc, nil},
		{"./t//", []vectorEntry{file("t/a/b")}, abc, nil},
		{"deep/t", []vectorEntry{file("deep/t/a/b"), file("deep/x")}, abc, nil},
		{"t", []vectorEntry{file("t/a/b"), file("t/__pycache__/x.pyc"), file("t-1/x")}, abc, nil},
		{"t", []vectorEntry{file("T/a/b")}, digest.Digest{}, []string{"recipe.template"}},
		{"t", []vectorEntry{file("t")}, digest.Digest{}, []string{"recipe.template"}},
		{"t", []vectorEntry{{Path: "t", Dir: true}}, emptyDigest, []string{"recipe.template.empty"}},
		{"t", []vectorEntry{file("t/__pycache__/x.pyc")}, emptyDigest, []string{"recipe.template.empty"}},
		{"t", []vectorEntry{file("lib/a/b"), {Path: "t", SymlinkTo: "lib"}}, abc, []string{"recipe.template.link"}},
		{"x/t", []vectorEntry{file("lib/a/b"), file("x/y"), {Path: "x/t", SymlinkTo: "../lib"}}, abc, []string{"recipe.template.link"}},
		{"t", []vectorEntry{{Path: "t", SymlinkTo: "t"}}, digest.Digest{}, []string{"recipe.template"}},
		{"t", []vectorEntry{{Path: "t", SymlinkTo: "/"}}, digest.Digest{}, []string{"recipe.template.outside"}},
		{"x/t", []vectorEntry{file("x/y"), {Path: "x/t", SymlinkTo: "../.."}}, digest.Digest{}, []string{"recipe.template.outside"}},
		{"t", []vectorEntry{{Path: "t", SymlinkTo: "nowhere"}}, digest.Digest{}, []string{"recipe.template"}},
	} {
		src := strings.Replace(sound(dialect.Forge), "template: template", "template: "+test.template, 1)
		entries := append(slices.Clone(test.tree), vectorEntry{Path: RecipeFile, Data: []byte(src)})
		r, report, err := ReadRecipe(openDir(t, buildTree(t, entries)), RecipeOptions{Name: "demo"})
		if err != nil {
			t.Fatal(err)
		}
		var rules []string
		for _, v := range report.Violations {
			rules = append(rules, string(v.Rule))
		}
		if r.TemplateDigest != test.want || !slices.Equal(rules, test.rules) {
			t.Errorf("template %s of %v: digest %s, rules %v; want %s, %v", test.template, test.tree, r.TemplateDigest, rules, test.want, test.rules)
		}
	}
}

func TestRecipeFile(t *testing.T) {
	for _, test := range []struct {
		entry vectorEntry
		want  rule.ID
	}{
		{vectorEntry{Path: "Recipe.yaml", Data: []byte("x")}, "recipe.file"},
		{vectorEntry{Path: "recipe.yaml/x", Data: []byte("x")}, "recipe.file"},
		{vectorEntry{Path: RecipeFile, Repeat: []byte("#"), Count: limit.Document + 1}, "recipe.limit"},
	} {
		r, report, err := ReadRecipe(openDir(t, buildTree(t, []vectorEntry{test.entry})), RecipeOptions{})
		if err != nil || r != nil || len(report.Violations) != 1 || report.Violations[0].Rule != test.want {
			t.Errorf("%s: %v, %v, %v; want %s", test.entry.Path, r, report.Violations, err, test.want)
		}
	}
}

// brokenTree gives its files up to one of them, which it can't read.
type brokenTree struct {
	tree.Tree
	path string
}

func (b brokenTree) Open(p string) (io.ReadCloser, error) {
	if p == b.path {
		return nil, fs.ErrPermission
	}
	return b.Tree.Open(p)
}

func TestRecipeReadError(t *testing.T) {
	whole := openDir(t, buildTree(t, []vectorEntry{{Path: RecipeFile, Data: []byte(sound(dialect.Forge))}, {Path: "template/x", Data: []byte("x")}}))
	for _, p := range []string{RecipeFile, "template/x"} {
		if _, _, err := ReadRecipe(brokenTree{whole, p}, RecipeOptions{}); err == nil {
			t.Errorf("no error though %s can't be read", p)
		}
	}
}

func TestBuiltinSemantics(t *testing.T) {
	for d, file := range map[dialect.Dialect]string{dialect.Forge: "builtin-catalog-starforge-0.3.56.json", dialect.TunePlane: "builtin-catalog-tuneplane-0.4.0.json"} {
		raw, err := testdata.FS.ReadFile("vectors/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Default Semantics            `json:"metric_semantics_default"`
			Table   map[string]Semantics `json:"metric_semantics"`
		}
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		r := Recipe{Dialect: d}
		doc.Table["nobody/knows"] = doc.Default
		for metric, want := range doc.Table {
			if got := r.SemanticsOf(metric); got != want {
				t.Errorf("%s %s: %v, want %v", d, metric, got, want)
			}
		}
		if known := len(sharedSemantics) + len(dialectSemantics[d]); known != len(doc.Table)-1 {
			t.Errorf("%s: %d metrics known, the client knows %d", d, known, len(doc.Table)-1)
		}
		r.Metrics.Semantics.set("train/loss", Semantics{"higher", "ratio"})
		if got := r.SemanticsOf("train/loss"); got != (Semantics{"higher", "ratio"}) {
			t.Errorf("%s: the recipe's own semantics don't win: %v", d, got)
		}
	}
}

func TestCatalogueEntry(t *testing.T) {
	r, report := ParseRecipe([]byte(sound(dialect.TunePlane)), RecipeOptions{})
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	got, err := plainJSON(r.CatalogueEntry())
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"name":"trl/demo","version":"1.0.0","digest":"%s","framework":"trl","adapter":"trl","supported_framework_versions":["1.10.0"],`+
		`"runtime":{"default_version":"1.10.0","versions":{"1.10.0":{"runtime_id":"trl-1.10.0","status":"supported"}}},"core_requires":">=0.1,<1"}`, r.Digest)
	if string(got) != want {
		t.Errorf("entry %s\nwant  %s", got, want)
	}
}

// What a registry keeps of a recipe's parameters reads back as it was.
func TestParamsRoundTrip(t *testing.T) {
	src := sound(dialect.TunePlane) + "  odd: {default: [1, 1.0, 1.0e+22, .nan, -.inf, null, true, x, {a: [b]}, 123456789012345678901234567890], versions: ['1.10.0'], path_overrides: {a: b}}\n"
	r, _ := ParseRecipe([]byte(src), RecipeOptions{})
	kept, err := json.Marshal(r.Params)
	if err != nil {
		t.Fatal(err)
	}
	var back Table[Param]
	if err := json.Unmarshal(kept, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || string(again) != string(kept) {
		t.Errorf("%v\nkept  %s\nagain %s", err, kept, again)
	}
	odd, _ := back.Get("odd")
	if got, want := odd.Default.PyRepr(), "[1, 1.0, 1e+22, nan, -inf, None, True, 'x', {'a': ['b']}, 123456789012345678901234567890]"; got != want {
		t.Errorf("default reads back as %s, want %s", got, want)
	}
}

func TestCheckHyperparams(t *testing.T) {
	src := sound(dialect.TunePlane) + "  late: {versions: ['2.0.0']}\n  odd: {type: int, min: low}\n  half: {type: float, max: 0.5}\n"
	src = strings.Replace(src, `    "1.10.0": {`, `    "2.0.0": {runtime_id: b, deployment_artifact: true}`+"\n"+`    "1.10.0": {`, 1)
	r, report := ParseRecipe([]byte(src), RecipeOptions{})
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	const defaults = `"lr":1e-05`
	for _, test := range []struct {
		given, version string
		fields         []string
		filled         string
	}{
		{`{steps: 3}`, "", nil, `{` + defaults + `,"steps":3,"mode":"fast"}`},
		{`{note: b, steps: 10, mode: 3, lr: 1, flag: true}`, "1.10.0", nil, `{"lr":1,"steps":10,"mode":3,"flag":true,"note":"b"}`},
		{`{steps: 1, mode: 3.0}`, "", nil, `{` + defaults + `,"steps":1,"mode":3.0}`},
		{``, "", []string{"spec.hyperparams"}, ``},
		{`{}`, "", []string{"spec.hyperparams"}, ``},
		{`[a]`, "", []string{"spec.hyperparams"}, ``},
		{`{steps: 0}`, "", []string{"spec.hyperparams.steps"}, ``},
		{`{steps: 11}`, "", []string{"spec.hyperparams.steps"}, ``},
		{`{steps: 1.0}`, "", []string{"spec.hyperparams.steps"}, ``},
		{`{steps: true}`, "", []string{"spec.hyperparams.steps"}, ``},
		{`{steps: "3"}`, "", []string{"spec.hyperparams.steps"}, ``},
		{`{steps: 3, lr: 0}`, "", []string{"spec.hyperparams.lr"}, ``},
		{`{steps: 3, lr: true}`, "", []string{"spec.hyperparams.lr"}, ``},
		{`{steps: 3, lr: .nan}`, "", nil, `{"lr":{"$float":"nan"},"steps":3,"mode":"fast"}`},
		{`{steps: 3, half: 0.5}`, "", nil, `{` + defaults + `,"steps":3,"mode":"fast","half":0.5}`},
		{`{steps: 3, half: 0.50000000000000001}`, "", nil, `{` + defaults + `,"steps":3,"mode":"fast","half":0.5}`},
		{`{steps: 3, half: 1}`, "", []string{"spec.hyperparams.half"}, ``},
		{`{steps: 3, mode: Fast}`, "", []string{"spec.hyperparams.mode"}, ``},
		{`{steps: 3, note: c}`, "", []string{"spec.hyperparams.note"}, ``},
		{`{steps: 3, flag: 1}`, "", []string{"spec.hyperparams.flag"}, ``},
		{`{steps: 3, odd: 1}`, "", []string{"spec.hyperparams.odd"}, ``},
		{`{steps: 3, late: x}`, "", nil, `{` + defaults + `,"steps":3,"mode":"fast","late":"x"}`},
		{`{steps: 3, late: x}`, "2.0.0", nil, `{` + defaults + `,"steps":3,"mode":"fast","late":"x"}`},
		{`{steps: 3, late: x}`, " 1.10.0 ", []string{"spec.hyperparams.late"}, ``},
		{`{z: 1, lr: x, a: 1}`, "", []string{"spec.hyperparams", "spec.hyperparams.lr", "spec.hyperparams"}, ``},
	} {
		given, _ := pyyaml.Load([]byte(test.given), pyyaml.Options{})
		filled, report := r.CheckHyperparams(given, test.version)
		var fields []string
		for _, v := range report.Violations {
			if fields = append(fields, v.Field); v.Rule != "job.hyperparams.recipe" || v.Hint == "" {
				t.Errorf("%s: violation %+v", test.given, v)
			}
		}
		if !slices.Equal(fields, test.fields) {
			t.Errorf("%s %s: %v, want the fields %v", test.given, test.version, report.Violations, test.fields)
		}
		if got, err := json.Marshal(filled); test.filled != "" && (err != nil || string(got) != test.filled) {
			t.Errorf("%s: filled in %s, %v; want %s", test.given, got, err, test.filled)
		}
	}
}

// The rules that the readers file and those of the table are the same.
func TestDocumentRulesAreInTheTable(t *testing.T) {
	id := regexp.MustCompile(`^(recipe|benchmark)\.[a-z_.0-9]+$`)
	filed := make(map[string]bool)
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "_test.go") || !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, _ := strconv.Unquote(lit.Value); id.MatchString(s) && s != RecipeFile && s != BenchmarkFile {
					filed[s] = true
				}
			}
			return true
		})
	}
	listed := make(map[string]bool)
	for _, info := range rule.All() {
		if id.MatchString(string(info.ID)) {
			listed[string(info.ID)] = true
		}
	}
	if diff := cmp.Diff(listed, filed); diff != "" {
		t.Errorf("rules (-table +filed):\n%s", diff)
	}
}
