package pyjson

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

func rules(vs []rule.Violation) []string {
	var ids []string
	for _, v := range vs {
		ids = append(ids, string(v.Rule))
	}
	return ids
}

func TestLoadValue(t *testing.T) {
	v, report := Load([]byte("{\"a\": 1, \"b\": [1.0, 1e0, -0, 12345678901234567890123],\n\"c\": {\"d\": \"x\\u00e4\"}, \"e\": true, \"f\": null}"), Options{File: "f.json"})
	if !report.OK() || len(report.Warnings) > 0 {
		t.Fatal(report)
	}
	if got, want := v.PyRepr(), `{'a': 1, 'b': [1.0, 1.0, 0, 12345678901234567890123], 'c': {'d': 'xä'}, 'e': True, 'f': None}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	written := []string{v.Get("a").Written}
	for _, x := range v.Get("b").List {
		written = append(written, x.Written)
	}
	if d := cmp.Diff([]string{"1", "1.0", "1e0", "-0", "12345678901234567890123"}, written); d != "" {
		t.Error(d)
	}
	d := v.Get("c").Get("d")
	if d.Line != 2 || d.Column != 12 || d.Kind != pyvalue.Str {
		t.Errorf("position of c.d: %d:%d", d.Line, d.Column)
	}
	if k := v.Items[2].Key; k.Line != 2 || k.Column != 1 {
		t.Errorf("position of key c: %d:%d", k.Line, k.Column)
	}
}

// TestSoftened holds that a document that breaks rules of ours has Python's value, refused or not.
func TestSoftened(t *testing.T) {
	tests := []struct{ src, want, rule, field string }{
		{`{"a":1,"b":2,"a":3}`, `{'a': 3, 'b': 2}`, "json.duplicate_key", "a"},
		{`{"x":[NaN,Infinity,-Infinity]}`, `{'x': [nan, inf, -inf]}`, "json.constant", "x[0]"},
		{`{"x":[-1e999]}`, `{'x': [-inf]}`, "json.number", "x[0]"},
		{`["\ud800"]`, `['\ud800']`, "json.string", "[0]"},
		{`["a\u0000"]`, `['a\x00']`, "json.string", "[0]"},
		{strings.Repeat("[", 65) + strings.Repeat("]", 65), "", "json.depth", ""},
	}
	policy, err := rule.Soften("json.duplicate_key", "json.constant", "json.number", "json.string", "json.depth")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		for _, p := range []rule.Policy{{}, policy} {
			v, report := Load([]byte(tt.src), Options{Policy: p})
			if v == nil {
				t.Errorf("%.40s: no value", tt.src)
				continue
			}
			if got := v.PyRepr(); tt.want != "" && got != tt.want {
				t.Errorf("%.40s: got %s, want %s", tt.src, got, tt.want)
			}
			list := report.Violations
			if p.Softened(rule.ID(tt.rule)) {
				list = report.Warnings
			}
			if len(list) == 0 || len(report.Violations)+len(report.Warnings) != len(list) {
				t.Errorf("%.40s: softened %v: %v", tt.src, p.Softened(rule.ID(tt.rule)), report)
				continue
			}
			if string(list[0].Rule) != tt.rule || list[0].Field != tt.field || list[0].Hint == "" || list[0].Line != 1 {
				t.Errorf("%.40s: %+v", tt.src, list[0])
			}
		}
	}
}

func TestRefused(t *testing.T) {
	deep := strings.Repeat("[", 20000)
	tests := []struct {
		src  string
		opt  Options
		want []string
	}{
		{`{`, Options{}, []string{"json.syntax"}},
		{`{"a":NaN,"b":1,"b":2} x`, Options{}, []string{"json.constant", "json.duplicate_key", "json.syntax"}},
		{"\uFEFF{}", Options{}, []string{"json.encoding"}},
		{deep, Options{}, []string{"json.depth", "json.limit"}},
		{`[1,2,3]`, Options{MaxNodes: 3}, []string{"json.limit"}},
		{`[1,2,3]`, Options{MaxBytes: 6}, []string{"json.limit"}},
		{"[" + strings.Repeat("9", 5000) + "]", Options{}, []string{"json.limit"}},
	}
	for _, tt := range tests {
		v, report := Load([]byte(tt.src), tt.opt)
		if v != nil {
			t.Errorf("%.40s: has a value", tt.src)
		}
		if d := cmp.Diff(tt.want, rules(report.Violations)); d != "" {
			t.Errorf("%.40s: %s", tt.src, d)
		}
	}
}

func TestListsAreBounded(t *testing.T) {
	v, report := Load([]byte("["+strings.Repeat("NaN,", 50000)+"1e999]"), Options{})
	if v == nil || len(v.List) != 50001 {
		t.Fatal("not read to the end")
	}
	if n := len(report.Violations); n != maxListed+1 || report.Violations[maxListed].Rule != "json.number" {
		t.Errorf("%d violations", n)
	}
}

func TestFamily(t *testing.T) {
	_, report := Load([]byte(`{"a":1,"a":NaN}`), Options{Rules: Rules{Duplicate: "job.json.duplicate_key", Constant: "job.json.syntax"}})
	if d := cmp.Diff([]string{"job.json.duplicate_key", "job.json.syntax"}, rules(report.Violations)); d != "" {
		t.Error(d)
	}
	for _, id := range []rule.ID{Family("json").Syntax, Family("json").Encoding, Family("json").Limit, Family("json").Duplicate,
		Family("json").Constant, Family("json").Number, Family("json").Depth, Family("json").String} {
		if _, ok := rule.Lookup(id); !ok {
			t.Errorf("%s is not in the table", id)
		}
	}
}
