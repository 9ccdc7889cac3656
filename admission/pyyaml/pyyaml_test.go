package pyyaml

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

func at(v rule.Violation) string {
	return fmt.Sprintf("%s %d:%d %s", v.Rule, v.Line, v.Column, v.Field)
}

func listed(vs []rule.Violation) []string {
	var out []string
	for _, v := range vs {
		out = append(out, at(v))
	}
	return out
}

// TestStrictRules holds what is refused on top of the clients' rules, where it is said to be, and that the
// document has its value all the same.
func TestStrictRules(t *testing.T) {
	tests := []struct {
		name, src, value string
		violations       []string
		warnings         []string
	}{
		{"clean", "a: b\nc: [d, 'e', \"f\"]\n", "{'a': 'b', 'c': ['d', 'e', 'f']}", nil, nil},
		{"anchor and alias", "a: &x 1\nb: *x\n", "{'a': 1, 'b': 1}", []string{"yaml.alias 1:4 ", "yaml.alias 2:4 "}, nil},
		{"merge key", "a:\n  <<: {b: 1}\n", "{'a': {'b': 1}}", []string{"yaml.alias 2:3 "}, nil},
		{"quoted merge key", "'<<': a\n", "{'<<': 'a'}", nil, nil},
		{"tag", "a: !!str 1\n", "{'a': '1'}", []string{"yaml.tag 1:4 "}, nil},
		{"non-specific tag", "a: ! 1\n", "{'a': 1}", []string{"yaml.tag 1:4 "}, nil},
		{"duplicate", "a:\n  b: 1\n  b: 2\n", "{'a': {'b': 2}}", []string{"yaml.duplicate_key 3:3 a.b"}, nil},
		{"duplicates that Python takes for equal", "1: a\n1.0: b\n", "{1: 'b'}", []string{"yaml.duplicate_key 2:1 \"1.0\""}, []string{"yaml.scalar.unquoted 1:1 1", "yaml.scalar.unquoted 2:1 \"1.0\""}},
		{"a key that a merged map has too", "<<: {b: 1}\nb: 2\n", "{'b': 2}", []string{"yaml.alias 1:1 "}, nil},
		{"key that changes", "i18n:\n  no: {}\n", "{'i18n': {False: {}}}", []string{"yaml.scalar 2:3 i18n.no"}, nil},
		{"key that stays", "4.5: a\n", "{4.5: 'a'}", nil, []string{"yaml.scalar.unquoted 1:1 \"4.5\""}},
		{"key in quotes", "'no': a\n'1.10': b\n", "{'no': 'a', '1.10': 'b'}", nil, nil},
		{"everything at once", "a: &x 1\na: !!int '2'\n", "{'a': 2}", []string{"yaml.alias 1:4 ", "yaml.tag 2:4 ", "yaml.duplicate_key 2:1 a"}, nil},
		{"depth", strings.Repeat("[", 65) + strings.Repeat("]", 65), "", []string{"yaml.depth 1:65 "}, nil},
		{"empty", "", "None", nil, nil},
		{"comments", "# a\n", "None", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, report := Load([]byte(tt.src), Options{})
			if v == nil {
				t.Fatal(report)
			}
			if got := v.PyRepr(); tt.value != "" && got != tt.value {
				t.Errorf("value %s, want %s", got, tt.value)
			}
			if d := cmp.Diff(tt.violations, listed(report.Violations)); d != "" {
				t.Error("violations:", d)
			}
			if d := cmp.Diff(tt.warnings, listed(report.Warnings)); d != "" {
				t.Error("warnings:", d)
			}
			soft, report := Load([]byte(tt.src), Options{Policy: softest(t)})
			if soft == nil || !report.OK() || soft.PyRepr() != v.PyRepr() {
				t.Errorf("softened: %v", report)
			}
			if len(report.Warnings) != len(tt.violations)+len(tt.warnings) {
				t.Errorf("softened: warnings %v", listed(report.Warnings))
			}
		})
	}
}

// TestAlwaysRefused holds what no policy lets pass, and the rule that says so.
func TestAlwaysRefused(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9))
	}
	nested := "- &a " + strings.Repeat("[", 400) + strings.Repeat("]", 400) + "\n- " + strings.Repeat("[", 100) + "*a" + strings.Repeat("]", 100)
	tests := []struct{ name, src, want string }{
		{"not YAML", "a: [b", "yaml.syntax 1:6 "},
		{"two documents", "a\n---\nb", "yaml.syntax 2:1 "},
		{"undefined alias", "a: *b", "yaml.syntax 1:4 "},
		{"tab", "a:\n\tb: c", "yaml.syntax 2:1 "},
		{"Latin-1", "a: b\nc: gr\xf6\xdfe\n", "yaml.encoding 2:6 "},
		{"control character", "a: b\nc: \x07\n", "yaml.character 2:4 "},
		{"impossible date", "a: 2024-13-45\n", "yaml.value 1:4 "},
		{"long integer", "a: " + strings.Repeat("9", 4301), "yaml.value 1:4 "},
		{"long hexadecimal integer", "a: 0x" + strings.Repeat("f", 60000), "yaml.value 1:4 "},
		{"long sexagesimal integer", "a: 1" + strings.Repeat(":59", 60000), "yaml.value 1:4 "},
		{"list as a key", "[a]: b", "yaml.key 1:1 "},
		{"unknown tag", "a: !!python/object/apply:os.system ['id']", "yaml.tag.unknown 1:4 "},
		{"cycle", "a: &x [*x]", "yaml.alias.cycle 1:4 "},
		{"bomb", bomb, "yaml.alias.bomb 6:4 "},
		{"aliases that nest", nested, "yaml.recursion 1:3 "},
		{"brackets", strings.Repeat("[", 20000), "yaml.recursion 1:481 "},
		{"dashes", strings.Repeat("- ", 20000), "yaml.recursion 1:961 "},
		{"too many values", "[" + strings.Repeat("a,", 100_000) + "]", "yaml.limit 1:200000 "},
		{"too large", "# " + strings.Repeat("x", limit.Document), "yaml.limit 1:1 "},
	}
	for _, tt := range tests {
		for name, policy := range map[string]rule.Policy{"strict": {}, "softened": softest(t)} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				v, report := Load([]byte(tt.src), Options{Policy: policy, File: "f.yaml"})
				if v != nil || report.OK() {
					t.Fatalf("accepted: %s", v.PyRepr())
				}
				last := report.Violations[len(report.Violations)-1]
				if at(last) != tt.want || last.Hint == "" || last.File != "f.yaml" || len(last.Message) > 300 {
					t.Errorf("got %s (%s), want %s", at(last), last.Message, tt.want)
				}
			})
		}
	}
}

// TestCorpus holds what corpus/EXPECT.md asks of the reader itself, and that its controls pass.
func TestCorpus(t *testing.T) {
	tests := map[string]string{
		"y00-valid.yaml": "", "y01-version-1.10.yaml": "", "y03-NO.yaml": "", "y07-case.yaml": "", "y09-nul.yaml": "", "y23-version-int.yaml": "",
		"y05-merge.yaml": "yaml.alias", "y15-anchor-cycle.yaml": "yaml.alias", "y21-billion-laughs.yaml": "yaml.alias", "y17-tag-exec.yaml": "yaml.tag",
	}
	for name, family := range tests {
		v, report := Load(corpus(t, name), Options{})
		switch {
		case family == "" && (v == nil || !report.OK() || len(report.Warnings) > 0):
			t.Errorf("%s: %v", name, report)
		case family != "" && report.OK():
			t.Errorf("%s: accepted", name)
		}
		for _, found := range report.Violations {
			if !strings.HasPrefix(string(found.Rule), family) {
				t.Errorf("%s: %s is none of %s", name, found.Rule, family)
			}
		}
	}
	if v, _ := Load(corpus(t, "y09-nul.yaml"), Options{}); v.Get("name").Text != "a\x00b" {
		t.Errorf("y09: the name is %q", v.Get("name").Text)
	}
}

func corpus(t testing.TB, name string) []byte {
	t.Helper()
	src, err := testdata.FS.ReadFile(path.Join("corpus", name))
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestCheckText(t *testing.T) {
	tests := []struct{ written, rule string }{
		{"demo", ""}, {"'1.10'", ""}, {"~", ""}, {"", ""}, {"[a]", ""}, {"1e5", ""}, {"08", ""}, {"y", ""},
		{"2", "yaml.scalar.unquoted"}, {"1.5", "yaml.scalar.unquoted"}, {"2024-01-01", "yaml.scalar.unquoted"}, {"True", "yaml.scalar.unquoted"}, {"-7", "yaml.scalar.unquoted"},
		{"1.10", "yaml.scalar"}, {"0x10", "yaml.scalar"}, {"NO", "yaml.scalar"}, {"on", "yaml.scalar"}, {"0755", "yaml.scalar"}, {".inf", "yaml.scalar"},
		{"190:20:30", "yaml.scalar"}, {"true", "yaml.scalar"}, {"0", "yaml.scalar"}, {"1_000", "yaml.scalar"}, {"+1", "yaml.scalar"}, {"2024-01-01T00:00:00Z", "yaml.scalar"},
	}
	for _, tt := range tests {
		v, _ := Load([]byte("a: "+tt.written), Options{})
		var report rule.Report
		refused := CheckText(&report, "plugin.yaml", "a", v.Get("a"))
		got := ""
		if all := append(report.Violations, report.Warnings...); len(all) > 0 {
			got = string(all[0].Rule)
			if all[0].Line != 1 || all[0].Column != 4 || all[0].Field != "a" || all[0].File != "plugin.yaml" {
				t.Errorf("%s: %+v", tt.written, all[0])
			}
		}
		if got != tt.rule || refused != (got == "yaml.scalar") {
			t.Errorf("%s: got %q, refused %v", tt.written, got, refused)
		}
	}
}

func TestPositions(t *testing.T) {
	v, _ := Load([]byte("a: 1\nb:\n  - größe: x\n    c: 'y'\n"), Options{})
	entry := v.Get("b").List[0]
	for _, tt := range []struct {
		v         *pyvalue.Value
		line, col int
	}{{v, 1, 1}, {v.Get("a"), 1, 4}, {v.Get("b"), 3, 3}, {entry, 3, 5}, {entry.Get("größe"), 3, 12}, {entry.Items[1].Key, 4, 5}, {entry.Get("c"), 4, 8}} {
		if tt.v.Line != tt.line || tt.v.Column != tt.col {
			t.Errorf("%s at %d:%d, want %d:%d", tt.v.PyRepr(), tt.v.Line, tt.v.Column, tt.line, tt.col)
		}
	}
	if !v.Get("a").Plain || entry.Get("c").Plain || v.Get("a").Written != "1" {
		t.Error("Plain or Written is wrong")
	}
}

func TestListsAreBounded(t *testing.T) {
	_, report := Load([]byte("- &x a\n"+strings.Repeat("- *x\n", 1000)+"- !!str b\n"), Options{})
	if len(report.Violations) != maxListed+1 {
		t.Errorf("%d violations", len(report.Violations))
	}
}

// TestRules holds that no policy turns what ends the reading into a warning: a report without violations has a value.
func TestRules(t *testing.T) {
	for _, id := range []rule.ID{"yaml.syntax", "yaml.encoding", "yaml.character", "yaml.value", "yaml.key", "yaml.recursion", "yaml.limit", "yaml.alias.cycle", "yaml.alias.bomb", "yaml.tag.unknown"} {
		if info, ok := rule.Lookup(id); !ok || info.Softenable() || info.Severity != rule.Refuse {
			t.Errorf("%s can be softened, or is unknown", id)
		}
	}
}

// FuzzLoad holds that reading ends, that there is a value exactly when nothing ended it, and that positions lie in the text.
func FuzzLoad(f *testing.F) {
	entries, err := testdata.FS.ReadDir("corpus")
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "y") {
			f.Add(corpus(f, e.Name()))
		}
	}
	for i, v := range pyyamlVectors(f) {
		if i%5 == 0 {
			f.Add(v.src)
		}
	}
	policy := softest(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		v, report := Load(src, Options{MaxBytes: 64 << 10})
		soft, softReport := Load(src, Options{MaxBytes: 64 << 10, Policy: policy})
		if (soft == nil) != !softReport.OK() {
			t.Fatalf("softened: value %v, report %v", soft, softReport)
		}
		if (v == nil) != (soft == nil) {
			t.Fatal("the policy decides whether there is a value")
		}
		lines := strings.Count(string(src), "\n") + strings.Count(string(src), "\r") + strings.Count(string(src), "\u0085") + strings.Count(string(src), "\u2028") + strings.Count(string(src), "\u2029") + 1
		for _, found := range append(report.Violations, report.Warnings...) {
			if found.Line < 1 || found.Line > lines || found.Column < 1 || found.Column > len(src)+1 {
				t.Errorf("%s lies outside the text", found)
			}
		}
		if v != nil {
			v.PyRepr()
			v.TextOf()
		}
	})
}
