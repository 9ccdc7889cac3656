package pack

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/nearest"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// hyperparamsField is the field of a JobSpec that holds the parameters.
const hyperparamsField = "spec.hyperparams"

// CheckHyperparams checks the parameters that a job gives against those that the recipe declares, as the client does
// before it submits (packs.md 5.3, "Value check"; jobspec.md 8), and returns them with the defaults filled in, in the
// recipe's order. given is the document's object; nil and null give nothing. frameworkVersion is the version the job
// runs with; tuneplane refuses a parameter that it doesn't offer, and "" compares nothing. Violations stand in the
// client's order: unknown names, then each parameter.
func (r *Recipe) CheckHyperparams(given *pyvalue.Value, frameworkVersion string) (Table[Raw], rule.Report) {
	var filled Table[Raw]
	var report rule.Report
	add := func(field string, at *pyvalue.Value, format string, args ...any) {
		v := rule.Violation{Rule: "job.hyperparams.recipe", Field: field, Message: fmt.Sprintf(format, args...)}
		if at != nil {
			v.Line, v.Column = at.Line, at.Column
		}
		report.Add(v)
	}
	if given != nil && given.Kind != pyvalue.Map && given.Kind != pyvalue.None {
		add(hyperparamsField, given, "found %s, expected an object", found(given))
		return filled, report
	}
	if unknown := r.unknownParams(given); len(unknown) > 0 {
		add(hyperparamsField, r.firstUnknown(given), "%s", r.unknownMessage(unknown))
	}
	values := membersOf(given)
	for name, p := range r.Params.All() {
		field, v := pathOf(hyperparamsField, name), values[name]
		switch {
		case v != nil:
			if fault := p.check(v); fault != "" {
				add(field, v, "%s", fault)
			}
			if selected := pyvalue.Strip(frameworkVersion); selected != "" && len(p.Versions) > 0 && !oneOf(selected, p.Versions) {
				add(field, v, "%s %.100q does not offer the parameter, %s do", r.Framework, selected, quoteList(p.Versions))
			}
			filled.set(name, Raw{v})
		case p.Required:
			add(hyperparamsField, given, "the required parameter %.100q of recipe %s is missing", name, r.ID())
		case !isNone(p.Default.Value):
			filled.set(name, p.Default)
		}
	}
	return filled, report
}

// membersOf are the values of an object by their keys: recipes and jobs can name thousands.
func membersOf(v *pyvalue.Value) map[string]*pyvalue.Value {
	if v == nil {
		return nil
	}
	members := make(map[string]*pyvalue.Value, len(v.Items))
	for _, it := range v.Items {
		if _, twice := members[it.Key.Text]; it.Key.Kind == pyvalue.Str && !twice {
			members[it.Key.Text] = it.Value
		}
	}
	return members
}

// unknownParams are the names that the recipe doesn't declare, sorted.
func (r *Recipe) unknownParams(given *pyvalue.Value) []string {
	if given == nil {
		return nil
	}
	var unknown []string
	for _, it := range given.Items {
		if it.Key.Kind != pyvalue.Str || !r.Params.Has(it.Key.Text) {
			unknown = append(unknown, it.Key.PyStr())
		}
	}
	slices.Sort(unknown)
	return unknown
}

// firstUnknown is the first key of given that the recipe doesn't declare.
func (r *Recipe) firstUnknown(given *pyvalue.Value) *pyvalue.Value {
	for _, it := range given.Items {
		if it.Key.Kind != pyvalue.Str || !r.Params.Has(it.Key.Text) {
			return it.Key
		}
	}
	return given
}

// maxNear is how many parameters a message names for an unknown one.
const maxNear = 2

// NearParams are parameters that an unknown name was probably meant to be, the most likely first: those that the recipe keeps
// where the name's last part says, as learning_rate at policy.optimizer.kwargs.lr is meant by lr, then those of a like name.
func (r *Recipe) NearParams(unknown string) []string {
	wanted := lastPart(unknown)
	var at, below []string
	for name, p := range r.Params.All() {
		switch {
		case p.Path == unknown:
			at = append(at, name)
		case p.liesAt(wanted):
			below = append(below, name)
		}
	}
	known := r.Params.Names()
	near := slices.Concat(at, below, nearest.Words(unknown, known, maxNear), nearest.Words(wanted, known, maxNear))
	return firstOfEach(near, maxNear)
}

// firstOfEach are the first n different names.
func firstOfEach(names []string, n int) []string {
	var list []string
	seen := make(map[string]bool)
	for _, name := range names {
		if len(list) < n && !seen[name] {
			seen[name], list = true, append(list, name)
		}
	}
	return list
}

// liesAt reports whether the parameter is kept under a key of that name.
func (p *Param) liesAt(key string) bool {
	return key != "" && (strings.EqualFold(lastPart(p.Path), key) || p.movesTo(key))
}

// movesTo reports whether a framework version keeps the parameter under a key of that name.
func (p *Param) movesTo(key string) bool {
	return slices.ContainsFunc(p.PathOverrides, func(o [2]string) bool { return strings.EqualFold(lastPart(o[1]), key) })
}

// lastPart is what follows the last dot of a path.
func lastPart(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// maxGuessed is for how many unknown names a message looks for the ones that were meant.
const maxGuessed = 8

// unknownMessage tells of names that the recipe doesn't declare: each with what was probably meant, then what there is, the
// likely ones first.
func (r *Recipe) unknownMessage(unknown []string) string {
	var likely, shown []string
	for i, name := range unknown[:min(len(unknown), maxListed)] {
		text := fmt.Sprintf("%.100q", name)
		if i < maxGuessed {
			if near := r.NearParams(name); len(near) > 0 {
				likely = append(likely, near...)
				text += " (did you mean " + strings.Join(near, " or ") + "?)"
			}
		}
		shown = append(shown, text)
	}
	more := ""
	if n := len(unknown) - len(shown); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	known := r.Params.Names()
	known = firstOfEach(append(likely, known...), len(known))
	if len(known) == 0 {
		return fmt.Sprintf("found %s%s, expected none: the recipe %s declares no parameters", strings.Join(shown, ", "), more, r.ID())
	}
	return fmt.Sprintf("found %s%s, expected parameters of the recipe %s, which are %s", strings.Join(shown, ", "), more, r.ID(), quoteList(known))
}

// check says what is wrong with a value of the parameter, "" when nothing is.
func (p *Param) check(v *pyvalue.Value) string {
	if p.Type == "enum" {
		return p.checkChoice(v)
	}
	if !p.hasType(v) {
		return fmt.Sprintf("found %s, expected %s", found(v), article(p.Type))
	}
	if p.Type == "int" || p.Type == "float" {
		if fault := p.checkRange(v); fault != "" {
			return fault
		}
	}
	if len(p.Choices) > 0 {
		return p.checkChoice(v)
	}
	return ""
}

func article(paramType string) string {
	return map[string]string{"int": "an integer", "float": "a number", "bool": "true or false", "str": "a text"}[paramType]
}

// hasType holds that a truth value is no number and that an integer will do for a float.
func (p *Param) hasType(v *pyvalue.Value) bool {
	switch p.Type {
	case "int":
		return v.Kind == pyvalue.Int
	case "float":
		return v.Kind == pyvalue.Int || v.Kind == pyvalue.Float
	case "bool":
		return v.Kind == pyvalue.Bool
	case "str":
		return v.Kind == pyvalue.Str
	}
	return false
}

func (p *Param) checkRange(v *pyvalue.Value) string {
	if low := p.Minimum.Value; !isNone(low) {
		if !isNumber(low) {
			return fmt.Sprintf("the recipe's own min is %s, so no value can be compared with it", found(low))
		}
		if c, ok := compareNumbers(v, low); ok && (c < 0 || c == 0 && p.ExclusiveMinimum) {
			return fmt.Sprintf("found %.60s, expected %s %.60s", v.PyStr(), map[bool]string{true: "more than", false: "at least"}[p.ExclusiveMinimum], low.PyStr())
		}
	}
	if high := p.Maximum.Value; !isNone(high) {
		if !isNumber(high) {
			return fmt.Sprintf("the recipe's own max is %s, so no value can be compared with it", found(high))
		}
		if c, ok := compareNumbers(v, high); ok && c > 0 {
			return fmt.Sprintf("found %.60s, expected at most %.60s", v.PyStr(), high.PyStr())
		}
	}
	return ""
}

func (p *Param) checkChoice(v *pyvalue.Value) string {
	shown := make([]string, 0, len(p.Choices))
	for _, c := range p.Choices {
		if equalValues(v, c.Value) {
			return ""
		}
		shown = append(shown, c.PyStr())
	}
	return fmt.Sprintf("found %s, expected one of %s", found(v), quoteList(shown))
}

func isNone(v *pyvalue.Value) bool { return v == nil || v.Kind == pyvalue.None }

// isNumber reports whether Python compares the value with numbers. Truth values are 0 and 1.
func isNumber(v *pyvalue.Value) bool {
	return v != nil && (v.Kind == pyvalue.Int || v.Kind == pyvalue.Float || v.Kind == pyvalue.Bool)
}

// compareNumbers orders two numbers exactly, as Python does; not ok when one of them is nan.
func compareNumbers(v, w *pyvalue.Value) (int, bool) {
	a, okA := exact(v)
	b, okB := exact(w)
	if !okA || !okB {
		return 0, false
	}
	return a.Cmp(b), true
}

// exact is a number without rounding; not ok for nan.
func exact(v *pyvalue.Value) (*big.Float, bool) {
	switch {
	case v.Kind == pyvalue.Bool && v.Bool:
		return big.NewFloat(1), true
	case v.Kind == pyvalue.Bool:
		return new(big.Float), true
	case v.Kind == pyvalue.Int:
		return new(big.Float).SetPrec(uint(max(v.Int.BitLen(), 64))).SetInt(v.Int), true
	case math.IsNaN(v.Float):
		return nil, false
	}
	return big.NewFloat(v.Float), true
}

// equalValues is Python's ==: numbers of all types by value, lists and maps member by member.
func equalValues(a, b *pyvalue.Value) bool {
	switch {
	case isNone(a) || isNone(b):
		return isNone(a) && isNone(b)
	case isNumber(a) && isNumber(b):
		c, ok := compareNumbers(a, b)
		return ok && c == 0
	case a.Kind != b.Kind:
		return false
	case a.Kind == pyvalue.List || a.Kind == pyvalue.Tuple:
		return slices.EqualFunc(a.List, b.List, equalValues)
	case a.Kind == pyvalue.Map:
		return equalMaps(a, b)
	}
	return a.Text == b.Text
}

func equalMaps(a, b *pyvalue.Value) bool {
	if len(a.Items) != len(b.Items) {
		return false
	}
	byKey := make(map[string]*pyvalue.Value, len(b.Items))
	for _, it := range b.Items {
		key, _ := it.Key.HashKey()
		byKey[key] = it.Value
	}
	for _, it := range a.Items {
		key, _ := it.Key.HashKey()
		if v, ok := byKey[key]; !ok || !equalValues(it.Value, v) {
			return false
		}
	}
	return true
}
