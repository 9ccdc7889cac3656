package suite

import (
	"math"
	"math/big"

	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// The solution.yaml of a project (packs.md 11). Only tuneplane reads it; it is never published.
const (
	SolutionFile   = "solution.yaml"
	SolutionSchema = "tuneplane/solution/v1"
)

// Solution is a solution.yaml as the client reads it.
type Solution struct {
	Schema      string     `json:"schema"`
	Name        string     `json:"name"`
	Title       string     `json:"title"`
	Acceptance  Acceptance `json:"acceptance"`
	Summary     string     `json:"summary,omitempty"`
	Recipe      string     `json:"recipe,omitempty"`
	Environment string     `json:"environment,omitempty"`
	Rubric      string     `json:"rubric,omitempty"`
	Toolchain   string     `json:"toolchain,omitempty"`
	DataFormat  string     `json:"data_format,omitempty"`
	Benchmarks  []string   `json:"benchmarks,omitempty"`
	Keywords    []string   `json:"keywords,omitempty"`
	Template    string     `json:"template,omitempty"` // "" is the folder template
}

// Acceptance is what has to hold before a run counts as better.
type Acceptance struct {
	Baseline    string         `json:"baseline"`
	HumanReview bool           `json:"human_review"`
	Metrics     []MetricTarget `json:"metrics,omitempty"`
	SampleMin   *big.Int       `json:"sample_min,omitempty"` // nil for 0
	SplitBy     string         `json:"split_by,omitempty"`
}

// MetricTarget is a number that has to move.
type MetricTarget struct {
	Key       string    `json:"key"`
	MinDelta  *pack.Raw `json:"min_delta,omitempty"` // a float; nil for 0
	Direction string    `json:"direction,omitempty"` // "" is higher
}

// References are the names that a deployment has to resolve, by kind.
func (s *Solution) References() map[string][]string {
	refs := map[string][]string{}
	for kind, name := range map[string]string{"recipe": s.Recipe, "environment": s.Environment, "rubric": s.Rubric, "toolchain": s.Toolchain} {
		if name != "" {
			refs[kind] = []string{name}
		}
	}
	if len(s.Benchmarks) > 0 {
		refs["benchmark"] = s.Benchmarks
	}
	return refs
}

// SolutionOptions say how a solution.yaml is read.
type SolutionOptions struct {
	Policy rule.Policy
	Name   string // of its folder, which the solution must have too; "" compares nothing
}

// target makes the float of a metric; nil for 0.
func target(f float64) *pack.Raw {
	if f == 0 && !math.IsNaN(f) {
		return nil
	}
	return &pack.Raw{Value: &pyvalue.Value{Kind: pyvalue.Float, Float: f}}
}
