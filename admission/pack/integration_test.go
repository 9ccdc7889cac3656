package pack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

func TestIntegrationVectors(t *testing.T) {
	run := newVectorRun(t, "integration")
	for _, v := range readVectors(t, "integration-vectors.json") {
		for d, side := range v.sides(t) {
			src := append([]byte(side.Input.JSON), bytes.Repeat([]byte(" "), side.Input.PadSpaces)...)
			run.one(t, v.ID, d, func(policy rule.Policy) (rule.Report, string) {
				got, report := ParseIntegration(src, policy)
				return report, integrationDiff(t, got, report, side.Expect)
			})
		}
	}
	run.finish(t)
}

func integrationDiff(t *testing.T, got *Integration, report rule.Report, want vectorExpect) string {
	t.Helper()
	if diff := verdictDiff(report, want); diff != "" || want.Error != nil {
		return diff
	}
	var ok struct {
		Canonical     string   `json:"canonical"`
		Facts         any      `json:"facts"`
		NativeConfigs []string `json:"native_configs"`
	}
	if err := json.Unmarshal(want.OK, &ok); err != nil {
		t.Fatal(err)
	}
	if string(got.Canonical) != ok.Canonical {
		return fmt.Sprintf("canonical form\n%s\nwant\n%s", got.Canonical, ok.Canonical)
	}
	text, err := json.Marshal(got.Facts)
	if err != nil {
		t.Fatal(err)
	}
	var facts any
	if err := json.Unmarshal(text, &facts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ok.Facts, facts); diff != "" {
		return "facts (-want +got):\n" + diff
	}
	if diff := cmp.Diff(ok.NativeConfigs, append([]string{}, got.NativeConfigs...)); diff != "" {
		return "native configs (-want +got):\n" + diff
	}
	return ""
}
