package pyyaml

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// vector is one line of pyyaml-vectors.json.
type vector struct {
	id, category string
	src          []byte
	expect       *pyvalue.Value
}

func readVectors(t testing.TB, name string) []*pyvalue.Value {
	t.Helper()
	src, err := testdata.FS.ReadFile("vectors/" + name)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := rule.Soften("json.string")
	if err != nil {
		t.Fatal(err)
	}
	doc, report := pyjson.Load(src, pyjson.Options{Policy: policy, MaxBytes: len(src), MaxNodes: len(src), MaxDepth: 800})
	if !report.OK() {
		t.Fatal(report.Violations[0])
	}
	return doc.Get("vectors").List
}

func pyyamlVectors(t testing.TB) []vector {
	t.Helper()
	var all []vector
	for _, v := range readVectors(t, "pyyaml-vectors.json") {
		x := vector{id: v.Get("id").Text, category: v.Get("category").Text, expect: v.Get("expect")}
		if text := v.Get("yaml"); text != nil {
			x.src = []byte(text.Text)
		} else {
			x.src = unbase64(t, v.Get("yaml_b64").Text)
		}
		all = append(all, x)
	}
	return all
}

func unbase64(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// softest turns every rule of ours into a warning.
func softest(t testing.TB) rule.Policy {
	t.Helper()
	var ids []rule.ID
	for _, i := range rule.All() {
		if i.Softenable() && strings.HasPrefix(string(i.ID), "yaml.") {
			ids = append(ids, i.ID)
		}
	}
	p, err := rule.Soften(ids...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// encoded writes a value as the vectors do.
func encoded(v *pyvalue.Value) string {
	all := func(list []*pyvalue.Value) string {
		var parts []string
		for _, x := range list {
			parts = append(parts, encoded(x))
		}
		return strings.Join(parts, ",")
	}
	switch v.Kind {
	case pyvalue.None:
		return "none"
	case pyvalue.Bool:
		return fmt.Sprintf("bool:%v", v.Bool)
	case pyvalue.Int:
		return "int:" + v.Int.String()
	case pyvalue.Float:
		return "float:" + pyvalue.FloatText(v.Float)
	case pyvalue.Str:
		return fmt.Sprintf("str:%q", v.Text)
	case pyvalue.Bytes:
		return fmt.Sprintf("bytes:%q", v.Text)
	case pyvalue.Date:
		return "date:" + v.Text
	case pyvalue.DateTime:
		return "datetime:" + v.Text
	case pyvalue.List:
		return "[" + all(v.List) + "]"
	case pyvalue.Tuple:
		return "(" + all(v.List) + ")"
	case pyvalue.Set:
		members := slices.Clone(v.List)
		slices.SortStableFunc(members, func(a, b *pyvalue.Value) int { return strings.Compare(a.PyRepr(), b.PyRepr()) })
		return "set{" + all(members) + "}"
	}
	var parts []string
	for _, it := range v.Items {
		parts = append(parts, encoded(it.Key)+"="+encoded(it.Value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// wanted writes the vectors' [type, content] as encoded does.
func wanted(t testing.TB, v *pyvalue.Value) string {
	kind := v.List[0].Text
	if kind == "none" {
		return kind
	}
	content := v.List[1]
	all := func() string {
		var parts []string
		for _, x := range content.List {
			parts = append(parts, wanted(t, x))
		}
		return strings.Join(parts, ",")
	}
	switch kind {
	case "bool":
		return fmt.Sprintf("bool:%v", content.Bool)
	case "str":
		return fmt.Sprintf("str:%q", content.Text)
	case "wtf8":
		return fmt.Sprintf("str:%q", unbase64(t, content.Text))
	case "bytes":
		return fmt.Sprintf("bytes:%q", unbase64(t, content.Text))
	case "list":
		return "[" + all() + "]"
	case "tuple":
		return "(" + all() + ")"
	case "set":
		return "set{" + all() + "}"
	case "map":
		var parts []string
		for _, it := range content.List {
			parts = append(parts, wanted(t, it.List[0])+"="+wanted(t, it.List[1]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return kind + ":" + content.Text
}

// TestVectors holds that, with the rules of ours softened, the value is PyYAML's, and that what PyYAML refuses or
// crashes on is refused, at the same place.
func TestVectors(t *testing.T) {
	policy := softest(t)
	counts := make(map[string]int)
	for _, v := range pyyamlVectors(t) {
		t.Run(v.id, func(t *testing.T) {
			got, report := Load(v.src, Options{Policy: policy})
			if id, ok := stricter[string(v.src)]; ok {
				counts["stricter"]++
				if got != nil || report.OK() || report.Violations[0].Rule != id {
					t.Errorf("%.200q: want %s, got %v", v.src, id, report)
				}
				return
			}
			if ok := v.expect.Get("ok"); ok != nil {
				counts["accepted"]++
				if got == nil || !report.OK() {
					t.Fatalf("%.200q: refused: %v", v.src, report.Violations)
				}
				if d := cmp.Diff(wanted(t, ok), encoded(got)); d != "" {
					t.Errorf("%.200q: %s", v.src, d)
				}
				if r := v.expect.Get("repr"); r != nil && r.Text != got.PyRepr() {
					t.Errorf("%.200q: repr is %s, want %s", v.src, got.PyRepr(), r.Text)
				}
				return
			}
			counts["refused"]++
			if got != nil || report.OK() {
				t.Fatalf("%.200q: accepted as %s", v.src, got.PyRepr())
			}
			first := report.Violations[0]
			if e := v.expect.Get("error"); e != nil && e.Get("line") != nil {
				if want := fmt.Sprintf("%s:%s", e.Get("line").Written, e.Get("column").Written); want != fmt.Sprintf("%d:%d", first.Line, first.Column) {
					t.Errorf("%.200q: refused at %d:%d (%s), want %s", v.src, first.Line, first.Column, first, want)
				}
			}
			if e := v.expect.Get("error"); e != nil {
				if crash := e.Get("class").Text == "crash"; crash && !slices.Contains(crashRules, first.Rule) {
					t.Errorf("%.200q: PyYAML crashes; the rule is %s", v.src, first.Rule)
				}
			} else if first.Rule != "yaml.alias.cycle" {
				t.Errorf("%.200q: a cycle; the rule is %s", v.src, first.Rule)
			}
		})
	}
	t.Logf("%d accepted with PyYAML's value, %d refused as there, %d refused on purpose", counts["accepted"], counts["refused"], counts["stricter"])
}

// stricter lists the documents that PyYAML reads and no policy lets pass: a map that merges itself.
var stricter = map[string]rule.ID{"&a {<<: *a}": "yaml.alias.cycle", "&a {<<: [*a], b: 1}": "yaml.alias.cycle"}

// crashRules are the rules of what makes the clients' reader crash.
var crashRules = []rule.ID{"yaml.encoding", "yaml.value", "yaml.recursion"}

// TestVectorNodes holds that every node has PyYAML's tag, text and place.
func TestVectorNodes(t *testing.T) {
	policy := softest(t)
	for _, v := range pyyamlVectors(t) {
		nodes := v.expect.Get("nodes")
		if nodes == nil {
			continue
		}
		l := newLoader(Options{Policy: policy})
		text, err := decode(v.src)
		if err != nil {
			t.Fatal(v.id, err)
		}
		root, err := l.parse(text)
		if err != nil {
			t.Errorf("%s: %v", v.id, err)
			continue
		}
		var got, want []string
		var walk func(n *node)
		walk = func(n *node) {
			if n == nil {
				return
			}
			kind := [...]string{"scalar", "list", "map"}[n.kind]
			got = append(got, fmt.Sprintf("%s %s %q %d:%d", kind, n.tag, n.value, n.start.line+1, n.start.column+1))
			for _, item := range n.items {
				walk(item)
			}
			for _, p := range n.pairs {
				walk(p.key)
				walk(p.value)
			}
		}
		walk(root)
		for i, n := range nodes.List {
			f := n.List
			value := f[2].Text
			if f[2].Kind == pyvalue.None && i < len(got) { // a text that JSON can't hold
				value = ""
				got[i] = fmt.Sprintf("%s %s %q %s", f[0].Text, f[1].Text, "", got[i][strings.LastIndexByte(got[i], ' ')+1:])
			}
			want = append(want, fmt.Sprintf("%s %s %q %s:%s", f[0].Text, f[1].Text, value, f[3].Written, f[4].Written))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s %.200q: %s", v.id, v.src, d)
		}
	}
}
