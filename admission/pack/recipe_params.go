package pack

import (
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// paramsObject is the params block, nil when there is none. The client names no field when it is no object.
func (r *recipeReader) paramsObject() *pyvalue.Value {
	v := r.root.Get("params")
	if !v.Truthy() {
		return nil
	}
	if v.Kind != pyvalue.Map {
		r.fault("recipe.params", "", v, "params is %s, expected an object of parameters", found(v))
		return nil
	}
	return v
}

// paramTypes are the types of parameters; enum takes any value among its choices.
var paramTypes = []string{"int", "float", "bool", "str", "enum"}

// params reads every parameter, then tuneplane's check of the versions they name.
func (r *recipeReader) params(block *pyvalue.Value, translated map[string]Table[Texts]) {
	if block == nil {
		return
	}
	for _, it := range block.Items {
		if it.Key.Kind != pyvalue.Str {
			r.fault("recipe.param.name", "", it.Key, "the name of a parameter is %s, which no job can set: expected a text", found(it.Key))
		}
		r.param(it, translated)
	}
	if r.dialect == dialect.TunePlane {
		for _, it := range block.Items {
			r.paramVersions(it)
		}
	}
}

func (r *recipeReader) param(it pyvalue.Item, translated map[string]Table[Texts]) {
	name := it.Key.PyStr()
	field := pathOf("params", name)
	v := it.Value
	if v.Truthy() && v.Kind != pyvalue.Map {
		r.fault("recipe.param", "", v, "%s is %s, expected an object", field, found(v))
		return
	}
	p := Param{
		Name: name, Type: "str", Path: unstripped(v, "path"), Doc: unstripped(v, "doc"), Group: unstripped(v, "group"),
		Required: v.Get("required").Truthy(), ExclusiveMinimum: v.Get("exclusive_min").Truthy(),
		Default: Raw{v.Get("default")}, Minimum: Raw{v.Get("min")}, Maximum: Raw{v.Get("max")}, Choices: []Raw{},
	}
	if t := unstripped(v, "type"); t != "" {
		p.Type = t
	}
	if !oneOf(p.Type, paramTypes) {
		r.fault("recipe.param", field+".type", v.Get("type"), "unknown type %.100q, expected one of %s", p.Type, quoteList(paramTypes))
	}
	if items, ok := r.sequence("recipe.param", field+".choices", v.Get("choices")); ok {
		for _, c := range items {
			p.Choices = append(p.Choices, Raw{c})
		}
	}
	p.PathOverrides = r.pathOverrides(field+".path_overrides", v.Get("path_overrides"))
	if r.dialect == dialect.TunePlane {
		items, _ := r.sequence("recipe.param", field+".versions", v.Get("versions"))
		p.Versions = texts(items)
	}
	if it.Key.Kind == pyvalue.Str {
		p.I18n = translated[name]
	}
	r.ownValues(field, &p)
	r.out.Params.set(name, p)
}

// unstripped is str(v or ""), as the client reads the texts of a parameter.
func unstripped(v *pyvalue.Value, key string) string {
	if v = v.Get(key); v.Truthy() {
		return v.PyStr()
	}
	return ""
}

func (r *recipeReader) pathOverrides(field string, v *pyvalue.Value) [][2]string {
	all := [][2]string{}
	if !v.Truthy() {
		return all
	}
	overrides, ok := r.object("recipe.param", field, v, v)
	if !ok {
		return all
	}
	for _, it := range overrides.Items {
		version, path := pyvalue.Strip(it.Key.PyStr()), pyvalue.Strip(it.Value.PyStr())
		if version == "" || path == "" {
			r.fault("recipe.param", field, it.Key, "found the version %.100q with the path %.100q, neither may be empty", version, path)
		}
		all = append(all, [2]string{version, path})
	}
	return all
}

// paramVersions checks that the versions which offer a parameter are those of the recipe.
func (r *recipeReader) paramVersions(it pyvalue.Item) {
	p, _ := r.out.Params.Get(it.Key.PyStr())
	var unknown []string
	for _, version := range p.Versions {
		if !r.out.Runtime.Versions.Has(version) {
			unknown = append(unknown, version)
		}
	}
	if len(unknown) > 0 {
		r.fault("recipe.param", pathOf("params", p.Name)+".versions", it.Value.Get("versions"), "found %s, which runtime.versions does not offer: %s", quoteList(unknown), quoteList(r.out.Runtime.Versions.names))
	}
}

// ownValues warns of a default that the parameter itself would refuse, and of bounds that can't be compared with a
// number: the client fills in the one unchecked and crashes on the other. The usual cause is 1e-5, which YAML 1.1
// reads as a text.
func (r *recipeReader) ownValues(field string, p *Param) {
	for _, bound := range []struct {
		key string
		v   Raw
	}{{"min", p.Minimum}, {"max", p.Maximum}} {
		if v := bound.v.Value; (p.Type == "int" || p.Type == "float") && !isNone(v) && !isNumber(v) {
			r.fault("recipe.param.bound", pathOf(field, bound.key), v, "found %s, expected a number", found(v))
		}
	}
	if !isNone(p.Default.Value) {
		if fault := p.check(p.Default.Value); fault != "" {
			r.fault("recipe.param.default", pathOf(field, "default"), p.Default.Value, "the parameter would refuse its own default: %s", fault)
		}
	}
}

// ReadParams reads a block of parameters alone, in the form that a recipe.yaml has it, of a recipe with the given
// framework versions. Rules of ours that only advise the author of a recipe are not applied.
func ReadParams(block *pyvalue.Value, d dialect.Dialect, versions []string) (Table[Param], rule.Report) {
	r := newRecipeReader(RecipeOptions{}, nil)
	r.dialect, r.report.Dialect = d, d
	for _, version := range versions {
		r.out.Runtime.Versions.set(version, Variant{})
	}
	if !block.Truthy() {
		return r.out.Params, r.finish()
	}
	if block.Kind != pyvalue.Map {
		r.fault("recipe.params", "", block, "params is %s, expected an object of parameters", found(block))
		return r.out.Params, r.finish()
	}
	r.params(block, nil)
	return r.out.Params, r.finish()
}

// ParamFacts are the recipe's parameters without their texts for people.
func (r *Recipe) ParamFacts() Table[Param] {
	var facts Table[Param]
	for name, p := range r.Params.All() {
		p.Doc, p.Group, p.I18n = "", "", Table[Texts]{}
		facts.set(name, p)
	}
	return facts
}
