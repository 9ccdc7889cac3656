package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// The library of these tests: alice/opsd 1.0.0 is an algorithm for any job.
var (
	opsdContent  = digest.FromBytes([]byte("content"))
	opsdTree     = digest.FromBytes([]byte("tree"))
	opsdManifest = digest.FromBytes([]byte("manifest"))
	otherContent = digest.FromBytes([]byte("other"))
)

func opsd(d dialect.Dialect) PluginRecord {
	return PluginRecord{Kind: pack.KindAlgorithm, Dialect: d, Enabled: true, Content: opsdContent, Tree: opsdTree, Manifest: opsdManifest}
}

func plugin(id, version string, content digest.Digest) string {
	return fmt.Sprintf(`{"id":%q,"version":%q,"digest":%q}`, id, version, content)
}

// tunePack is a published recipe, which the tests know everything about.
func tunePack(d dialect.Dialect) catalogue.Entry {
	params := new(catalogue.Params)
	err := json.Unmarshal([]byte(`{"lr":{"name":"lr","type":"float","path":"optim.lr"},"steps":{"name":"steps","type":"int","path":"steps"}}`), params)
	if err != nil {
		panic(err)
	}
	e := catalogue.Entry{
		Name: "verl/tune", Version: "1.2.0", Digest: digest.FromBytes([]byte("recipe")).String(), Framework: "verl", Adapter: "verl",
		DefaultVersion: "0.9.0", Versions: []catalogue.Variant{{Version: "0.9.0", RuntimeID: "verl-0.9.0"}}, CoreRequires: ">=0.3,<1",
		Roles: []string{"actor", "rollout"}, Plugins: []string{}, Lifecycle: []string{"export"}, Observability: catalogue.Platform, Params: params,
		Pack: &catalogue.Pack{Owner: "alice", Name: "tune", Version: "3.0.0", Content: opsdContent, Tree: opsdTree, Manifest: opsdManifest},
	}
	if d == dialect.TunePlane {
		e.Integration = "tuneplane/framework-verl"
	}
	return e
}

func catalogueOf(t testing.TB, d dialect.Dialect) *catalogue.Catalogue {
	t.Helper()
	base, ok := catalogue.Builtin(d, catalogue.DefaultRelease(d))
	if !ok {
		t.Fatalf("no catalogue of %s", d)
	}
	all, shadowed := base.WithPacks([]catalogue.Entry{tunePack(d)})
	if shadowed != nil {
		t.Fatal(shadowed)
	}
	return all
}

// document is a job with the published recipe; tuneplane's with the integration that its client adds.
func document(d dialect.Dialect, plugins ...string) string {
	if d == dialect.TunePlane {
		plugins = append(plugins, `{"id":"tuneplane/framework-verl","version":"0.4.0","digest":"sha256:1fd55ee2917591194cc837ce544f974171661e7b9b8251056250b8575d88158a"}`)
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"TrainingJob","metadata":{"name":"demo","project":"lab"},"spec":{
"recipe":{"name":"verl/tune","version":"1.2.0","digest":%q},"source":{"exp":"experiments/demo"},
"framework":{"kind":"verl","version":"0.9.0","runtime_id":"verl-0.9.0"},
"resources":{"pools":[{"name":"all","series":"h200","nodes":1,"gpus_per_node":8}],"roles":{"actor":"all","rollout":"all"}},
"plugins":[%s]},"provenance":{"core_version":"0.4.0"}}`, d.Names().JobSpec, digest.FromBytes([]byte("recipe")), strings.Join(plugins, ","))
}

func inputOf(t testing.TB, d dialect.Dialect, src string) SubmissionInput {
	t.Helper()
	spec, report := jobspec.Parse([]byte(src), jobspec.Options{Dialect: d})
	return SubmissionInput{
		Spec: spec, Report: report, Account: "alice", Catalogue: catalogueOf(t, d),
		Plugins:    map[PluginRef]PluginRecord{{"alice/opsd", "1.0.0"}: opsd(d)},
		Quota:      Quota{Limit: 16, InUse: 8},
		Profiles:   []Profile{{Name: "h200", Series: "h200"}, {Name: "plain"}},
		ImageHosts: []string{"registry.example", "*.corp.example"},
	}
}

func ids(list []Violation) []string {
	var all []string
	for _, v := range list {
		all = append(all, string(v.Rule))
	}
	return all
}

func TestSubmissionAllows(t *testing.T) {
	for _, d := range dialect.All {
		in := inputOf(t, d, document(d, plugin("alice/opsd", "1.0.0", opsdContent)))
		decision, spec := CheckSubmission(in)
		if !decision.Allowed || spec == nil {
			t.Fatalf("%s: %v", d, decision.Violations)
		}
		if len(decision.Warnings) > 0 {
			t.Errorf("%s: warnings %v", d, decision.Warnings)
		}
		v := decision.Value.(SubmissionValue)
		if !bytes.Equal(v.Spec, spec.Normalised()) || !bytes.Contains(v.Spec, []byte(`"owner":"alice"`)) || v.SpecBytes != digest.FromBytes(v.Spec) || v.TotalGPUs != 8 {
			t.Errorf("%s: value %+v", d, v)
		}
		if sum, err := spec.Digest(); err != nil || v.SpecDigest != sum || decision.Subject.Digest != sum.String() || decision.Subject.Name != "demo" {
			t.Errorf("%s: subject %+v", d, decision.Subject)
		}
		if in.Spec.Metadata.Owner != "" {
			t.Errorf("%s: the input was changed", d)
		}
		pins := []receipt.Pin{{ID: "alice/opsd", Version: "1.0.0", Kind: "algorithm", Content: opsdContent, Tree: opsdTree, Manifest: opsdManifest}}
		if d == dialect.TunePlane {
			pins = append(pins, receipt.Pin{
				ID: "tuneplane/framework-verl", Version: "0.4.0", Kind: "framework-integration", RuntimeSupplied: true,
				Content: digest.MustParse("sha256:1fd55ee2917591194cc837ce544f974171661e7b9b8251056250b8575d88158a"),
			})
		}
		if !slices.Equal(v.Plugins, pins) {
			t.Errorf("%s: plugins %v", d, v.Plugins)
		}
		if recipes := []receipt.Pin{{ID: "alice/tune", Version: "3.0.0", Kind: "recipe", Content: opsdContent, Tree: opsdTree, Manifest: opsdManifest}}; !slices.Equal(v.Recipes, recipes) {
			t.Errorf("%s: recipes %v", d, v.Recipes)
		}
		if want := []Unchecked{{jobspec.RefSource, "spec.source.exp", "experiments/demo"}}; !slices.Equal(v.Unchecked, want) {
			t.Errorf("%s: unchecked %v", d, v.Unchecked)
		}
		if v.Catalogue.Release != catalogue.DefaultRelease(d) || v.Catalogue.Digest != in.Catalogue.Digest() {
			t.Errorf("%s: catalogue %+v", d, v.Catalogue)
		}
	}
}

// TestRealClientsSpecs admits what the real clients build for recipes that ship inside them.
func TestRealClientsSpecs(t *testing.T) {
	for d, src := range map[dialect.Dialect]string{
		dialect.Forge:     `{"apiVersion":"forge/v2","kind":"TrainingJob","metadata":{"name":"my-exp","project":"lab"},"spec":{"recipe":{"name":"nemo-rl/grpo","version":"0.7.0","digest":"sha256:c0b900db15a7a0649710d510164220b638b6947aa40c5c7212f9a4bf7d54805a"},"source":{"exp":"experiments/my-exp"},"framework":{"kind":"nemo-rl","version":"0.7.0","runtime_id":"nemo-rl-0.7.0"},"resources":{"pools":[{"name":"all","nodes":1,"gpus_per_node":8,"series":"h200"}],"roles":{"actor":"all","reference":"all","rollout":"all"}}},"provenance":{"core_version":"0.3.56","git_commit":"abc1234","config_sha":"0123456789ab"}}`,
		dialect.TunePlane: `{"apiVersion":"tuneplane/v1","kind":"TrainingJob","metadata":{"name":"my-exp","project":"lab"},"spec":{"recipe":{"name":"nemo-rl/grpo","version":"0.7.0","digest":"sha256:0ecd704b1a4231a377310b5a87de35405777ff443bffd39bc65a7e0cdae38ee1"},"source":{"exp":"experiments/my-exp"},"framework":{"kind":"nemo-rl","version":"0.7.0","runtime_id":"nemo-rl-0.7.0"},"resources":{"pools":[{"name":"all","nodes":1,"gpus_per_node":8,"series":"h200"}],"roles":{"actor":"all","reference":"all","rollout":"all"}},"plugins":[{"id":"tuneplane/framework-nemo-rl","version":"0.4.0","digest":"sha256:19a8751ae96d98e2e8e6378aa1e48fde025126d3d6527dbd3b30ed4bd3aefbd7"}]},"provenance":{"core_version":"0.4.0","git_commit":"abc1234","config_sha":"0123456789ab"}}`,
	} {
		in := inputOf(t, d, src)
		in.Account = ""
		decision, spec := CheckSubmission(in)
		if !decision.Allowed || len(decision.Warnings) > 0 {
			t.Fatalf("%s: %v %v", d, decision.Violations, decision.Warnings)
		}
		if string(spec.Normalised()) != src {
			t.Errorf("%s: stored\n%s\nsent\n%s", d, spec.Normalised(), src)
		}
	}
}

// a change of the good document or of the input, and what must come of it. An empty rule: allowed without a warning.
type submissionCase struct {
	name    string
	d       dialect.Dialect
	plugins []string
	replace []string // old, new
	input   func(*SubmissionInput)
	rule    string
	warns   bool
	says    []string
}

func TestSubmissionRules(t *testing.T) {
	opsd1 := plugin("alice/opsd", "1.0.0", opsdContent)
	record := func(change func(*PluginRecord)) func(*SubmissionInput) {
		return func(in *SubmissionInput) {
			r := in.Plugins[PluginRef{"alice/opsd", "1.0.0"}]
			change(&r)
			in.Plugins[PluginRef{"alice/opsd", "1.0.0"}] = r
		}
	}
	resolve := func(state ResolutionState, kind jobspec.RefKind) func(*SubmissionInput) {
		return func(in *SubmissionInput) {
			in.Resolve = func(ref jobspec.Reference) Resolution {
				if ref.Kind == kind {
					return Resolution{State: state, Version: "v7"}
				}
				return Resolution{State: Resolved}
			}
		}
	}
	entry := func(change func(*catalogue.Entry)) func(*SubmissionInput) {
		return func(in *SubmissionInput) {
			e := tunePack(in.Spec.Dialect)
			change(&e)
			in.Catalogue = catalogue.New(in.Catalogue.Dialect(), in.Catalogue.Release(), append([]catalogue.Entry{e}, in.Catalogue.Entries()...), in.Catalogue.Bundled())
		}
	}
	const framework = `"runtime_id":"verl-0.9.0"`
	const pools = `{"name":"all","series":"h200","nodes":1,"gpus_per_node":8}`
	pinned := "@" + digest.FromBytes([]byte("image")).String()
	tunePlane := dialect.TunePlane
	tests := []submissionCase{
		{name: "unknown version", plugins: []string{plugin("alice/opsd", "9.9.9", opsdContent)}, rule: "job.plugins.record.unknown", says: []string{"alice/opsd@9.9.9"}},
		{name: "unknown id", plugins: []string{plugin("bob/opsd", "1.0.0", opsdContent)}, rule: "job.plugins.record.unknown", says: []string{"bob/opsd@1.0.0"}},
		{name: "wrong digest", plugins: []string{plugin("alice/opsd", "1.0.0", otherContent)}, rule: "job.plugins.record.digest", says: []string{opsdContent.String(), otherContent.String(), "alice/opsd@1.0.0"}},
		{name: "disabled", plugins: []string{opsd1}, input: record(func(r *PluginRecord) { r.Enabled = false }), rule: "job.plugins.record.disabled", says: []string{"alice/opsd@1.0.0"}},
		{name: "other dialect", plugins: []string{opsd1}, input: record(func(r *PluginRecord) { r.Dialect = r.Dialect.Other() }), rule: "job.plugins.record.compat", says: []string{"tuneplane", "forge"}},
		{name: "core in range", plugins: []string{opsd1}, input: record(func(r *PluginRecord) { r.Requires.Core = ">=0.4,<1" })},
		{name: "core out of range", plugins: []string{opsd1}, input: record(func(r *PluginRecord) { r.Requires.Core = ">=0.5" }), rule: "job.plugins.record.core", says: []string{"0.4.0", ">=0.5"}},
		{name: "framework fits", d: tunePlane, plugins: []string{opsd1}, input: record(func(r *PluginRecord) {
			r.Requires.Frameworks = pack.Constraints{{Name: "trl"}, {Name: "verl", Specifier: ">=0.8"}}
			r.Requires.Methods = []string{"verl/tune"}
		})},
		{name: "framework version", d: tunePlane, plugins: []string{opsd1}, input: record(func(r *PluginRecord) { r.Requires.Frameworks = pack.Constraints{{Name: "verl", Specifier: ">=1"}} }), rule: "job.plugins.record.compat", says: []string{"0.9.0", ">=1"}},
		{name: "other framework", d: tunePlane, plugins: []string{opsd1}, input: record(func(r *PluginRecord) { r.Requires.Frameworks = pack.Constraints{{Name: "trl"}} }), rule: "job.plugins.record.compat", says: []string{"trl", "verl"}},
		{name: "other method", d: tunePlane, plugins: []string{opsd1}, input: record(func(r *PluginRecord) { r.Requires.Methods = []string{"verl/ppo"} }), rule: "job.plugins.record.compat", says: []string{"verl/ppo", "verl/tune"}},
		{name: "forge reads core only", d: dialect.Forge, plugins: []string{opsd1}, input: record(func(r *PluginRecord) { r.Requires.Methods = []string{"verl/ppo"} })},
		{name: "leaf names", plugins: []string{opsd1, plugin("bob/opsd", "1.0.0", opsdContent)}, input: func(in *SubmissionInput) {
			in.Plugins[PluginRef{"bob/opsd", "1.0.0"}] = opsd(in.Spec.Dialect)
		}, rule: "job.plugins.leaf_collision", says: []string{"alice/opsd", "bob/opsd"}},
		{name: "bundled digest", d: tunePlane, replace: []string{"1fd55ee2", "00000000"}, rule: "job.plugins.record.digest", says: []string{"1fd55ee2", "00000000", "0.4.0"}},
		{name: "bundled version", d: tunePlane, replace: []string{`"version":"0.4.0","digest"`, `"version":"0.3.0","digest"`}, rule: "job.plugins.record.unknown", says: []string{"0.3.0", "ships 0.4.0"}},
		{name: "bundled id in forge", d: dialect.Forge, plugins: []string{plugin("tuneplane/framework-verl", "0.4.0", opsdContent)}, rule: "job.plugins.record.unknown"},
		{name: "integration of another framework", d: tunePlane, replace: []string{`framework-verl","version":"0.4.0","digest":"sha256:1fd55ee2917591194cc837ce544f974171661e7b9b8251056250b8575d88158a`,
			`framework-trl","version":"0.4.0","digest":"sha256:6e994e6e95bd50e1ab0827cbc8fd72a02b0eadcbbff52c8f351462cbee3fe760`}, rule: "job.plugins.integration", says: []string{"framework-trl", "framework-verl"}},
		{name: "two integrations", d: tunePlane, plugins: []string{`{"id":"tuneplane/framework-trl","version":"0.4.0","digest":"sha256:6e994e6e95bd50e1ab0827cbc8fd72a02b0eadcbbff52c8f351462cbee3fe760"}`}, rule: "job.plugins.integration"},
		{name: "integration that the release lacks", d: tunePlane, replace: []string{`{"id":"tuneplane/framework-verl","version":"0.4.0","digest":"sha256:1fd55ee2917591194cc837ce544f974171661e7b9b8251056250b8575d88158a"}`, ""},
			input: entry(func(e *catalogue.Entry) { e.Integration = "lab/framework-verl" }), rule: "job.plugins.integration"},
		{name: "a kind that the framework does not run", d: tunePlane, plugins: []string{opsd1}, input: record(func(r *PluginRecord) { r.Kind = pack.KindDataPrepJob }), rule: "job.plugins.hooks", warns: true, says: []string{"data-prep-job", "verl"}},
		{name: "a kind that forge passes over", d: dialect.Forge, plugins: []string{opsd1}, input: record(func(r *PluginRecord) { r.Kind = pack.KindDataPrep })},
		{name: "algorithm missing", d: tunePlane, replace: []string{`"version":"1.2.0",`, `"version":"1.2.0","plugins":["opsd"],`}, rule: "job.recipe.plugins.provided", says: []string{"opsd"}},
		{name: "algorithm of the recipe missing", d: tunePlane, input: entry(func(e *catalogue.Entry) { e.Plugins = []string{"opsd"} }), rule: "job.recipe.plugins.provided"},
		{name: "algorithm provided", d: tunePlane, plugins: []string{opsd1}, replace: []string{`"version":"1.2.0",`, `"version":"1.2.0","plugins":["opsd"],`}},
		{name: "algorithm of another kind", d: tunePlane, plugins: []string{opsd1}, replace: []string{`"version":"1.2.0",`, `"version":"1.2.0","plugins":["opsd"],`},
			input: record(func(r *PluginRecord) { r.Kind = pack.KindEnvironment }), rule: "job.recipe.plugins.provided"},

		{name: "recipe unknown", replace: []string{"verl/tune", "verl/tuna"}, rule: "job.handshake.recipe.name", says: []string{"verl/tuna", "verl/tune"}},
		{name: "no catalogue", d: dialect.Forge, input: func(in *SubmissionInput) { in.Catalogue = nil }, rule: "job.handshake.recipe.name"},
		{name: "recipe version", replace: []string{`"version":"1.2.0"`, `"version":"1.1.0"`}, rule: "job.handshake.recipe.version", says: []string{"1.1.0", "1.2.0"}},
		{name: "recipe digest", replace: []string{digest.FromBytes([]byte("recipe")).Hex(), otherContent.Hex()}, rule: "job.handshake.recipe.digest", says: []string{otherContent.String(), digest.FromBytes([]byte("recipe")).String()}},
		{name: "framework kind", replace: []string{`"kind":"verl"`, `"kind":"trl"`}, rule: "job.handshake.framework.kind"},
		{name: "framework version", replace: []string{`"version":"0.9.0"`, `"version":"1.0.0"`}, rule: "job.handshake.framework.version", says: []string{"1.0.0", "0.9.0"}},
		{name: "runtime id", replace: []string{framework, `"runtime_id":"verl-1"`}, rule: "job.handshake.runtime_id", says: []string{"verl-1", "verl-0.9.0"}},
		{name: "core version", replace: []string{`"core_version":"0.4.0"`, `"core_version":"1.0"`}, rule: "job.core_version.range", says: []string{"1.0", ">=0.3,<1"}},
		{name: "core pre-release", replace: []string{`"core_version":"0.4.0"`, `"core_version":"0.4.1rc1"`}},
		{name: "alias", replace: []string{"verl/tune", "verl/alice.tune"}, rule: "job.handshake.recipe.alias", warns: true, says: []string{"verl/tune"}},

		{name: "image of an allowed host", replace: []string{framework, framework + `,"image":"registry.example/x:1` + pinned + `"`}},
		{name: "image of an allowed domain", replace: []string{framework, framework + `,"image":"Eu.corp.example:443/x` + pinned + `"`}, rule: "job.framework.image.allowlist", says: []string{"eu.corp.example:443"}},
		{name: "image below the domain", replace: []string{framework, framework + `,"image":"eu.corp.example/x` + pinned + `"`}},
		{name: "image of no host", replace: []string{framework, framework + `,"image":"library/x:1` + pinned + `"`}, rule: "job.framework.image.allowlist", says: []string{"docker.io", "registry.example"}},
		{name: "image of a host that ends alike", replace: []string{framework, framework + `,"image":"evilregistry.example/x` + pinned + `"`}, rule: "job.framework.image.allowlist"},
		{name: "all images", replace: []string{framework, framework + `,"image":"x` + pinned + `"`}, input: func(in *SubmissionInput) { in.ImageHosts = []string{"*"} }},
		{name: "image unchecked", replace: []string{framework, framework + `,"image":"x` + pinned + `"`}, input: func(in *SubmissionInput) { in.ImageHosts = nil }, rule: "job.reference.unchecked", warns: true, says: []string{"image"}},
		{name: "link of a platform recipe", replace: []string{framework, framework + `,"observability_url":"https://o.example"`}, rule: "job.framework.observability_url.forbidden"},
		{name: "no link of an external recipe", input: entry(func(e *catalogue.Entry) { e.Observability = catalogue.External }), rule: "job.framework.observability_url.required"},
		{name: "link of an external recipe", replace: []string{framework, framework + `,"observability_url":"https://o.example"`}, input: entry(func(e *catalogue.Entry) { e.Observability = catalogue.External })},

		{name: "hyperparameter", replace: []string{`"resources"`, `"hyperparams":{"lr":1},"resources"`}},
		{name: "unknown hyperparameter", replace: []string{`"resources"`, `"hyperparams":{"l":1},"resources"`}, rule: "job.hyperparams.recipe", says: []string{"lr", "steps"}},
		{name: "hyperparameter's type", replace: []string{`"resources"`, `"hyperparams":{"steps":"1"},"resources"`}, rule: "job.hyperparams.recipe"},
		{name: "hyperparameter's path", replace: []string{`"resources"`, `"hyperparams":{"optim.lr":1e-6},"resources"`}, rule: "job.hyperparams.path_key", warns: true, says: []string{"lr"}},
		{name: "hyperparameters not known", replace: []string{`"resources"`, `"hyperparams":{"x":1},"resources"`}, input: entry(func(e *catalogue.Entry) { e.Params = nil }), rule: "job.reference.unchecked", warns: true, says: []string{"hyperparams"}},
		{name: "action", replace: []string{`"resources"`, `"lifecycle":{"on_success":["export"]},"resources"`}},
		{name: "action that the recipe lacks", replace: []string{`"resources"`, `"lifecycle":{"on_success":["eval"]},"resources"`}, rule: "job.lifecycle.on_success.recipe", says: []string{"eval", "export"}},
		{name: "actions not known", replace: []string{`"resources"`, `"lifecycle":{"on_success":["eval"]},"resources"`}, input: entry(func(e *catalogue.Entry) { e.Lifecycle = nil }), rule: "job.reference.unchecked", warns: true},

		{name: "role that the recipe lacks", replace: []string{`"rollout":"all"`, `"trainer":"all"`}, rule: "job.resources.roles.recipe", warns: true, says: []string{"trainer", "actor, rollout"}},
		{name: "two pools", replace: []string{pools, `{"name":"all","gpus_per_node":4},{"name":"b","gpus_per_node":4}`, `"rollout":"all"`, `"rollout":"b"`}},
		{name: "idle pool", replace: []string{pools, `{"name":"all","gpus_per_node":4},{"name":"b","gpus_per_node":4}`}, rule: "job.resources.topology.idle", says: []string{`"b"`}},
		{name: "role without a pool", replace: []string{pools, `{"name":"all","gpus_per_node":4},{"name":"b","gpus_per_node":4}`, `,"rollout":"all"`, ``}, rule: "job.resources.topology.roles", says: []string{"rollout"}},
		{name: "CPU pool beside a GPU pool", d: tunePlane, replace: []string{pools, `{"name":"all","gpus_per_node":4},{"name":"b","gpus_per_node":0,"cpus":1,"memory_gb":1}`, `"rollout":"all"`, `"rollout":"b"`}, rule: "job.resources.topology.cpu_only"},
		{name: "CPU pool alone", d: tunePlane, replace: []string{pools, `{"name":"all","gpus_per_node":0,"cpus":1,"memory_gb":1}`}},
		{name: "unknown series", replace: []string{`"series":"h200"`, `"series":"b300"`}, rule: "job.resources.series.exists", says: []string{"b300", "h200"}},
		{name: "series of a profile's name", replace: []string{`"series":"h200"`, `"series":"plain"`}},
		{name: "quota met", input: func(in *SubmissionInput) { in.Quota = Quota{Limit: 8} }},
		{name: "quota exceeded", input: func(in *SubmissionInput) { in.Quota = Quota{Limit: 15, InUse: 8} }, rule: "job.quota.gpus", says: []string{"8", "15"}},
		{name: "no GPUs count against no quota", d: tunePlane, replace: []string{pools, `{"name":"all","gpus_per_node":0,"cpus":1,"memory_gb":1}`}, input: func(in *SubmissionInput) { in.Quota = Quota{Limit: 1, InUse: 5} }},
		{name: "no quota", input: func(in *SubmissionInput) { in.Quota = Quota{InUse: 1000} }},

		{name: "request agrees", input: func(in *SubmissionInput) {
			in.Beside = &Beside{Exp: "experiments/demo/", Profile: "h200", Project: "lab", Spec: in.Spec.Normalised()}
		}},
		{name: "other experiment", input: func(in *SubmissionInput) { in.Beside = &Beside{Exp: "experiments/x"} }, rule: "job.meta.agree", says: []string{"experiments/x", "experiments/demo"}},
		{name: "other project", input: func(in *SubmissionInput) { in.Beside = &Beside{Project: "x"} }, rule: "job.meta.agree"},
		{name: "unknown profile", input: func(in *SubmissionInput) { in.Beside = &Beside{Profile: "x"} }, rule: "job.meta.agree", says: []string{"h200, plain"}},
		{name: "other profile", input: func(in *SubmissionInput) { in.Beside = &Beside{Profile: "plain"} }, rule: "job.meta.agree", says: []string{"plain", "h200"}},
		{name: "two specs", input: func(in *SubmissionInput) {
			in.Beside = &Beside{Spec: bytes.Replace(in.Spec.Normalised(), []byte(`"gpus_per_node":8`), []byte(`"gpus_per_node":1`), 1)}
		}, rule: "job.meta.agree"},
		{name: "second spec is none", input: func(in *SubmissionInput) { in.Beside = &Beside{Spec: []byte("[]")} }, rule: "job.meta.agree"},

		{name: "dataset unchecked", replace: []string{`"resources"`, `"data":{"train":{"dataset":"bob/d@1"}},"resources"`}, rule: "job.reference.unchecked", warns: true, says: []string{"dataset", "bob/d@1"}},
		{name: "dataset there", replace: []string{`"resources"`, `"data":{"train":{"dataset":"bob/d@1"}},"resources"`}, input: resolve(Resolved, "dataset")},
		{name: "dataset missing", replace: []string{`"resources"`, `"data":{"train":{"dataset":"bob/d@1"}},"resources"`}, input: resolve(NotFound, "dataset"), rule: "job.data.dataset.access", says: []string{"bob/d@1"}},
		{name: "dataset refused", replace: []string{`"resources"`, `"data":{"quality":{"overlap_with":"bob/d@1"}},"resources"`}, input: resolve(NotAllowed, "dataset"), rule: "job.data.dataset.access"},
		{name: "unchecked refused", replace: []string{`"resources"`, `"data":{"train":{"dataset":"bob/d@1"}},"resources"`}, input: func(in *SubmissionInput) { in.RefuseUnchecked = []jobspec.RefKind{"dataset"} }, rule: "job.reference.unverified"},
		{name: "volume", replace: []string{`"resources"`, `"data":{"volumes":["bob/v"]},"resources"`}, input: resolve(NotFound, "volume"), rule: "job.data.volumes.access"},
		{name: "environment", replace: []string{`"resources"`, `"data":{"environment":"bob/e@1"},"resources"`}, input: resolve(NotFound, "environment"), rule: "job.data.environment.access"},
		{name: "output of another owner", replace: []string{`"resources"`, `"data":{"output_dataset":"bob/d@1"},"resources"`}, rule: "job.data.output_dataset.owner", says: []string{"alice", "bob"}},
		{name: "output of another owner as administrator", replace: []string{`"resources"`, `"data":{"output_dataset":"bob/d@1"},"resources"`}, input: func(in *SubmissionInput) {
			resolve(Resolved, "")(in)
			in.AnyNamespace = true
		}},
		{name: "output version used", replace: []string{`"resources"`, `"data":{"output_dataset":"alice/d@1"},"resources"`}, input: resolve(NotAllowed, "dataset"), rule: "job.data.output_dataset.owner"},
		{name: "artifact", replace: []string{`"resources"`, `"model":{"init_from":"run/r/checkpoint"},"resources"`}, input: resolve(NotFound, "artifact"), rule: "job.model.init_from.exists"},
		{name: "model", replace: []string{`"resources"`, `"model":{"base":"hf:a/b"},"resources"`}, input: resolve(NotAllowed, "model"), rule: "job.hub.policy"},
		{name: "suite", replace: []string{`"resources"`, `"evaluation":{"suites":["gsm8k"]},"resources"`}, input: resolve(NotFound, "benchmark"), rule: "job.evaluation.suites.exists"},
		{name: "baseline", replace: []string{`"resources"`, `"evaluation":{"baseline":"r-1"},"resources"`}, input: resolve(NotFound, "run"), rule: "job.evaluation.baseline.exists"},
		{name: "runner", replace: []string{`"resources"`, `"evaluation":{"runner":"lm-eval"},"resources"`}, input: resolve(NotFound, "runner"), rule: "job.reference.missing"},
	}
	for _, tt := range tests {
		dialects := dialect.All
		if tt.d != "" {
			dialects = []dialect.Dialect{tt.d}
		}
		for _, d := range dialects {
			t.Run(string(d)+"/"+tt.name, func(t *testing.T) { tt.check(t, d) })
		}
	}
}

func (tt submissionCase) check(t *testing.T, d dialect.Dialect) {
	src := document(d, tt.plugins...)
	for i := 0; i < len(tt.replace); i += 2 {
		if !strings.Contains(src, tt.replace[i]) {
			t.Fatalf("the document has no %s", tt.replace[i])
		}
		src = strings.Replace(src, tt.replace[i], tt.replace[i+1], 1)
	}
	in := inputOf(t, d, src)
	if tt.input != nil {
		tt.input(&in)
	}
	decision, spec := CheckSubmission(in)
	list := decision.Violations
	if tt.warns || tt.rule == "" {
		list = decision.Warnings
	}
	if allowed := tt.rule == "" || tt.warns; decision.Allowed != allowed || (spec != nil) != allowed {
		t.Fatalf("allowed %t, want %t: %v", decision.Allowed, allowed, decision.Violations)
	}
	if tt.rule == "" {
		if len(list) > 0 {
			t.Errorf("warnings %v", list)
		}
		return
	}
	if got := ids(list); len(got) != 1 || got[0] != tt.rule {
		t.Fatalf("got %v, want one %s", list, tt.rule)
	}
	for _, word := range tt.says {
		if !strings.Contains(list[0].Message, word) {
			t.Errorf("%q does not name %s", list[0].Message, word)
		}
	}
	if list[0].Hint == "" {
		t.Error("no hint")
	}
}

// TestSubmissionRewrites checks what is stored where the document says it otherwise.
func TestSubmissionRewrites(t *testing.T) {
	src := strings.NewReplacer(
		"verl/tune", "verl/alice.tune",
		`"resources"`, `"hyperparams":{"optim.lr":1e-6},"data":{"environment":"bob/e"},"resources"`,
		`,{"id":"tuneplane/framework-verl","version":"0.4.0","digest":"sha256:1fd55ee2917591194cc837ce544f974171661e7b9b8251056250b8575d88158a"}`, "",
	).Replace(document(dialect.TunePlane, plugin("alice/opsd", "1.0.0", opsdContent)))
	in := inputOf(t, dialect.TunePlane, src)
	in.Resolve = func(jobspec.Reference) Resolution { return Resolution{State: Resolved, Version: "v7"} }
	decision, spec := CheckSubmission(in)
	if !decision.Allowed {
		t.Fatal(decision.Violations)
	}
	for _, want := range []string{
		`"name":"verl/tune"`, `"hyperparams":{"lr":1e-06}`, `"environment":"bob/e@v7"`,
		`{"id":"tuneplane/framework-verl","version":"0.4.0","digest":"sha256:1fd55ee2917591194cc837ce544f974171661e7b9b8251056250b8575d88158a"}]`,
	} {
		if !strings.Contains(string(spec.Normalised()), want) {
			t.Errorf("the stored document lacks %s: %s", want, spec.Normalised())
		}
	}
	got := ids(decision.Warnings)
	slices.Sort(got)
	if want := []string{"job.data.environment.unpinned", "job.handshake.recipe.alias", "job.hyperparams.path_key", "job.plugins.integration.added"}; !slices.Equal(got, want) {
		t.Errorf("warnings %v, want %v", got, want)
	}
	if len(in.Spec.Plugins) != 1 || in.Spec.Recipe.Name != "verl/alice.tune" || !in.Spec.Hyperparams.Has("optim.lr") {
		t.Error("the input was changed")
	}
	if again, report := jobspec.Parse(spec.Normalised(), jobspec.Options{}); !report.OK() || !bytes.Equal(again.Normalised(), spec.Normalised()) {
		t.Errorf("the stored document is refused: %v", report.Violations)
	}
}

// TestSubmissionAllAtOnce checks that faults of the document and faults that only a server sees come together.
func TestSubmissionAllAtOnce(t *testing.T) {
	src := strings.NewReplacer(`"name":"demo"`, `"name":"-demo"`, "1.2.0", "9.9.9", `"gpus_per_node":8`, `"gpus_per_node":64`).
		Replace(document(dialect.Forge, plugin("alice/opsd", "7", otherContent), plugin("bob/x", "1", opsdContent)))
	decision, spec := CheckSubmission(inputOf(t, dialect.Forge, src))
	want := []string{"job.metadata.name.segment", "job.handshake.recipe.version", "job.quota.gpus", "job.plugins.record.unknown", "job.plugins.record.unknown"}
	if got := ids(decision.Violations); spec != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if decision.Value != nil {
		t.Errorf("a document that breaks rules has a value: %v", decision.Value)
	}
}

func TestSubmissionOfNothing(t *testing.T) {
	for _, src := range []string{"", "[]", "null", "{", `"x"`} {
		for _, d := range dialect.All {
			decision, spec := CheckSubmission(inputOf(t, d, src))
			if decision.Allowed || spec != nil || len(decision.Violations) == 0 {
				t.Errorf("%q is admitted", src)
			}
		}
	}
}

// TestSubmissionOfHalfASpec takes every part of a good document away in turn: the gate must refuse or admit, never fall.
func TestSubmissionOfHalfASpec(t *testing.T) {
	for _, d := range dialect.All {
		var whole map[string]any
		if err := json.Unmarshal([]byte(document(d, plugin("alice/opsd", "1.0.0", opsdContent))), &whole); err != nil {
			t.Fatal(err)
		}
		for _, put := range []any{nil, 7, "x", []any{}, map[string]any{}} {
			var visit func(at map[string]any)
			visit = func(at map[string]any) {
				for key, old := range at {
					at[key] = put
					src, err := json.Marshal(whole)
					if err != nil {
						t.Fatal(err)
					}
					decision, spec := CheckSubmission(inputOf(t, d, string(src)))
					if decision.Allowed != (spec != nil) {
						t.Errorf("%s: %s: allowed %t", d, key, decision.Allowed)
					}
					at[key] = old
					if next, ok := old.(map[string]any); ok {
						visit(next)
					}
				}
			}
			visit(whole)
		}
	}
}

func TestCheckJobSpec(t *testing.T) {
	d := CheckJobSpec([]byte(document(dialect.TunePlane)), "job.json", CheckOptions{})
	v, ok := d.Value.(JobSpecValue)
	if !d.Allowed || !ok || d.Subject.Dialect != dialect.TunePlane || v.TotalGPUs != 8 || len(v.References) != 5 || d.Subject.Digest != v.SpecDigest.String() {
		t.Errorf("%+v", d)
	}
	d = CheckJobSpec([]byte(document(dialect.TunePlane)), "job.json", CheckOptions{Dialect: dialect.Forge})
	if d.Allowed || d.Violations[0].Rule != "job.apiversion.value" || d.Violations[0].File != "job.json" || d.Violations[0].Line != 1 {
		t.Errorf("%+v", d)
	}
}

// TestBuiltinCustom admits the one shipped recipe whose runtime and page the user brings.
func TestBuiltinCustom(t *testing.T) {
	c := catalogueOf(t, dialect.Forge)
	custom, _ := c.Lookup("custom/custom")
	src := fmt.Sprintf(`{"apiVersion":"forge/v2","kind":"TrainingJob","metadata":{"name":"b1"},"spec":{"recipe":{"name":"custom/custom","version":%q,"digest":%q},
"source":{"exp":"experiments/b1"},"framework":{"kind":"custom","version":"user-managed"IMAGE},"resources":{"pools":[{"name":"all"}]}},"provenance":{"core_version":"0.3.56"}}`, custom.Version, custom.Digest)
	decision, _ := CheckSubmission(inputOf(t, dialect.Forge, strings.Replace(src, "IMAGE", `,"image":"registry.example/x","observability_url":"https://o.example"`, 1)))
	if !decision.Allowed {
		t.Error(decision.Violations)
	}
	decision, _ = CheckSubmission(inputOf(t, dialect.Forge, strings.Replace(src, "IMAGE", "", 1)))
	if got := ids(decision.Violations); !slices.Equal(got, []string{"job.framework.image.required", "job.framework.observability_url.required"}) {
		t.Errorf("%v", decision.Violations)
	}
}
