package pack

import (
	"math/big"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// entrypointKinds in the order in which the clients name them.
var entrypointKinds = []string{"module", "file", "experiment"}

// entrypoint reads an entrypoint map; not ok means that there is none to speak of.
func (r *recipeReader) entrypoint(id rule.ID, field string, v *pyvalue.Value) (Entrypoint, bool) {
	if _, ok := r.object(id, field, v, v); !ok {
		return Entrypoint{}, false
	}
	e := Entrypoint{Kind: v.Get("kind").TextOf(), Value: v.Get("value").TextOf(), ExperimentOverride: v.Get("experiment_override").TextOf()}
	if !oneOf(e.Kind, entrypointKinds) {
		r.fault(id, field+".kind", or(v.Get("kind"), v), "unknown kind %.100q, expected one of %s", e.Kind, quoteList(entrypointKinds))
	}
	switch at := or(v.Get("value"), v); {
	case e.Value == "":
		r.fault(id, field+".value", at, "found %s, expected what to start", found(v.Get("value")))
	case e.Kind != "module" && !isInside(e.Value):
		r.fault(id, field+".value", at, "found %.200q, expected a relative path without \"..\"", e.Value)
	}
	switch at := v.Get("experiment_override"); {
	case e.ExperimentOverride == "":
	case e.Kind == "experiment":
		r.fault(id, field+".experiment_override", at, "an entrypoint of kind experiment takes no experiment_override (found %.100q)", e.ExperimentOverride)
	case !isInside(e.ExperimentOverride):
		r.fault(id, field+".experiment_override", at, "found %.200q, expected a relative path without \"..\"", e.ExperimentOverride)
	}
	return e, true
}

// lifecycle reads the actions of a recipe and the GPUs each takes. The two name the same actions, where the actions
// are compared stripped and the resources as they are.
func (r *recipeReader) lifecycle() {
	if v := r.root.Get("lifecycle"); v != nil {
		if actions, ok := r.object("recipe.lifecycle", "lifecycle", v, r.root); ok {
			for _, it := range actions.Items {
				written := it.Key.PyStr()
				action, named := r.segment("recipe.lifecycle", "lifecycle", written, it.Key)
				e, ok := r.entrypoint("recipe.lifecycle", pathOf("lifecycle", written), or(it.Value, it.Key))
				if named && ok {
					r.out.Lifecycle.set(action, e)
				}
			}
		}
	}
	v := r.root.Get("lifecycle_resources")
	if v == nil {
		return
	}
	resources, ok := r.object("recipe.lifecycle_resources", "lifecycle_resources", v, r.root)
	if !ok {
		return
	}
	r.sameActions(resources)
	for _, it := range resources.Items {
		action := it.Key.PyStr()
		if it.Value.Kind != pyvalue.Int || it.Value.Int.Sign() < 0 {
			r.fault("recipe.lifecycle_resources", pathOf("lifecycle_resources", action), it.Value, "found %s, expected a number of GPUs: an integer of 0 or more", found(it.Value))
			continue
		}
		r.out.LifecycleResources.set(action, new(big.Int).Set(it.Value.Int))
	}
}

func (r *recipeReader) sameActions(resources *pyvalue.Value) {
	both := make(map[string]bool)
	var extra, lacking []string
	for _, it := range resources.Items {
		key := it.Key.PyStr()
		if it.Key.Kind == pyvalue.Str && r.out.Lifecycle.Has(key) {
			both[key] = true
		} else {
			extra = append(extra, key)
		}
	}
	for action := range r.out.Lifecycle.All() {
		if !both[action] {
			lacking = append(lacking, action)
		}
	}
	if len(extra)+len(lacking) > 0 {
		r.fault("recipe.lifecycle_resources", "lifecycle_resources", resources, "expected exactly the actions of lifecycle: too many [%s], missing [%s]", quoteList(extra), quoteList(lacking))
	}
}

// requiredFormats must be among artifacts.formats.
var requiredFormats = []string{"checkpoint", "eval_report", "hf_export", "log"}

func (r *recipeReader) artifacts() {
	v := r.root.Get("artifacts")
	if v == nil {
		return
	}
	block, ok := r.object("recipe.artifacts", "artifacts", v, r.root)
	if !ok {
		return
	}
	out := &r.out.Artifacts
	out.Version = block.Get("version").TextOf()
	if want := r.dialect.Names().Artifacts; out.Version != want {
		r.fault("recipe.artifacts", "artifacts.version", or(block.Get("version"), block), "found %.100q, expected %s", out.Version, want)
	}
	r.formats(block)
	out.Checkpoints = r.globs(block, "checkpoints")
	out.Logs = r.globs(block, "logs")
	out.Exports = r.globs(block, "exports")
	out.Evaluations = r.globs(block, "evaluations")
}

func (r *recipeReader) formats(block *pyvalue.Value) {
	formats, ok := r.object("recipe.artifacts", "artifacts.formats", block.Get("formats"), block)
	if !ok {
		return
	}
	out := &r.out.Artifacts.Formats
	for _, it := range formats.Items {
		kind, ok := r.segment("recipe.artifacts", pathOf("artifacts.formats", it.Key.PyStr()), it.Key.PyStr(), it.Key)
		if !ok {
			continue
		}
		out.set(kind, pyvalue.Strip(it.Value.PyStr()))
	}
	for kind, format := range out.All() {
		if format == "" {
			r.fault("recipe.artifacts", "artifacts.formats", formats, "the format of %.100q is empty", kind)
		}
	}
	var missing []string
	for _, kind := range requiredFormats {
		if !out.Has(kind) {
			missing = append(missing, kind)
		}
	}
	if len(missing) > 0 {
		r.fault("recipe.artifacts", "artifacts.formats", formats, "the formats of %s are missing", quoteList(missing))
	}
}

// globs reads a required list of relative globs, which may be empty.
func (r *recipeReader) globs(block *pyvalue.Value, key string) []string {
	field := "artifacts." + key
	v := block.Get(key)
	if !isSequence(v) {
		r.fault("recipe.artifacts", field, or(v, block), "found %s, expected a list of globs (it may be empty)", found(v))
		return []string{}
	}
	globs := texts(v.List)
	for _, g := range globs {
		if !isInside(g) {
			r.fault("recipe.artifacts", field, v, "found the glob %.200q, expected one relative to the output folder, without \"..\"", g)
		}
	}
	return globs
}
