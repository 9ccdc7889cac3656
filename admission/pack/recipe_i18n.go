package pack

import (
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// translations reads an i18n block, {locale: {field: text}}, of which only the given fields may be translated. It is
// the same in recipes, parameters, benchmarks and metrics.
func (d *document) translations(id rule.ID, field string, v *pyvalue.Value, fields []string) Table[Texts] {
	var out Table[Texts]
	if isNone(v) {
		return out
	}
	block, ok := d.object(id, field, v, v)
	if !ok {
		return out
	}
	for _, it := range block.Items {
		locale := pyvalue.Strip(it.Key.PyStr())
		if texts, ok := d.locale(id, field, locale, it, fields); ok && texts.Len() > 0 {
			out.set(locale, texts)
		}
	}
	return out
}

// locale reads the texts of one locale. Keys that other rules read are left out by the caller.
func (d *document) locale(id rule.ID, field, locale string, it pyvalue.Item, fields []string) (Texts, bool) {
	var texts Texts
	if locale == "" {
		d.fault(id, field, it.Key, "a locale is empty")
		return texts, false
	}
	block, ok := d.object(id, pathOf(field, locale), it.Value, it.Key)
	if !ok {
		return texts, false
	}
	d.onlyFields(id, pathOf(field, locale), block, fields)
	for _, f := range fields {
		if v := block.Get(f); v.Truthy() {
			texts.set(f, v.TextOf())
		}
	}
	return texts, true
}

func (d *document) onlyFields(id rule.ID, field string, block *pyvalue.Value, fields []string) {
	var unknown []string
	for _, it := range block.Items {
		if key := it.Key.PyStr(); !oneOf(key, fields) {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		d.fault(id, field, block, "found %s, expected only %s: nothing else is translated", quoteList(unknown), strings.Join(fields, " and "))
	}
}

// i18n reads the recipe's translations and those of its parameters, by parameter and locale.
func (r *recipeReader) i18n(params *pyvalue.Value) map[string]Table[Texts] {
	v := r.root.Get("i18n")
	if isNone(v) {
		return nil
	}
	block, ok := r.object("recipe.i18n", "i18n", v, r.root)
	if !ok {
		return nil
	}
	ofParams, declared := make(map[string]Table[Texts]), make(map[string]bool)
	if params != nil {
		for _, it := range params.Items {
			if it.Key.Kind == pyvalue.Str {
				declared[it.Key.Text] = true
			}
		}
	}
	for _, it := range block.Items {
		locale := pyvalue.Strip(it.Key.PyStr())
		field := pathOf("i18n", locale)
		texts, ok := r.object("recipe.i18n", field, it.Value, it.Key)
		if !ok {
			continue
		}
		own, translated := without(texts, "params")
		if t, ok := r.locale("recipe.i18n", "i18n", locale, pyvalue.Item{Key: it.Key, Value: own}, []string{"title", "summary"}); ok && t.Len() > 0 {
			r.out.I18n.set(locale, t)
		}
		if locale != "" && !isNone(translated) {
			r.paramTexts(ofParams, locale, field+".params", translated, declared)
		}
	}
	return ofParams
}

// without is a map without one text key, and that key's value.
func without(m *pyvalue.Value, key string) (rest, value *pyvalue.Value) {
	rest = &pyvalue.Value{Kind: pyvalue.Map, Line: m.Line, Column: m.Column}
	for _, it := range m.Items {
		if it.Key.Kind == pyvalue.Str && it.Key.Text == key {
			value = it.Value
			continue
		}
		rest.Items = append(rest.Items, it)
	}
	return rest, value
}

// paramTexts reads the translations of parameters in one locale.
func (r *recipeReader) paramTexts(into map[string]Table[Texts], locale, field string, v *pyvalue.Value, declared map[string]bool) {
	block, ok := r.object("recipe.i18n", field, v, v)
	if !ok {
		return
	}
	var unknown []string
	for _, it := range block.Items {
		if name := it.Key.PyStr(); !declared[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		r.fault("recipe.i18n", field, block, "found translations of %s, which params does not declare", quoteList(unknown))
	}
	for _, it := range block.Items {
		name := it.Key.PyStr()
		texts, ok := r.locale("recipe.i18n", pathOf(field, name), locale, it, []string{"doc", "group"})
		if ok && texts.Len() > 0 {
			t := into[name]
			t.set(locale, texts)
			into[name] = t
		}
	}
}

// localized is a text in a locale, the base language's where the translation is absent or empty.
func localized(translations Table[Texts], locale, field, base string) string {
	texts, _ := translations.Get(locale)
	if s, _ := texts.Get(field); pyvalue.Strip(s) != "" {
		return pyvalue.Strip(s)
	}
	return base
}
