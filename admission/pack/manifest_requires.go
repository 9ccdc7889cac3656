package pack

import (
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pep440"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// requiresKeys are the fields of `requires` that a dialect reads.
func requiresKeys(d dialect.Dialect) []string {
	if d == dialect.TunePlane {
		return []string{"core", "python", "frameworks", "methods", "backends"}
	}
	return []string{"core"}
}

// requires reads what the pack runs with; tuneplane's `scope` stands in the middle of its checks.
func (r *manifestReader) requires() {
	v := r.root.Get("requires")
	object := v
	if v.Truthy() && v.Kind != pyvalue.Map {
		r.add("manifest.requires", "requires", v, "requires is a %s; expected an object", v.TypeName())
		object = nil
	}
	if !v.Truthy() {
		object = nil
	}
	r.requiresUnknown(object)
	if r.m.Dialect == dialect.TunePlane {
		r.scope()
		r.compatibility(object)
	}
	r.m.Requires.Core = r.textOf("requires.core", object.Get("core"))
	if _, err := pep440.ParseSpecifierSet(r.m.Requires.Core); err != nil {
		r.add("manifest.requires.core", "requires.core", object.Get("core"), "requires.core %.100q is no set of PEP 440 specifiers, such as \">=0.3,<1\"", r.m.Requires.Core)
	}
}

func (r *manifestReader) requiresUnknown(object *pyvalue.Value) {
	if object == nil {
		return
	}
	known := requiresKeys(r.m.Dialect)
	unknown := slices.DeleteFunc(slices.Clone(object.Items), func(it pyvalue.Item) bool {
		return it.Key.Kind == pyvalue.Str && slices.Contains(known, it.Key.Text)
	})
	if r.m.Dialect == dialect.TunePlane {
		r.refuseKeys(unknown, "requires", known)
		return
	}
	r.warnKeys(unknown, "requires.", known)
}

// scope reads tuneplane's `scope`, which knows one value and is not stripped.
func (r *manifestReader) scope() {
	v := r.root.Get("scope")
	if v.Truthy() && (v.Kind != pyvalue.Str || v.Text != "entrypoint") {
		r.add("manifest.scope", "scope", v, "unsupported scope %.100q; expected \"entrypoint\"", v.PyStr())
	}
}

// compatibility reads what tuneplane alone requires. Its errors name no field, as the client's don't.
func (r *manifestReader) compatibility(object *pyvalue.Value) {
	r.frameworks(object.Get("frameworks"))
	r.m.Requires.Methods = r.texts("methods", object.Get("methods"))
	r.m.Requires.Backends = r.texts("backends", object.Get("backends"))
	r.m.Requires.Python = r.textOf("requires.python", object.Get("python"))
	if _, err := pep440.ParseSpecifierSet(r.m.Requires.Python); err != nil {
		r.add("manifest.requires.python", "", object.Get("python"), "requires.python %.100q is no set of PEP 440 specifiers, such as \">=3.12\"", r.m.Requires.Python)
	}
	for _, c := range r.m.Requires.Frameworks {
		if _, err := pep440.ParseSpecifierSet(c.Specifier); err != nil {
			r.add("manifest.requires.frameworks", "", object.Get("frameworks"), "requires.frameworks %.100q: %.100q is no set of PEP 440 specifiers", c.Name, c.Specifier)
		}
	}
}

// frameworks reads a map of framework names to specifiers; both must be texts already.
func (r *manifestReader) frameworks(v *pyvalue.Value) {
	if !v.Truthy() {
		return
	}
	if v.Kind != pyvalue.Map {
		r.add("manifest.requires.frameworks", "", v, "requires.frameworks is a %s; expected an object of framework names and specifiers", v.TypeName())
		return
	}
	for _, it := range v.Items {
		if it.Key.Kind != pyvalue.Str || it.Value.Kind != pyvalue.Str {
			r.add("manifest.requires.frameworks", "", it.Key, "requires.frameworks: %.100q: %.100q must both be texts", it.Key.PyStr(), written(it.Value))
			continue
		}
		r.checkText("requires.frameworks", it.Key)
		r.checkText("requires.frameworks", it.Value)
		r.m.Requires.Frameworks = append(r.m.Requires.Frameworks, Constraint{Name: it.Key.Text, Specifier: it.Value.Text})
	}
}

// texts reads a list of non-empty texts, kept as they are.
func (r *manifestReader) texts(field string, v *pyvalue.Value) []string {
	if !v.Truthy() {
		return nil
	}
	if v.Kind != pyvalue.List {
		r.add("manifest.requires.list", "", v, "requires.%s is a %s; expected a list of texts", field, v.TypeName())
		return nil
	}
	out := make([]string, 0, len(v.List))
	for _, item := range v.List {
		if item.Kind != pyvalue.Str || item.Text == "" {
			r.add("manifest.requires.list", "", item, "requires.%s holds %.100q; expected texts that are not empty", field, written(item))
			continue
		}
		r.checkText("requires."+field, item)
		out = append(out, item.Text)
	}
	return out
}
