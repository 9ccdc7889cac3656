package pack

import (
	"encoding/json"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/google/go-cmp/cmp"
)

// wantBenchmark is a benchmark in a vector's answer.
type wantBenchmark struct {
	ToDict        json.RawMessage `json:"to_dict"`
	PrimaryMetric string          `json:"primary_metric"`
	Localized     map[string]json.RawMessage
}

func TestBenchmarkVectors(t *testing.T) {
	run := newVectorRun(t, "benchmark")
	for _, v := range readVectors(t, "benchmark-vectors.json") {
		for d, side := range v.sides(t) {
			folder := openDir(t, buildTree(t, side.Input.Tree))
			run.one(t, v.ID, d, func(policy rule.Policy) (rule.Report, string) {
				b, report, err := ReadBenchmark(folder, BenchmarkOptions{Policy: policy, Dialect: d, Name: orText(side.Input.Dir, "demo")})
				if err != nil {
					t.Fatal(err)
				}
				return report, benchmarkDiff(t, b, report, orText(side.Input.Owner, "alice"), side.Expect)
			})
		}
	}
	run.finish(t)
}

func benchmarkDiff(t *testing.T, b *Benchmark, report rule.Report, owner string, want vectorExpect) string {
	t.Helper()
	if diff := verdictDiff(report, want); diff != "" || want.Error != nil {
		return diff
	}
	var ok wantBenchmark
	if err := json.Unmarshal(want.OK, &ok); err != nil {
		t.Fatal(err)
	}
	diff := cmp.Diff(ok.PrimaryMetric, b.PrimaryMetric()) + recordDiff(t, *b, owner, ok.ToDict)
	for locale, toDict := range ok.Localized {
		diff += recordDiff(t, b.Localized(locale), owner, toDict)
	}
	return diff
}

func recordDiff(t *testing.T, b Benchmark, owner string, want json.RawMessage) string {
	t.Helper()
	got, err := json.Marshal(b.Record(owner))
	if err != nil {
		t.Fatal(err)
	}
	return cmp.Diff(plain(t, want), plain(t, got))
}

func TestPythonInt(t *testing.T) {
	for _, test := range []struct {
		v    *pyvalue.Value
		want string // "": Python raises
	}{
		{pyvalue.NewStr(" +1_000 "), "1000"},
		{pyvalue.NewStr("-007"), "-7"},
		{pyvalue.NewStr("１２"), "12"},
		{pyvalue.NewStr("٣"), "3"},
		{pyvalue.NewStr("1__0"), ""},
		{pyvalue.NewStr("_1"), ""},
		{pyvalue.NewStr("1_"), ""},
		{pyvalue.NewStr("0x10"), ""},
		{pyvalue.NewStr("- 1"), ""},
		{pyvalue.NewStr("5.0"), ""},
		{pyvalue.NewStr(""), ""},
		{pyvalue.NewStr("-"), ""},
		{&pyvalue.Value{Kind: pyvalue.Float, Float: -5.9}, "-5"},
		{&pyvalue.Value{Kind: pyvalue.Float, Float: 1e22}, "10000000000000000000000"},
		{&pyvalue.Value{Kind: pyvalue.Bool, Bool: true}, "1"},
		{&pyvalue.Value{Kind: pyvalue.List}, ""},
	} {
		got, ok := pyvalue.ParseInt(test.v)
		if ok != (test.want != "") || ok && got.String() != test.want {
			t.Errorf("int(%s) = %v, %v; want %q", test.v.PyRepr(), got, ok, test.want)
		}
	}
}
