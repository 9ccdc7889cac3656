package pyjson

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// encoded writes a value as wanted does.
func encoded(v *pyvalue.Value) string {
	var parts []string
	switch v.Kind {
	case pyvalue.List:
		for _, x := range v.List {
			parts = append(parts, encoded(x))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case pyvalue.Map:
		for _, it := range v.Items {
			parts = append(parts, encoded(it.Key)+"="+encoded(it.Value))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case pyvalue.Str:
		return fmt.Sprintf("str:%q", v.Text)
	}
	return v.TypeName() + ":" + v.PyRepr()
}

// wanted writes a vector's [type, content].
func wanted(t *testing.T, v *pyvalue.Value) string {
	kind, parts := v.List[0].Text, []string(nil)
	switch kind {
	case "none":
		return "NoneType:None"
	case "bool":
		return "bool:" + v.List[1].PyRepr()
	case "list":
		for _, x := range v.List[1].List {
			parts = append(parts, wanted(t, x))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case "map":
		for _, it := range v.List[1].List {
			parts = append(parts, wanted(t, it.List[0])+"="+wanted(t, it.List[1]))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case "str":
		return fmt.Sprintf("str:%q", v.List[1].Text)
	case "wtf8":
		raw, err := base64.StdEncoding.DecodeString(v.List[1].Text)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("str:%q", raw)
	}
	return kind + ":" + v.List[1].Text
}

// TestVectors holds that, with the rules of ours softened, the value is that of Python's json, and that what it
// refuses is refused.
func TestVectors(t *testing.T) {
	src, err := testdata.FS.ReadFile("vectors/pyjson-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := rule.Soften("json.duplicate_key", "json.constant", "json.number", "json.string", "json.depth")
	if err != nil {
		t.Fatal(err)
	}
	doc, report := Load(src, Options{Policy: policy, MaxNodes: len(src), MaxBytes: len(src)})
	if !report.OK() {
		t.Fatal(report.Violations)
	}
	accepted, refused := 0, 0
	for _, v := range doc.Get("vectors").List {
		id, text := v.Get("id").Text, v.Get("json").Text
		got, report := Load([]byte(text), Options{Policy: policy})
		want := v.Get("expect").Get("ok")
		switch {
		case want == nil && (got != nil || report.OK()):
			t.Errorf("%s %.80q: accepted", id, text)
		case want == nil:
			refused++
		case got == nil || !report.OK():
			t.Errorf("%s %.80q: %v", id, text, report.Violations)
		default:
			accepted++
			if d := cmp.Diff(wanted(t, want), encoded(got)); d != "" {
				t.Errorf("%s %.80q: %s", id, text, d)
			}
		}
	}
	t.Logf("%d accepted with Python's value, %d refused as there", accepted, refused)
}

// FuzzLoad holds that reading ends, and that there is a value exactly when nothing ended it.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{`{"a":[1.5e-3,"\ud83d\ude80\n"],"b":{}}`, `[NaN,-Infinity,1e999]`, `{"a":1,"a":2}`, `"\ud800"`, "\uFEFF1", `{"a":{"b":[[[]]]}} x`} {
		f.Add([]byte(s))
	}
	policy, err := rule.Soften("json.duplicate_key", "json.constant", "json.number", "json.string", "json.depth")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		v, _ := Load(src, Options{})
		soft, report := Load(src, Options{Policy: policy})
		if (v == nil) != (soft == nil) || (soft == nil) != !report.OK() {
			t.Errorf("strict %v, softened %v, %v", v, soft, report)
		}
	})
}
