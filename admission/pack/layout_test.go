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

// The vectors are answers of the layout check alone. Gate 1 also reads the document that a pack is about, so packs
// without one stand in the table of differences.
func TestLayoutVectors(t *testing.T) {
	run := newVectorRun(t, "layout")
	for _, v := range readVectors(t, "layout-vectors.json") {
		for d, side := range v.sides(t) {
			dir := openTree(t, buildTree(t, side.Input.Tree))
			run.one(t, v.ID, d, func(policy rule.Policy) (rule.Report, string) {
				p, report, err := Check(dir, Options{Policy: policy})
				if err != nil {
					t.Fatal(err)
				}
				return report, layoutDiff(t, p, report, side.Expect)
			})
		}
	}
	run.finish(t)
}

func layoutDiff(t *testing.T, p *Pack, report rule.Report, want vectorExpect) string {
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
		if string(p.Manifest.Kind) != ok.Kind {
			return fmt.Sprintf("kind %s, want %s", p.Manifest.Kind, ok.Kind)
		}
		digest = ok.Digest
	}
	if got := p.Content().String(); digest != "" && got != digest {
		return fmt.Sprintf("content digest %s, want %s", got, digest)
	}
	return ""
}
