package pack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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
