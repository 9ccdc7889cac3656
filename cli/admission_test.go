package cli

import (
	"path/filepath"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission"
)

// Every document of the platforms' own pages gets the verdict that stands beside it.
func TestAdmissionSeedExamples(t *testing.T) {
	all, err := runTrials(t.Context(), filepath.Join("..", "admission", "jobspec", "testdata", "seed-examples"), offline(admission.CheckOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Results {
		if !r.OK && !r.Skipped {
			t.Errorf("%s: %s", r.File, r.difference())
		}
	}
	if all.Passed != 8 || all.Failed != 0 || all.Skipped != 2 {
		t.Errorf("%d as expected, %d differ, %d skipped; want 8, 0 and 2", all.Passed, all.Failed, all.Skipped)
	}
}
