package catalogue

import (
	"fmt"
	"sync"

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
	names := sync.OnceValue(func() map[string]string { return e.byPath(frameworkVersion) }) // seldom asked for
	given := sync.OnceValue(h.Keys)
	for _, it := range h.Items {
		key := it.Key.Text
		if !e.Params.Has(key) {
			if name := names()[key]; name != "" && !given()[name] {
				found = append(found, rule.Violation{
					Rule: "job.hyperparams.path_key", Field: "spec.hyperparams", Line: it.Key.Line, Column: it.Key.Column,
					Message: fmt.Sprintf("%.100q is the path of the parameter %s and was stored under that name", key, name),
				})
				it.Key = pyvalue.NewStr(name)
			}
		}
		out.Items = append(out.Items, it)
	}
	return out, found
}

// byPath are the parameters by the paths at which they lie, "" where several do.
func (e Entry) byPath(frameworkVersion string) map[string]string {
	names := make(map[string]string, e.Params.Len())
	for name, p := range e.Params.All() {
		path := pathOf(p, frameworkVersion)
		if _, taken := names[path]; taken || path == "" {
			name = ""
		}
		names[path] = name
	}
	return names
}

func pathOf(p pack.Param, frameworkVersion string) string {
	for _, override := range p.PathOverrides {
		if override[0] == frameworkVersion {
			return override[1]
		}
	}
	return p.Path
}
