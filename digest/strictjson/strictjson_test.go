package strictjson

import (
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/testdata"
)

func TestScanFaults(t *testing.T) {
	tests := []struct {
		name, src string
		want      Kind
		line, col int
		path      string
	}{
		{"empty", "", Syntax, 1, 1, ""},
		{"blank", " \n\t ", Syntax, 2, 3, ""},
		{"trailing comma in object", `{"a":1,}`, Syntax, 1, 8, ""},
		{"trailing comma in array", "[1,\n]", Syntax, 2, 1, "[1]"},
		{"trailing data", `{"a":1} {}`, Syntax, 1, 9, ""},
		{"comment", `{"a":1 /* x */}`, Syntax, 1, 8, "a"},
		{"single quotes", `{'a':1}`, Syntax, 1, 2, ""},
		{"leading zero", `[01]`, Syntax, 1, 3, "[1]"},
		{"no digits after the point", `[1.]`, Syntax, 1, 3, "[1]"},
		{"no digits in the exponent", `[1e]`, Syntax, 1, 3, "[1]"},
		{"plus", `[+1]`, Syntax, 1, 2, "[0]"},
		{"bare minus", `[-]`, Syntax, 1, 3, "[0]"},
		{"wrong bracket", `{"a":[1}`, Syntax, 1, 8, "a[1]"},
		{"unclosed", `{"a":[1`, Syntax, 1, 8, "a[1]"},
		{"no colon", `{"a" 1}`, Syntax, 1, 6, "a"},
		{"missing value", `{"a":}`, Syntax, 1, 6, "a"},
		{"word", `[nul]`, Syntax, 1, 2, "[0]"},
		{"newline in a text", "[\"a\nb\"]", Syntax, 1, 4, "[0]"},
		{"unclosed text", `["a]`, Syntax, 1, 2, "[0]"},
		{"escape at the end", `["a\`, Syntax, 1, 4, "[0]"},
		{"unknown escape", `["\x41"]`, Syntax, 1, 3, "[0]"},
		{"short \\u", `["\u12"]`, Syntax, 1, 3, "[0]"},
		{"column in characters", `["größe" x]`, Syntax, 1, 10, "[1]"},
		{"BOM", "\uFEFF{}", Encoding, 1, 1, ""},
		{"bad UTF-8", "[\n\"\xff\"]", Encoding, 2, 2, ""},
		{"surrogate in UTF-8", "[\"\xed\xa0\x80\"]", Encoding, 1, 3, ""},
		{"overlong", "[\"\xc0\xaf\"]", Encoding, 1, 3, ""},
		{"duplicate", `{"a":1,"b":{"c":1,"c":2}}`, Duplicate, 1, 19, "b.c"},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, Duplicate, 1, 8, "a"},
		{"duplicate of the second of a fold", `{"annotations":{"a":1,"A":2,"A":3}}`, Duplicate, 1, 29, "annotations.A"},
		{"case", `{"layers":[],"LAYERS":[]}`, Folded, 1, 14, "LAYERS"},
		{"case by Kelvin sign", `{"k":1,"` + "\u212A" + `":2}`, Folded, 1, 8, `"K"`},
		{"NaN", `{"a":NaN}`, Constant, 1, 6, "a"},
		{"minus infinity", `[-Infinity]`, Constant, 1, 2, "[0]"},
		{"out of range", `[1e999]`, Range, 1, 2, "[0]"},
		{"lone high surrogate", `["x\ud800"]`, Surrogate, 1, 4, "[0]"},
		{"lone low surrogate", `["\udc00"]`, Surrogate, 1, 3, "[0]"},
		{"two high surrogates", `["\ud800\ud800"]`, Surrogate, 1, 3, "[0]"},
		{"NUL", `["\u0000"]`, Control, 1, 3, "[0]"},
		{"form feed", `["\f"]`, Control, 1, 3, "[0]"},
		{"long integer", "[" + strings.Repeat("1", 4301) + "]", TooLong, 1, 2, "[0]"},
		{"deep", strings.Repeat("[", 65) + strings.Repeat("]", 65), TooDeep, 1, 65, strings.Repeat("[0]", 64)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := Scan([]byte(tt.src), Options{FreeKeys: []string{"annotations"}})
			f, ok := errors.AsType[*Fault](err)
			if !ok {
				t.Fatalf("Scan = %v, want a fault", err)
			}
			if f.Kind != tt.want || f.Line != tt.line || f.Column != tt.col || f.Path != tt.path {
				t.Errorf("got %v at %d:%d %q (%s), want %v at %d:%d %q", f.Kind, f.Line, f.Column, f.Path, f.Message, tt.want, tt.line, tt.col, tt.path)
			}
		})
	}
}

func TestScanAccepts(t *testing.T) {
	for _, src := range []string{
		"null", " \t\r\n1 ", `"\ud83d\ude80"`, `{"a":{"b":1},"c":{"b":1}}`, `[-0,0.0,1e-7,1E+5,-1.5]`,
		`{"annotations":{"a":"","A":""}}`, `{"annotations":{"x":{"a":"","A":""}}}`, "[\"\u2028\x7f\"]",
		strings.Repeat("[", 64) + strings.Repeat("]", 64), "[" + strings.Repeat("1", 4300) + "]", `["\t\n\r"]`,
		`{"":1,"a.b":[{}]}`,
	} {
		if err := Scan([]byte(src), Options{FreeKeys: []string{"annotations"}}); err != nil {
			t.Errorf("Scan(%.60q) = %v", src, err)
		}
	}
}

// TestCorpusManifests holds the manifests that EXPECT.md wants refused by a scan, and their twins.
func TestCorpusManifests(t *testing.T) {
	want := map[string]string{
		"m05-json-case.json": "keys equal but for case", "m07-json-dup.json": "duplicate key",
		"m23-bom.json": "encoding", "m25-deep.json": "depth",
		"m01-empty-layers.json": "", "m03-manifest-and-index.json": "", "m15-subject-missing.json": "",
	}
	for name, kind := range want {
		src, err := testdata.FS.ReadFile(path.Join("corpus", name))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if f, ok := errors.AsType[*Fault](Scan(src, Options{})); ok {
			got = f.Kind.String()
		}
		if got != kind {
			t.Errorf("%s: got %q, want %q", name, got, kind)
		}
	}
}

func TestDeepCostsNothing(t *testing.T) {
	src := []byte(strings.Repeat("[", 1<<20))
	allocs := testing.AllocsPerRun(3, func() {
		if Scan(src, Options{}) == nil {
			t.Fatal("accepted")
		}
	})
	if allocs > 200 {
		t.Errorf("%v allocations for a document refused at its 65th level", allocs)
	}
}

func TestTokens(t *testing.T) {
	r := NewReader([]byte("{\"ä\": [1.0, \"\\ud800x\"],\n \"b\": null}"), Options{Tolerate: func(f *Fault) bool { return f.Kind == Surrogate }})
	var got []Token
	for {
		tok, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, tok)
	}
	want := []Token{
		{BeginObject, "", 0, 1, 1}, {Key, "ä", 1, 1, 2}, {BeginArray, "", 7, 1, 7}, {Number, "1.0", 8, 1, 8},
		{String, "\xed\xa0\x80x", 13, 1, 13}, {EndArray, "", 22, 1, 22}, {Key, "b", 26, 2, 2}, {Null, "", 31, 2, 7}, {EndObject, "", 35, 2, 11},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// FuzzScan holds that what Scan accepts encoding/json accepts too, and that reading ends without a panic.
func FuzzScan(f *testing.F) {
	for _, dir := range []string{"corpus", "vectors"} {
		entries, err := testdata.FS.ReadDir(dir)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range entries {
			if src, err := testdata.FS.ReadFile(path.Join(dir, e.Name())); err == nil && strings.HasSuffix(e.Name(), ".json") && len(src) < 20000 {
				f.Add(src)
			}
		}
	}
	for _, s := range []string{`{"a":[1.5e-3,"\ud83d\ude80\n"],"b":{}}`, `[NaN]`, `{"a":1,"A":2}`, `"\ud800"`, `[1e999]`, "\uFEFF1", `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		err := Scan(src, Options{})
		fault, isFault := errors.AsType[*Fault](err)
		switch {
		case err == nil && !json.Valid(src):
			t.Errorf("accepted, but encoding/json refuses it")
		case err != nil && !isFault:
			t.Errorf("error is no Fault: %v", err)
		case isFault && (fault.Offset < 0 || fault.Offset > len(src) || fault.Line < 1 || fault.Column < 1):
			t.Errorf("fault at an impossible place: %+v", fault)
		case isFault && fault.Kind == Syntax && json.Valid(src):
			t.Errorf("encoding/json takes it, but: %v", fault)
		}
	})
}
