package canonical

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

func num(s string) *big.Int {
	n, _ := new(big.Int).SetString(s, 10)
	return n
}

func TestForms(t *testing.T) {
	astral := "\U0001f680"
	tests := []struct {
		v                any
		python, asciiOut string
	}{
		{nil, `null`, `null`}, {true, `true`, `true`}, {num("-12345678901234567890123"), `-12345678901234567890123`, `-12345678901234567890123`},
		{1.0, `1.0`, `1.0`}, {1e16, `1e+16`, `1e+16`}, {1e15, `1000000000000000.0`, `1000000000000000.0`}, {1e-5, `1e-05`, `1e-05`}, {1e-4, `0.0001`, `0.0001`}, {5e-324, `5e-324`, `5e-324`},
		{math.Copysign(0, -1), `-0.0`, `-0.0`}, {math.NaN(), `NaN`, `NaN`}, {math.Inf(-1), `-Infinity`, `-Infinity`}, {1e100, `1e+100`, `1e+100`},
		{"a\"\\/\b\f\n\r\t\x00\x1f\x7f<>&", `"a\"\\/\b\f\n\r\t\u0000\u001f` + "\x7f" + `<>&"`, `"a\"\\/\b\f\n\r\t\u0000\u001f\u007f<>&"`},
		{"é\u2028\ufffe" + astral, "\"é\u2028\ufffe" + astral + `"`, `"\u00e9\u2028\ufffe\ud83d\ude80"`},
		{[]any{}, `[]`, `[]`}, {Object{}, `{}`, `{}`}, {[]any{[]any{nil}, "x"}, `[[null],"x"]`, `[[null],"x"]`},
		{Object{{"b", 1.5}, {"a", nil}, {"B", false}}, `{"B":false,"a":null,"b":1.5}`, `{"B":false,"a":null,"b":1.5}`},
		{Object{{"\uffff", nil}, {astral, nil}}, "{\"\uffff\":null,\"" + astral + "\":null}", `{"\uffff":null,"\ud83d\ude80":null}`},
		{Object{{num("10"), "x"}, {num("9"), "y"}, {9.5, "z"}, {true, "w"}, {-1.0, "v"}}, `{"-1.0":"v","true":"w","9":"y","9.5":"z","10":"x"}`, `{"-1.0":"v","true":"w","9":"y","9.5":"z","10":"x"}`},
		{Object{{num("9007199254740993"), "x"}, {9007199254740992.0, "y"}}, `{"9007199254740992.0":"y","9007199254740993":"x"}`, `{"9007199254740992.0":"y","9007199254740993":"x"}`},
		{Object{{math.Inf(1), "x"}, {num("1" + strings.Repeat("0", 400)), "y"}, {math.Inf(-1), "z"}}, `{"-Infinity":"z","1` + strings.Repeat("0", 400) + `":"y","Infinity":"x"}`, `{"-Infinity":"z","1` + strings.Repeat("0", 400) + `":"y","Infinity":"x"}`},
		{Object{{nil, "x"}}, `{"null":"x"}`, `{"null":"x"}`}, {Object{{math.NaN(), "x"}}, `{"NaN":"x"}`, `{"NaN":"x"}`},
	}
	for _, tt := range tests {
		got, err := Python(tt.v)
		if err != nil || string(got) != tt.python {
			t.Errorf("Python(%v) = %s, %v; want %s", tt.v, got, err, tt.python)
		}
		got, err = ASCII(tt.v)
		if err != nil || string(got) != tt.asciiOut {
			t.Errorf("ASCII(%v) = %s, %v; want %s", tt.v, got, err, tt.asciiOut)
		}
	}
	if got, err := ASCII("\xed\xa0\x80"); err != nil || string(got) != `"\ud800"` {
		t.Errorf("ASCII of a lone surrogate = %s, %v", got, err)
	}
}

func TestIndent(t *testing.T) {
	v := Object{{"c", []any{num("1"), Object{{"x", "é"}}}}, {"b", Object{}}, {"a", []any{}}}
	got, err := Form{Indent: 2}.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"x\": \"é\"\n    }\n  ]\n}"
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Error(d)
	}
}

func TestErrors(t *testing.T) {
	var deep, cycle any
	for range MaxDepth + 1 {
		deep = []any{deep}
	}
	loop := []any{nil}
	loop[0] = loop
	cycle = loop
	big64 := strings.Repeat("x", 1<<20)
	many := make([]any, 80)
	for i := range many {
		many[i] = big64
	}
	tests := []struct {
		v    any
		form Form
		want Reason
		path string
	}{
		{Object{{"a", []any{nil, Opaque("date")}}}, Form{}, Unserializable, "a[1]"},
		{Object{{"a b", Object{{1.5, Opaque("set")}}}}, Form{}, Unserializable, `"a b".1.5`},
		{Object{{"x", Object{{num("1"), 0.0}, {"1", 0.0}}}}, Form{}, Keys, "x"},
		{Object{{"1", 0.0}, {true, 0.0}}, Form{}, Keys, ""},
		{Object{{nil, 0.0}, {"a", 0.0}}, Form{}, Keys, ""},
		{Object{{num("1"), 0.0}, {nil, 0.0}}, Form{}, Keys, ""},
		{Object{{math.NaN(), 0.0}, {1.0, 0.0}}, Form{}, Keys, ""},
		{Object{{Opaque("date"), 0.0}}, Form{}, Keys, ""},
		{Object{{[]any{}, 0.0}}, Form{}, Keys, ""},
		{Object{{"a", "\xed\xa0\x80"}}, Form{}, Surrogate, "a"},
		{Object{{"\xed\xa0\x80", nil}}, Form{}, Surrogate, `"\xed\xa0\x80"`},
		{[]any{math.Inf(1)}, Form{Finite: true}, NotFinite, "[0]"},
		{num(strings.Repeat("9", 4301)), Form{}, Digits, ""},
		{deep, Form{}, TooDeep, strings.Repeat("[0]", 134) + "..."},
		{cycle, Form{}, TooDeep, strings.Repeat("[0]", 134) + "..."},
		{many, Form{}, TooLarge, "[64]"},
		{struct{}{}, Form{}, Unserializable, ""},
	}
	for i, tt := range tests {
		_, err := tt.form.Encode(tt.v)
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Reason != tt.want || e.Path != tt.path {
			t.Errorf("%d: got %#v, want %s at %q", i, err, tt.want, tt.path)
		}
	}
}

// TestCatalogVectors holds the catalogue digest of real clients (recipes-and-locks.md 3).
func TestCatalogVectors(t *testing.T) {
	src, err := testdata.FS.ReadFile("vectors/catalog-digest-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Vectors []struct {
			ID     string
			Input  struct{ Recipes_json string }
			Expect struct {
				Canonical_base64, Catalog_digest string
			}
		}
	}
	if err := json.Unmarshal(src, &doc); err != nil {
		t.Fatal(err)
	}
	for _, v := range doc.Vectors {
		dec := json.NewDecoder(strings.NewReader(v.Input.Recipes_json))
		dec.UseNumber()
		var rows []map[string]any
		if err := dec.Decode(&rows); err != nil {
			t.Fatal(v.ID, err)
		}
		var list []any
		for _, row := range rows {
			list = append(list, Object{{"name", model(row["name"])}, {"version", model(row["version"])}, {"digest", model(row["digest"])}})
		}
		got, err := ASCII(list)
		if err != nil {
			t.Fatal(v.ID, err)
		}
		want, _ := base64.StdEncoding.DecodeString(v.Expect.Canonical_base64)
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Error(v.ID, d)
		}
		if d := digest.FromBytes(got).String(); d != v.Expect.Catalog_digest {
			t.Errorf("%s: digest %s, want %s", v.ID, d, v.Expect.Catalog_digest)
		}
	}
}

// model turns what encoding/json reads into this package's values.
func model(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, ok := new(big.Int).SetString(v.String(), 10); ok {
			return n
		}
		f, _ := v.Float64()
		return f
	case []any:
		var out []any
		for _, x := range v {
			out = append(out, model(x))
		}
		return out
	case map[string]any:
		var out Object
		for k, x := range v {
			out = append(out, Member{k, model(x)})
		}
		return out
	}
	return v
}

func TestJCS(t *testing.T) {
	tests := []struct{ src, want string }{
		{`{"b":1.0,"a":[1e2,-0,0.1e1],"A":"\u00e9\u0007<"}`, `{"A":"é\u0007<","a":[100,0,1],"b":1}`},
		{`{"\ud83d\ude80":1,"\ufb33":2}`, "{\"\U0001f680\":1,\"\ufb33\":2}"},
		{`[9007199254740991,-9007199254740991,1e30]`, `[9007199254740991,-9007199254740991,1e+30]`},
		{" null\n", `null`},
	}
	for _, tt := range tests {
		got, err := JCS([]byte(tt.src))
		if err != nil || string(got) != tt.want {
			t.Errorf("JCS(%s) = %s, %v; want %s", tt.src, got, err, tt.want)
		}
	}
	for src, want := range map[string]Reason{
		`{"a":1,"a":2}`: Input, "[\"\xff\"]": Input, `["\ud800"]`: Input, `[1e400]`: Input, `[9007199254740992]`: Input, `[-9007199254740993]`: Input, `[NaN]`: Input, "\uFEFF[]": Input,
		`[] x`: Input, ``: Input, strings.Repeat("[", 2000) + strings.Repeat("]", 2000): TooDeep,
	} {
		_, err := JCS([]byte(src))
		if e, ok := errors.AsType[*Error](err); !ok || e.Reason != want {
			t.Errorf("JCS(%.40s): %v", src, err)
		}
	}
}

// FuzzCanonical holds that a form reads back as the value it was made of and is its own form, Python's and RFC 8785's.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":1.0,"a":[1e2,-0,12345678901234567890],"A":"\u00e9\u0007<"}`, `[1.5e-7,"\ud83d\ude80",{}]`, `{"":{"a":[]}}`, `[9007199254740993]`, `1e400`} {
		f.Add([]byte(s))
	}
	read := func(src []byte) (any, bool) {
		dec := json.NewDecoder(strings.NewReader(string(src)))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) != nil || dec.More() {
			return nil, false
		}
		return model(v), true
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if form, err := JCS(src); err == nil {
			again, err := JCS(form)
			if err != nil && !strings.Contains(err.Error(), "2^53") { // 1e16 is written as an integer
				t.Fatalf("the form %s has no form: %v", form, err)
			}
			if err == nil && string(again) != string(form) {
				t.Fatalf("%s becomes %s", form, again)
			}
		}
		if !json.Valid(src) {
			return
		}
		v, ok := read(src)
		if !ok {
			return
		}
		for _, form := range []Form{{Finite: true}, {Finite: true, ASCII: true}, {Finite: true, Indent: 2}} {
			once, err := form.Encode(v)
			if err != nil {
				return
			}
			back, ok := read(once)
			if !ok {
				t.Fatalf("%s is no JSON", once)
			}
			twice, err := form.Encode(back)
			if err != nil || string(twice) != string(once) {
				t.Fatalf("%s becomes %s, %v", once, twice, err)
			}
		}
	})
}
