package pack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

func TestManifestVectors(t *testing.T) {
	run := newVectorRun(t, "manifest")
	for _, v := range readVectors(t, "manifest-vectors.json") {
		for d, side := range v.sides(t) {
			run.one(t, v.ID, d, func(policy rule.Policy) (rule.Report, string) {
				m, report := ParseManifest(side.Input.source(), ManifestOptions{
					Policy: policy, Dialect: d, DefaultVersion: side.Input.DefaultVersion,
				})
				return report, manifestDiff(t, m, report, side.Expect)
			})
		}
	}
	run.finish(t)
}

func manifestDiff(t *testing.T, m *Manifest, report rule.Report, want vectorExpect) string {
	t.Helper()
	if diff := verdictDiff(report, want); diff != "" || want.Error != nil {
		return diff
	}
	var ok struct {
		Kind        string          `json:"kind"`
		Executable  bool            `json:"executable"`
		ToDict      json.RawMessage `json:"to_dict"`
		Capability  *string         `json:"capability"`
		Execution   *string         `json:"execution"`
		PackageType *string         `json:"package_type"`
	}
	if err := json.Unmarshal(want.OK, &ok); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if !sameJSON(t, got, ok.ToDict) {
		return fmt.Sprintf("stored form\n%s\nwant\n%s", got, ok.ToDict)
	}
	if string(m.Kind) != ok.Kind || m.Kind.Executable() != ok.Executable {
		return fmt.Sprintf("kind %s (executable %t), want %s (%t)", m.Kind, m.Kind.Executable(), ok.Kind, ok.Executable)
	}
	for _, c := range []struct {
		got  string
		want *string
	}{{m.Kind.Capability(), ok.Capability}, {m.Kind.Execution(), ok.Execution}, {m.Kind.PackageType(), ok.PackageType}} {
		if c.want != nil && c.got != *c.want {
			return fmt.Sprintf("got %q, want %q", c.got, *c.want)
		}
	}
	return ""
}

// corpusManifests are the verdicts of EXPECT.md: the family that refuses, "" for acceptance.
var corpusManifests = map[string]string{
	"y00-valid.yaml":          "",
	"y01-version-1.10.yaml":   "yaml.scalar",
	"y03-NO.yaml":             "yaml.scalar",
	"y05-merge.yaml":          "yaml.alias",
	"y07-case.yaml":           "manifest.name",
	"y09-nul.yaml":            "manifest.name",
	"y11-hexver.yaml":         "yaml.scalar",
	"y13-octal.yaml":          "yaml.scalar",
	"y15-anchor-cycle.yaml":   "yaml.alias",
	"y17-tag-exec.yaml":       "yaml.tag",
	"y19-inf.yaml":            "yaml.scalar",
	"y21-billion-laughs.yaml": "yaml.alias",
	"y23-version-int.yaml":    "",
}

func TestCorpusManifests(t *testing.T) {
	files, err := testdata.FS.ReadDir("corpus")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".yaml") {
			continue
		}
		family, ok := corpusManifests[f.Name()]
		if !ok {
			t.Errorf("%s has no verdict here", f.Name())
			continue
		}
		n++
		src, err := testdata.FS.ReadFile("corpus/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		_, report := ParseManifest(src, ManifestOptions{Dialect: dialect.Forge})
		if family == "" {
			if !report.OK() {
				t.Errorf("%s: refused: %v", f.Name(), report.Violations)
			}
			continue
		}
		for _, v := range report.Violations {
			if !strings.HasPrefix(string(v.Rule), family) {
				t.Errorf("%s: refused by %s, want the family %s only: %s", f.Name(), v.Rule, family, v)
			}
		}
		if report.OK() {
			t.Errorf("%s: accepted, want a refusal by %s", f.Name(), family)
		}
	}
	t.Logf("%d corpus manifests as EXPECT.md says", n)
}

// manifestRulesBroken is what a manifest breaks or is warned of, by rule.
func manifestRulesBroken(t *testing.T, src string, d dialect.Dialect) map[rule.ID]rule.Violation {
	t.Helper()
	_, report := ParseManifest([]byte(src), ManifestOptions{Dialect: d})
	broken := make(map[rule.ID]rule.Violation)
	for _, v := range append(report.Violations, report.Warnings...) {
		broken[v.Rule] = v
	}
	return broken
}

func TestManifestHints(t *testing.T) {
	const forge = "schema: forge/plugin/v1\nname: demo\nversion: \"1\"\nkind: algorithm\nentrypoint: main:f\n"
	const tune = "schema: tuneplane/plugin/v1\nname: demo\nversion: \"1\"\ncapability: algorithm\nentrypoint: main:f\n"
	cases := []struct {
		name, src string
		dialect   dialect.Dialect
		rule      rule.ID
		field     string
		line      int
		hint      string
	}{
		{"case of a key", strings.Replace(forge, "name:", "Name:", 1), "", "manifest.name", "name", 1, `"Name"`},
		{"misspelled key", strings.Replace(forge, "entrypoint:", "entrypiont:", 1), "", "manifest.entrypoint", "entrypoint", 1, `"entrypiont"`},
		{"unknown key in forge", forge + "sumary: x\n", "", "manifest.field.ignored", "sumary", 6, `"summary"`},
		{"unknown key in tuneplane", tune + "sumary: x\n", "", "manifest.field.unknown", "", 6, `"summary"`},
		{"type in tuneplane", tune + "type: runtime\n", "", "manifest.field.unknown", "", 6, "follows from the capability"},
		{"the other dialect", tune, dialect.Forge, "manifest.schema", "schema", 1, "tuneplane"},
		{"ignored requirement", forge + "requires: {sdk: '>=1'}\n", "", "manifest.field.ignored", "requires.sdk", 6, ""},
		{"misspelled requirement", tune + "requires: {cores: '>=1'}\n", "", "manifest.field.unknown", "requires", 6, `"core"`},
		{"position of a value", forge + "homepage: ftp://x\n", "", "manifest.homepage", "homepage", 6, "https"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			v, ok := manifestRulesBroken(t, c.src, c.dialect)[c.rule]
			if !ok {
				t.Fatalf("no %s", c.rule)
			}
			if v.Field != c.field || v.Line != c.line || !strings.Contains(v.Hint, c.hint) || v.File != ManifestFile {
				t.Errorf("field %q, line %d, file %q, hint %q; want %q, %d, a hint with %q", v.Field, v.Line, v.File, v.Hint, c.field, c.line, c.hint)
			}
		})
	}
}

// Every field is checked, whatever is wrong with the others.
func TestManifestListsEverything(t *testing.T) {
	src := "schema: x\nname: -a\nversion: +\ncapability: algorithm\nexecution: job\nentrypoint: 1\nload: x\nrequires: {core: x, python: y, frameworks: [z], methods: 1, backends: ['']}\nscope: x\napi: 2\nicon: abcdefghi\nhomepage: x\nkeywords: x\nfoo: 1\n7: x\n"
	broken := manifestRulesBroken(t, src, dialect.TunePlane)
	for _, want := range []rule.ID{
		"manifest.schema", "manifest.name", "manifest.version", "manifest.execution", "manifest.entrypoint", "manifest.load",
		"manifest.requires.core", "manifest.requires.python", "manifest.requires.frameworks", "manifest.requires.list",
		"manifest.scope", "manifest.api", "manifest.icon", "manifest.homepage", "manifest.keywords", "manifest.field.unknown", "manifest.key",
	} {
		if _, ok := broken[want]; !ok {
			t.Errorf("no %s", want)
		}
	}
}

func TestManifestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		src  string
		rule rule.ID
	}{
		"size":           {algorithmManifest + "author: '" + strings.Repeat("x", 64<<10) + "'\n", "manifest.limit"},
		"lone surrogate": {algorithmManifest + "author: \"\\ud800\"\n", "manifest.text"},
		"length of name": {strings.Replace(algorithmManifest, "Demo", strings.Repeat("x", 129), 1), "manifest.name.length"},
		"many keys":      {algorithmManifest + manyKeys(1500), ""},
		"long key":       {algorithmManifest + strings.Repeat("k", 900) + ": x\n", ""},
	} {
		m, report := ParseManifest([]byte(c.src), ManifestOptions{})
		if c.rule == "" {
			if !report.OK() || len(report.Warnings) > 2*maxListed {
				t.Errorf("%s: %d violations, %d warnings", name, len(report.Violations), len(report.Warnings))
			}
			continue
		}
		if report.OK() || report.Violations[0].Rule != c.rule {
			t.Errorf("%s: %v %v, want %s", name, m, report.Violations, c.rule)
		}
	}
	if _, report := ParseManifest([]byte(strings.Replace(algorithmManifest, "Demo", strings.Repeat("x", 128), 1)), ManifestOptions{}); !report.OK() {
		t.Errorf("a name of 128 characters is refused: %v", report.Violations)
	}
}

// However much is wrong, the answer is short, and a rule that is broken late is still filed.
func TestManifestOfManyFaults(t *testing.T) {
	src := algorithmManifest + "keywords: [" + strings.Repeat("1.5, 1.10, ", 3000) + "x]\nlicense: 0x10\nhomepage: x\n"
	broken := manifestRulesBroken(t, src, "")
	for _, want := range []rule.ID{"yaml.scalar", "yaml.scalar.unquoted", "manifest.homepage"} {
		if _, ok := broken[want]; !ok {
			t.Errorf("no %s", want)
		}
	}
	_, report := ParseManifest([]byte(src), ManifestOptions{})
	if n := len(report.Violations) + len(report.Warnings); n > 3*(maxListed+1) {
		t.Errorf("%d findings", n)
	}
	keys := "schema: tuneplane/plugin/v1\nname: demo\nversion: \"1\"\ncapability: recipe\n" + manyIntKeys(2000)
	_, report = ParseManifest([]byte(keys), ManifestOptions{})
	if n := len(report.Violations) + len(report.Warnings); report.OK() || n > 200 {
		t.Errorf("%d findings", n)
	}
}

func manyIntKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d: x\n", i+1)
	}
	return b.String()
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key_number_%d: x\n", i)
	}
	return b.String()
}

func TestManifestDialectIsDetected(t *testing.T) {
	for src, want := range map[string]dialect.Dialect{
		"schema: forge/plugin/v1\n":     dialect.Forge,
		"schema: tuneplane/plugin/v1\n": dialect.TunePlane,
		"capability: recipe\n":          dialect.TunePlane,
		"kind: recipe\n":                dialect.Forge,
		"":                              dialect.Forge,
	} {
		m, report := ParseManifest([]byte(src), ManifestOptions{})
		if m == nil || m.Dialect != want || report.OK() {
			t.Errorf("%q: %+v, %v; want the dialect %s and a refusal", src, m, report.Violations, want)
		}
	}
}

func FuzzManifest(f *testing.F) {
	files, err := testdata.FS.ReadDir("corpus")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), ".yaml") {
			src, err := testdata.FS.ReadFile("corpus/" + file.Name())
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src, false)
		}
	}
	for _, v := range readVectors(f, "manifest-vectors.json")[200:] {
		if v.TunePlane != nil {
			f.Add(v.TunePlane.Input.source(), true)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, tune bool) {
		opt := ManifestOptions{}
		if tune {
			opt.Dialect = dialect.TunePlane
		}
		m, report := ParseManifest(src, opt)
		for _, v := range report.Violations {
			if _, ok := rule.Lookup(v.Rule); !ok {
				t.Errorf("the rule %s is not in the table", v.Rule)
			}
		}
		if !report.OK() {
			return
		}
		if m == nil || !m.Kind.In(m.Dialect) || m.Name == "" || m.Version == "" {
			t.Fatalf("accepted %+v", m)
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var again Manifest
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(*m, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("read back (-was +is):\n%s", diff)
		}
	})
}

func BenchmarkManifest(b *testing.B) {
	b.SetBytes(int64(len(algorithmManifest)))
	for b.Loop() {
		if _, report := ParseManifest([]byte(algorithmManifest), ManifestOptions{}); !report.OK() {
			b.Fatal(report.Violations)
		}
	}
}
