package jobspec

import (
	"math"
	"math/big"
	"strconv"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// The kinds of fields (jobspec.md 2). Each reads one node, files what is wrong, and returns what the clients make of it.

// object applies the object rule: null is an empty object, anything else that is no object breaks the rule. The
// object's keys are looked through when everything else is read.
func (r *reader) object(n node, sec section, id rule.ID) (node, bool) {
	if !n.null() && n.v.Kind != pyvalue.Map {
		r.expected(n, id, "an object")
		return n, false
	}
	if n.null() {
		return n.at(nil), true
	}
	n = n.open()
	r.opened = append(r.opened, opened{n, sec})
	return n, true
}

// list applies the list rule: null and every empty value is an empty list, anything else that is no list breaks the
// rule.
func (r *reader) list(n node, id rule.ID, want string) ([]*pyvalue.Value, bool) {
	switch {
	case n.null():
		return nil, true
	case n.v.Kind == pyvalue.List:
		return n.v.List, true
	case !n.v.Truthy():
		r.falsy(n)
		return nil, true
	}
	r.expected(n, id, "an array of "+want)
	return nil, false
}

// falsy warns of an empty value of another type in place of an absent one.
func (r *reader) falsy(n node) { r.bad(n, "job.type.falsy", "%s is read as absent", show(n.v)) }

// required reads a required text and trims it.
func (r *reader) required(n node, missing, wrongType rule.ID) (string, bool) {
	switch {
	case n.null():
		r.missing(n, missing)
	case n.v.Kind != pyvalue.Str:
		r.expected(n, wrongType, "a string")
	default:
		return pyvalue.Strip(n.v.Text), true
	}
	return "", false
}

// loose reads a text as the clients' str(v or "") does, and trims it: every empty value is "", numbers and booleans
// are turned into their Python text with a warning, and so are collections unless our rule refuses them.
func (r *reader) loose(n node) string {
	if n.null() {
		return ""
	}
	if !n.v.Truthy() {
		if n.v.Kind != pyvalue.Str {
			r.falsy(n)
		}
		return ""
	}
	return pyvalue.Strip(r.text(n))
}

// text reads a value as Python's str(v) does, untrimmed.
func (r *reader) text(n node) string {
	s := n.v.PyStr()
	switch n.v.Kind {
	case pyvalue.Str:
	case pyvalue.List, pyvalue.Map:
		r.expected(n, "job.type.string", "a string")
	default:
		r.bad(n, "job.type.coerced", "%s was turned into the text %.100q", show(n.v), s)
	}
	return s
}

// strict reads an optional text that may be no other type: every empty value is "".
func (r *reader) strict(n node, wrongType rule.ID) string {
	if n.null() || !n.v.Truthy() || n.v.Kind == pyvalue.Str {
		return r.loose(n)
	}
	r.expected(n, wrongType, "a string")
	return ""
}

// maxInteger is the greatest integer that is taken where one is meant: 18 digits.
const maxInteger = 999_999_999_999_999_999

// positive reads an integer above 0, def when absent. Null is not absent.
func (r *reader) positive(n node, id rule.ID, def int64) (int64, bool) {
	return r.integer(n, id, 1, def, "a whole number above 0")
}

// integer reads a JSON integer literal of at least least, def when absent.
func (r *reader) integer(n node, id rule.ID, least, def int64, want string) (int64, bool) {
	if n.absent() {
		return def, true
	}
	if n.v.Kind != pyvalue.Int || n.v.Int.Cmp(big.NewInt(least)) < 0 {
		r.expected(n, id, want)
		return 0, false
	}
	if !n.v.Int.IsInt64() || n.v.Int.Int64() > maxInteger {
		r.bad(n, "job.json.number", "found %s, expected at most 18 digits", show(n.v))
		return 0, false
	}
	return n.v.Int.Int64(), true
}

// optional is integer where every empty value stands for def.
func (r *reader) optional(n node, id rule.ID, least, def int64, want string) (int64, bool) {
	if n.null() {
		return def, true
	}
	if !n.v.Truthy() && (n.v.Kind != pyvalue.Int || least > 0) {
		r.falsy(n)
		return def, true
	}
	return r.integer(n, id, least, def, want)
}

// number reads a number or null. Nil is null.
func (r *reader) number(n node, id rule.ID) (*float64, bool) {
	if n.null() {
		return nil, true
	}
	switch n.v.Kind {
	case pyvalue.Float:
		return &n.v.Float, true
	case pyvalue.Int:
		f, _ := new(big.Float).SetInt(n.v.Int).Float64()
		if math.IsInf(f, 0) {
			return nil, false // filed by the scan of the whole document
		}
		return &f, true
	}
	r.expected(n, id, "a number")
	return nil, false
}

// digits reads an unsigned ASCII number of at most 18 digits.
func digits(s string) (int64, bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n <= maxInteger
}
