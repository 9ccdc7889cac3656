package admission

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// TestEncodeDecision compares the quick way of writing a decision with the usual one.
func TestEncodeDecision(t *testing.T) {
	d := digest.FromBytes([]byte("x"))
	value := SubmissionValue{
		Spec: json.RawMessage(`{"a":"b \" \\ \u0001","c":[1,2.5,null]}`), SpecDigest: d, SpecBytes: d, TotalGPUs: 8, Recipes: []receipt.Pin{},
		Plugins:   []receipt.Pin{{ID: "a/b", Version: "1", Kind: "algorithm", Content: d, Tree: d, Manifest: d}, {ID: "é<\"", Version: "\u2028", Content: d, RuntimeSupplied: true}},
		Unchecked: []Unchecked{{Kind: "hub", Path: "spec.model", Text: "a&b"}}, Catalogue: &CatalogueUsed{Dialect: dialect.Forge, Release: "0.3.56", Digest: d},
	}
	odd := value
	odd.Spec, odd.Plugins, odd.Catalogue, odd.SpecDigest = json.RawMessage(`{"a":"<é>&"}`), nil, nil, digest.Digest{}
	blank := value
	blank.Spec = json.RawMessage("{\n \"a\": 1}")
	decision := Decision{Gate: Submission, Allowed: true, Rules: "v", Subject: Subject{Name: "n", Dialect: dialect.Forge}, Violations: []Violation{}, Warnings: []rule.Violation{{Rule: "r", Message: "<m>"}}}
	for what, v := range map[string]any{"plain": value, "odd": odd, "blanks": blank, "no spec": SubmissionValue{}, "another": JobSpecValue{Spec: value.Spec}, "nothing": nil} {
		decision.Value = v
		got, err := EncodeDecision(decision)
		want, wantErr := json.Marshal(decision)
		if !bytes.Equal(got, want) || (err != nil) != (wantErr != nil) {
			t.Errorf("%s: got\n%s, %v\nwant\n%s, %v", what, got, err, want, wantErr)
		}
	}
}
