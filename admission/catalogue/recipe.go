package catalogue

import (
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Hyperparams checks a job's hyperparameters against the recipe (jobspec.md 8) and returns them as they should be
// stored: a key that is no parameter's name but the path of exactly one, for the job's framework version, is rewritten
// to the name, with a warning (10). Defaults are not filled in. Without Params h comes back as it is, unchecked.
func (e Entry) Hyperparams(h *pyvalue.Value, frameworkVersion string) (*pyvalue.Value, []rule.Violation) {
	if e.Params == nil {
		return h, nil
	}
	stored, found := e.renamed(h, frameworkVersion)
	recipe := pack.Recipe{Framework: e.Framework, Name: e.Method(), Params: *e.Params}
	_, report := recipe.CheckHyperparams(stored, frameworkVersion)
	for _, v := range report.Violations {
		v.Rule, v.Hint = "job.hyperparams.recipe", ""
		found = append(found, v)
	}
	return stored, found
}

// renamed is h with paths in place of names put right.
func (e Entry) renamed(h *pyvalue.Value, frameworkVersion string) (*pyvalue.Value, []rule.Violation) {
	if h == nil {
		return nil, nil
	}
	out := &pyvalue.Value{Kind: pyvalue.Map, Line: h.Line, Column: h.Column}
	var found []rule.Violation
	for _, it := range h.Items {
		key := it.Key.Text
		if name, ok := e.named(key, frameworkVersion); ok && !e.Params.Has(key) && !h.Has(name) {
			found = append(found, rule.Violation{
				Rule: "job.hyperparams.path_key", Field: "spec.hyperparams", Line: it.Key.Line, Column: it.Key.Column,
				Message: fmt.Sprintf("%.100q is the path of the parameter %s and was stored under that name", key, name),
			})
			it.Key = pyvalue.NewStr(name)
		}
		out.Items = append(out.Items, it)
	}
	return out, found
}

// named is the parameter that lies at a path, when exactly one does.
func (e Entry) named(path, frameworkVersion string) (string, bool) {
	found, n := "", 0
	for name, p := range e.Params.All() {
		if path != "" && pathOf(p, frameworkVersion) == path {
			found = name
			n++
		}
	}
	return found, n == 1
}

func pathOf(p pack.Param, frameworkVersion string) string {
	for _, override := range p.PathOverrides {
		if override[0] == frameworkVersion {
			return override[1]
		}
	}
	return p.Path
}
