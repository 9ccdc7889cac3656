package pack

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

func openTree(t testing.TB, dir string) *tree.Dir {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	d, err := tree.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// clientCheck is what the clients do with a pack: the manifest, and when that is right the layout.
func clientCheck(t testing.TB, d tree.Tree, policy rule.Policy) (*Manifest, rule.Report) {
	t.Helper()
	report := rule.Report{Policy: policy}
	src, err := manifestSource(d, policy, &report)
	if err != nil {
		t.Fatal(err)
	}
	if src == nil {
		return nil, report
	}
	m, found := ParseManifest(src, ManifestOptions{Policy: policy})
	report.Merge(found)
	if m == nil || !report.OK() {
		return m, report
	}
	_, found, err = checkLayout(d, m, policy)
	if err != nil {
		t.Fatal(err)
	}
	report.Merge(found)
	report.ClientsFirst()
	return m, report
}

func TestLayoutVectors(t *testing.T) {
	run := newVectorRun(t, "layout")
	for _, v := range readVectors(t, "layout-vectors.json") {
		for d, side := range v.sides(t) {
			dir := openTree(t, buildTree(t, side.Input.Tree))
			run.one(t, v.ID, d, func(policy rule.Policy) (rule.Report, string) {
				m, report := clientCheck(t, dir, policy)
				return report, layoutDiff(t, m, dir, report, side.Expect)
			})
		}
	}
	run.finish(t)
}

func layoutDiff(t *testing.T, m *Manifest, dir tree.Tree, report rule.Report, want vectorExpect) string {
	t.Helper()
	if diff := verdictDiff(report, want); diff != "" {
		return diff
	}
	digest := want.Digest
	if want.Error == nil {
		var ok struct{ Kind, Digest string }
		if err := json.Unmarshal(want.OK, &ok); err != nil {
			t.Fatal(err)
		}
		if string(m.Kind) != ok.Kind {
			return fmt.Sprintf("kind %s, want %s", m.Kind, ok.Kind)
		}
		digest = ok.Digest
	}
	if got := dir.Listing().Content.String(); digest != "" && got != digest {
		return fmt.Sprintf("content digest %s, want %s", got, digest)
	}
	return ""
}
