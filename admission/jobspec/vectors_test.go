package jobspec

import (
	"bytes"
	"encoding/json"
	"math/big"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// vector is one document of jobspec-forge.json or jobspec-tuneplane.json (testdata/vectors/README-jobspec.md).
type vector struct {
	ID, Group, Title string
	Input            json.RawMessage
	InputText        *string `json:"input_text"`
	Result           struct {
		OK         bool
		Stage      string
		Field      *string
		Crash      bool
		Normalised json.RawMessage
		TotalGPUs  *big.Int `json:"total_gpus"`
	}
	Gatehouse struct {
		Verdict    string
		Rule       rule.ID
		Warnings   []rule.ID
		Normalised json.RawMessage
		Keeps      map[string]string
		Differs    bool
	}
}

func (v vector) source() []byte {
	if v.InputText != nil {
		return []byte(*v.InputText)
	}
	return v.Input
}

// want is the document that must be stored, nil when it is refused.
func (v vector) want() []byte {
	if v.Gatehouse.Normalised != nil {
		return compact(v.Gatehouse.Normalised)
	}
	return compact(v.Result.Normalised)
}

func readVectors[T any](t testing.TB, file string) []T {
	t.Helper()
	src, err := testdata.FS.ReadFile(path.Join("vectors", file))
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Vectors []T }
	if err := json.Unmarshal(src, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Vectors) == 0 {
		t.Fatalf("%s holds no vectors", file)
	}
	return all.Vectors
}

func compact(src []byte) []byte {
	if src == nil {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, src); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func rulesOf(found []rule.Violation) map[rule.ID]bool {
	ids := make(map[rule.ID]bool)
	for _, v := range found {
		ids[v.Rule] = true
	}
	return ids
}

var dialectFiles = map[dialect.Dialect]string{
	dialect.Forge: "jobspec-forge.json", dialect.TunePlane: "jobspec-tuneplane.json",
}

func TestVectors(t *testing.T) {
	for _, d := range dialect.All {
		t.Run(string(d), func(t *testing.T) {
			var accepted, refused, stricter, bytesEqual int
			for _, v := range readVectors[vector](t, dialectFiles[d]) {
				spec, report := Parse(v.source(), Options{Dialect: d})
				if v.Gatehouse.Differs {
					stricter++
				}
				if v.Gatehouse.Verdict == "refuse" {
					refused++
					checkRefused(t, v, report)
					continue
				}
				accepted++
				if !report.OK() {
					t.Errorf("%s %s: refused: %v", v.ID, v.Title, report.Violations)
					continue
				}
				checkAccepted(t, v, spec, report)
				bytesEqual++
			}
			t.Logf("%d vectors accepted (%d stored documents equal), %d refused, %d of all differ from the package on purpose", accepted, bytesEqual, refused, stricter)
		})
	}
}

func checkRefused(t *testing.T, v vector, report rule.Report) {
	t.Helper()
	if !rulesOf(report.Violations)[v.Gatehouse.Rule] {
		t.Errorf("%s %s: %s is not among %v", v.ID, v.Title, v.Gatehouse.Rule, report.Violations)
	}
	if v.Result.OK || v.Result.Stage != "spec" || v.Result.Crash || v.Result.Field == nil {
		return
	}
	report.ClientsFirst()
	if got := report.Violations[0].Field; got != *v.Result.Field {
		t.Errorf("%s %s: the first of the clients' fields is %q, the package's %q: %v", v.ID, v.Title, got, *v.Result.Field, report.Violations)
	}
}

func checkAccepted(t *testing.T, v vector, spec *Spec, report rule.Report) {
	t.Helper()
	warned := rulesOf(report.Warnings)
	for _, id := range v.Gatehouse.Warnings {
		if !warned[id] {
			t.Errorf("%s %s: no warning %s, only %v", v.ID, v.Title, id, report.Warnings)
		}
	}
	if len(v.Gatehouse.Warnings) == 0 && len(report.Warnings) > 0 {
		t.Errorf("%s %s: unexpected warnings %v", v.ID, v.Title, report.Warnings)
	}
	kept := *spec
	if corpus, ok := v.Gatehouse.Keeps["spec.data.corpus"]; ok {
		if spec.Data.Corpus != corpus {
			t.Errorf("%s %s: kept the corpus %q, want %q", v.ID, v.Title, spec.Data.Corpus, corpus)
		}
		kept.Data.Corpus = ""
	}
	if got := kept.Normalised(); !bytes.Equal(got, v.want()) {
		t.Errorf("%s %s: stored\n%s\nwant\n%s", v.ID, v.Title, got, v.want())
	}
	if want := v.Result.TotalGPUs; want != nil && big.NewInt(spec.TotalGPUs()).Cmp(want) != 0 {
		t.Errorf("%s %s: %d GPUs, want %s", v.ID, v.Title, spec.TotalGPUs(), want)
	}
	if again, report := Parse(spec.Normalised(), Options{Dialect: spec.Dialect}); !report.OK() || !bytes.Equal(again.Normalised(), spec.Normalised()) {
		if string(spec.Normalised()) != string(v.want()) || !strings.Contains(string(v.want()), `"train":{}`) {
			t.Errorf("%s %s: the stored document reads as %s (%v)", v.ID, v.Title, again.Normalised(), report.Violations)
		}
	}
}

// TestVectorsSoftened turns every rule of ours into a warning: what the package accepts is then accepted with the
// package's value, unless the rule can't be softened.
func TestVectorsSoftened(t *testing.T) {
	var ids []rule.ID
	for _, info := range rule.All() {
		if strings.HasPrefix(string(info.ID), "job.") && info.Softenable() {
			ids = append(ids, info.ID)
		}
	}
	policy, err := rule.Soften(ids...)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dialect.All {
		var met, kept int
		for _, v := range readVectors[vector](t, dialectFiles[d]) {
			if !v.Gatehouse.Differs || !v.Result.OK || v.Gatehouse.Verdict != "refuse" {
				continue
			}
			if info, _ := rule.Lookup(v.Gatehouse.Rule); !info.Softenable() {
				kept++
				continue
			}
			spec, report := Parse(v.source(), Options{Dialect: d, Policy: policy})
			if !report.OK() {
				t.Errorf("%s %s: refused though softened: %v", v.ID, v.Title, report.Violations)
				continue
			}
			plain := *spec
			plain.Data.Corpus = ""
			if got := plain.Normalised(); !bytes.Equal(got, compact(v.Result.Normalised)) {
				t.Errorf("%s %s: stored\n%s\nwant\n%s", v.ID, v.Title, got, compact(v.Result.Normalised))
			}
			met++
		}
		t.Logf("%s: %d vectors have the package's value with our rules softened, %d rules can't be softened", d, met, kept)
	}
}

func TestReferenceVectors(t *testing.T) {
	type refVector struct {
		ID         string
		Dialect    dialect.Dialect
		Input      json.RawMessage
		References []Reference
		HubRefs    *[]struct {
			Text             string
			Kind             HubKind
			Pinned, Platform bool
		} `json:"package_hub_refs"`
	}
	vectors := readVectors[refVector](t, "jobspec-references.json")
	for _, v := range vectors {
		spec, report := Parse(v.Input, Options{Dialect: v.Dialect})
		if !report.OK() {
			t.Fatalf("%s: %v", v.ID, report.Violations)
		}
		var got []Reference
		for ref := range spec.References() {
			got = append(got, ref)
		}
		if diff := cmp.Diff(v.References, got); diff != "" {
			t.Errorf("%s: references (-want +got):\n%s", v.ID, diff)
		}
		if v.HubRefs == nil {
			continue
		}
		hubRefs := spec.HubRefs()
		if len(hubRefs) != len(*v.HubRefs) {
			t.Errorf("%s: hub references %v, want %v", v.ID, hubRefs, *v.HubRefs)
			continue
		}
		for i, want := range *v.HubRefs {
			if h := hubRefs[i]; h.String() != want.Text || h.Kind != want.Kind || h.Pinned() != want.Pinned || h.Platform() != want.Platform {
				t.Errorf("%s: hub reference %v, want %v", v.ID, h, want)
			}
		}
	}
	t.Logf("%d vectors agree", len(vectors))
}

// topologyVector is one line of jobspec-topology.json.
type topologyVector struct {
	ID, Call  string
	Dialect   dialect.Dialect
	Resources json.RawMessage
	Roles     []string `json:"required_roles"`
	Result    struct {
		OK    bool
		Value json.RawMessage
		Field string
	}
}

func TestTopologyVectors(t *testing.T) {
	vectors := readVectors[topologyVector](t, "jobspec-topology.json")
	for _, v := range vectors {
		v.check(t)
	}
	t.Logf("%d vectors agree", len(vectors))
}

func (v topologyVector) check(t *testing.T) {
	t.Helper()
	res := resourcesOf(t, v.Dialect, v.Resources)
	var value any
	var found []rule.Violation
	if v.Call == "distributed_topology" {
		value, found = res.DistributedTopology(v.Roles)
	} else {
		value, found = res.PoolTopologies(v.Roles)
	}
	if v.Result.OK != (found == nil) {
		t.Errorf("%s: violations %v, want ok %t", v.ID, found, v.Result.OK)
		return
	}
	if !v.Result.OK {
		if found[0].Field != v.Result.Field {
			t.Errorf("%s: field %s, want %s", v.ID, found[0].Field, v.Result.Field)
		}
		return
	}
	got, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, compact(v.Result.Value)) {
		t.Errorf("%s: %s, want %s", v.ID, got, compact(v.Result.Value))
	}
}

func resourcesOf(t *testing.T, d dialect.Dialect, src []byte) Resources {
	t.Helper()
	doc, report := pyjson.Load(src, pyjson.Options{})
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	r := &reader{d: d, report: &report, spec: &Spec{Dialect: d}}
	r.resources(node{v: doc}.below(doc, step{key: "spec.resources", form: member}))
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	return r.spec.Resources
}

// TestRuleTable holds the table against the list of rules that the vectors were made with: every rule that a document
// alone can break is in the table, with the dialects of the list.
func TestRuleTable(t *testing.T) {
	src, err := testdata.FS.ReadFile("vectors/jobspec-rules.json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Rules []struct {
			ID       rule.ID
			Dialects []dialect.Dialect
			Source   string
		}
	}
	if err := json.Unmarshal(src, &list); err != nil {
		t.Fatal(err)
	}
	var held int
	for _, want := range list.Rules {
		info, ok := rule.Lookup(want.ID)
		if !ok {
			t.Errorf("%s (%s) is not in the table", want.ID, want.Source)
			continue
		}
		held++
		if want.Source == "server" {
			continue
		}
		dialects := info.Dialects
		if len(dialects) == 0 {
			dialects = dialect.All
		}
		if !cmp.Equal(want.Dialects, dialects) {
			t.Errorf("%s is a rule of %v, the list says %v", want.ID, dialects, want.Dialects)
		}
		if strings.HasPrefix(want.Source, "package") && info.Ours && info.OursIn == nil {
			t.Errorf("%s is a rule of the package, the table says ours", want.ID)
		}
		if strings.HasPrefix(want.Source, "ours") && !info.Ours && want.ID != "job.model.init_from.object" {
			t.Errorf("%s is a rule of ours, the table does not say so", want.ID)
		}
	}
	t.Logf("%d rules of %d in the table", held, len(list.Rules))
}
