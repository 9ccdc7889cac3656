package jobbuild

import (
	"math"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// identity names the job and its recipe.
func (b *builder) identity(spec *jobspec.Spec) {
	last, err := name.ExpBasename(b.in.Exp)
	if err != nil {
		b.bad("job.source.exp.segment", "spec.source.exp", "%s", err)
	}
	spec.Metadata = jobspec.Metadata{Name: last, Project: b.in.Project}
	r := b.in.Recipe
	spec.Recipe = jobspec.Recipe{Name: r.Name, Version: r.Version, Digest: r.Digest, Plugins: r.Plugins}
	spec.Source.Exp = b.in.Exp
}

// runtime chooses the framework version and its image.
func (b *builder) runtime(spec *jobspec.Spec) {
	r, version := b.in.Recipe, pyvalue.Strip(b.in.FrameworkVersion)
	if version == "" {
		version = r.DefaultVersion
	}
	variant, ok := r.Variant(version)
	if !ok {
		b.bad("job.handshake.framework.version", "spec.framework.version", "found %.60q, expected one of %s, which %s supports", version, orNone(r.Supported()), r.Name)
	}
	url, image := pyvalue.Strip(b.opt.ObservabilityURL), pyvalue.Strip(b.opt.Image)
	switch {
	case r.Observability == catalogue.External && url == "":
		b.hinted("job.framework.observability_url.required", "--observability-url", "Add --observability-url with the address of the page that shows the run.",
			"none is given, expected an address, since %s is watched outside the platform", r.Name)
	case r.Observability == catalogue.Platform && url != "":
		b.hinted("job.framework.observability_url.forbidden", "--observability-url", "Leave out --observability-url.",
			"found %.100q, expected none, since the platform watches %s", url, r.Name)
	}
	if r.Framework == customFramework && image == "" {
		b.bad("job.framework.image.required", "--image", "none is given, expected the image of the job, which a %s recipe does not bring", customFramework)
	}
	spec.Framework = jobspec.Framework{Kind: r.Framework, Version: version, RuntimeID: variant.RuntimeID, Image: image, ObservabilityURL: url}
}

// customFramework is the framework whose runtime the user brings.
const customFramework = "custom"

// inputs takes the model and the data, and asks for those that the framework can't do without.
func (b *builder) inputs(spec *jobspec.Spec) {
	o := b.opt
	for _, input := range []struct{ name, option, value string }{
		{"model", "--model", o.Model}, {"train_data", "--train-data", o.TrainData}, {"validation_data", "--validation-data", o.ValidationData},
	} {
		if slices.Contains(b.in.Recipe.RequiredInputs, input.name) && pyvalue.Strip(input.value) == "" {
			b.bad("submit.input", input.option, "none is given, expected one, since %s recipes can't do without", b.in.Recipe.Framework)
		}
	}
	train, validation := b.dataset("train", "--train-dataset", o.TrainDataset), b.dataset("validation", "--validation-dataset", o.ValidationDataset)
	spec.Model.Base = pyvalue.Strip(o.Model)
	spec.Data.Train = dataRef(train, o.TrainData)
	spec.Data.Validation = dataRef(validation, o.ValidationData)
	spec.Data.OutputDataset = b.reference("--output-dataset", o.OutputDataset, true)
	spec.Data.Environment = b.reference("--environment", o.Environment, false)
	if b.in.Dialect == dialect.Forge && o.Taskset != "" {
		b.hinted("submit.reference", "--taskset", "Leave out --taskset.", "found %.100q, expected none: jobs of forge have no task set", o.Taskset)
	}
}

func dataRef(dataset, path string) *jobspec.DataRef {
	ref := jobspec.DataRef{Dataset: dataset, Path: pyvalue.Strip(path)}
	if ref == (jobspec.DataRef{}) {
		return nil
	}
	return &ref
}

// dataset is the option's data set, else the one that config.yaml names for the section. The clients ask for two parts and
// leave the rest to the server.
func (b *builder) dataset(section, option, given string) string {
	where := option
	if given == "" {
		node := b.data().Get(section)
		if v := node.Get("dataset"); v != nil && v.Kind == pyvalue.Str {
			given, where = v.Text, "data."+section+".dataset"
		}
	}
	ref := pyvalue.Strip(given)
	id, _, _ := strings.Cut(ref, "@")
	parts := strings.FieldsFunc(id, func(r rune) bool { return r == '/' })
	if ref != "" && len(parts) != 2 {
		b.hinted("submit.reference", where, "Write the owner and the name, such as alice/gsm8k@v1.", "found %.100q, expected <owner>/<name>[@<version>]", ref)
	}
	return ref
}

// data is the section data of config.yaml, nil when there is none.
func (b *builder) data() *pyvalue.Value {
	data := b.in.Config.Get("data")
	if data.Truthy() && data.Kind != pyvalue.Map {
		return nil // volumes says so
	}
	return data
}

// reference is <owner>/<name>[@<version>] of an option, as it was written; pinned asks for the version.
func (b *builder) reference(option, given string, pinned bool) string {
	text := pyvalue.Strip(given)
	if text == "" {
		return ""
	}
	ref, err := name.VersionedRef(text, option)
	switch {
	case err != nil:
		b.hinted("submit.reference", option, "Write the owner, the name and the version, such as alice/gym@v3.", "%s", message(err))
	case pinned && ref.Version == "":
		b.hinted("submit.reference", option, "Name the version that the job writes: a version never changes once it is there.", "found %.100q, expected <owner>/<name>@<version>", text)
	}
	return text
}

// message is what a name's error says, without its field.
func message(err error) string {
	if e, ok := err.(*name.Error); ok {
		return e.Message
	}
	return err.Error()
}

// hyperparams reads --set and holds it to the recipe.
func (b *builder) hyperparams(spec *jobspec.Spec) {
	before := len(b.report.Violations)
	given := b.sets()
	if len(b.report.Violations) > before {
		return
	}
	if spec.Hyperparams = given; !b.validate() || b.in.Recipe.Params == nil {
		return
	}
	recipe := pack.Recipe{Framework: b.in.Recipe.Framework, Name: b.in.Recipe.Method(), Params: *b.in.Recipe.Params}
	// The clients do not compare the framework version here; gate 2 does.
	filled, report := recipe.CheckHyperparams(given, "")
	for _, v := range report.Violations {
		v.Line, v.Column = 0, 0
		b.report.Add(v)
	}
	b.meant(given)
	spec.Hyperparams = &pyvalue.Value{Kind: pyvalue.Map}
	for key, v := range filled.All() {
		spec.Hyperparams.Items = append(spec.Hyperparams.Items, pyvalue.Item{Key: pyvalue.NewStr(key), Value: v.Value})
	}
}

// sets reads the --set options: the last of a repeated key counts, at the place of the first.
func (b *builder) sets() *pyvalue.Value {
	out := &pyvalue.Value{Kind: pyvalue.Map}
	for _, text := range b.opt.Sets {
		key, value, ok := strings.Cut(text, "=")
		key, value = pyvalue.Strip(key), pyvalue.Strip(value)
		if !ok || key == "" {
			b.bad("submit.set", "--set", "found %.100q, expected <parameter>=<value>", text)
			continue
		}
		v := literal(value)
		if v.Kind == pyvalue.Float && (math.IsNaN(v.Float) || math.IsInf(v.Float, 0)) {
			b.bad("submit.set.finite", "spec.hyperparams."+key, "found %s, expected a finite number", pyvalue.FloatText(v.Float))
			continue
		}
		if old := out.Get(key); old != nil {
			*old = *v
			continue
		}
		out.Items = append(out.Items, pyvalue.Item{Key: pyvalue.NewStr(key), Value: v})
	}
	return out
}

// meant says for names that the recipe does not have which parameter was meant: one that is spelled alike, or the one whose
// place in config.yaml was written.
func (b *builder) meant(given *pyvalue.Value) {
	params := b.in.Recipe.Params
	for i, v := range b.report.Violations {
		if v.Rule != "job.hyperparams.recipe" || v.Field != "spec.hyperparams" {
			continue
		}
		var hints []string
		for _, it := range given.Items {
			if key := it.Key.Text; !params.Has(key) {
				if parameter := b.parameterFor(key); parameter != "" {
					hints = append(hints, "Write --set "+parameter+"=… for "+printable(key)+".")
				}
			}
		}
		if len(hints) > 0 {
			b.report.Violations[i].Hint = strings.Join(hints, " ")
		}
	}
}

func (b *builder) parameterFor(key string) string {
	if near := (&pack.Recipe{Params: *b.in.Recipe.Params}).NearParams(key); len(near) > 0 {
		return near[0]
	}
	return ""
}

// printable shortens a text for a hint.
func printable(s string) string {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return strings.ToValidUTF8(s, "?")
}

// actions takes --then.
func (b *builder) actions(spec *jobspec.Spec) {
	supported := b.in.Recipe.Lifecycle
	for _, text := range b.opt.Then {
		action := pyvalue.Strip(text)
		if action == "" {
			continue
		}
		if b.validate() && supported != nil && !slices.Contains(supported, action) {
			b.bad("job.lifecycle.on_success.recipe", "--then", "found %.60q, expected one of %s, which %s supports", action, orNone(supported), b.in.Recipe.Name)
		}
		spec.OnSuccess = append(spec.OnSuccess, action)
	}
}
