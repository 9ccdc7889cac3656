package pack

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pep440"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/pyyaml"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// maxFaults is how many violations one document reports. The rest are counted.
const maxFaults = 100

// document reads the fields of a recipe.yaml or benchmark.yaml and files what breaks a rule. Its methods answer as
// the clients' reader would go on; a value that a rule refuses is replaced by an empty one.
type document struct {
	file    string
	dialect dialect.Dialect
	report  rule.Report
	beyond  int     // violations past maxFaults
	last    rule.ID // the rule of the first of those
}

// fault files a violation of the value at, or of no place when at is nil. It reports whether it refuses.
func (d *document) fault(id rule.ID, field string, at *pyvalue.Value, format string, args ...any) bool {
	v := rule.Violation{Rule: id, Field: field, File: d.file, Message: fmt.Sprintf(format, args...)}
	if at != nil {
		v.Line, v.Column = at.Line, at.Column
	}
	return d.add(v)
}

func (d *document) add(v rule.Violation) bool {
	if len(d.report.Violations)+len(d.report.Warnings) < maxFaults {
		return d.report.Add(v)
	}
	if d.beyond == 0 {
		d.last = v.Rule
	}
	d.beyond++
	return true
}

// finish orders the report and says how much of it is left out.
func (d *document) finish() rule.Report {
	d.report.ClientsFirst()
	if d.beyond > 0 {
		d.report.Add(rule.Violation{Rule: d.last, File: d.file, Message: fmt.Sprintf("%d more findings are not listed", d.beyond)})
	}
	return d.report
}

// source reads the document that a pack is about. A pack without it, or with one above limit.Document, is a
// violation.
func (d *document) source(t tree.Tree, file string, missing, tooLarge rule.ID) (src []byte, ok bool, err error) {
	e, found := t.Listing().Lookup(file)
	if !found || e.Kind != tree.Counted {
		d.fault(missing, "", nil, "the pack has no file %s in its root", file)
		return nil, false, nil
	}
	src, err = tree.ReadFile(t, file, limit.Document)
	if errors.Is(err, tree.ErrTooLarge) {
		d.fault(tooLarge, "", nil, "%s has %d bytes, at most %d are allowed", file, e.Size, limit.Document)
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %s: %w", file, err)
	}
	return src, true, nil
}

// load reads the YAML of a document. nil means that it holds no object, which the report then says.
func (d *document) load(src []byte, policy rule.Policy, tooLarge, root rule.ID) *pyvalue.Value {
	if len(src) > limit.Document {
		d.fault(tooLarge, "", nil, "%s has %d bytes, at most %d are allowed", d.file, len(src), limit.Document)
		return nil
	}
	v, report := pyyaml.Load(src, pyyaml.Options{File: d.file, Policy: policy})
	d.report.Merge(report)
	switch n := 0; {
	case v == nil:
		return nil
	case repeats(v, make(map[*pyvalue.Value]bool), &n):
		d.fault(tooLarge, "", v, "aliases repeat lists and objects more than %d times", maxRepeats)
		return nil
	case !v.Truthy():
		return &pyvalue.Value{Kind: pyvalue.Map, Line: 1, Column: 1}
	case v.Kind != pyvalue.Map:
		d.fault(root, "", v, "the file holds %s, expected an object of fields such as `name: …`", found(v))
		return nil
	}
	return v
}

// maxRepeats is how often a document may reach a list or object again through an alias. Each time a field takes one
// for a text costs as much as the text, however short the alias.
const maxRepeats = 2000

// repeats reports whether lists and objects below v are reached again too often; n counts how often.
func repeats(v *pyvalue.Value, seen map[*pyvalue.Value]bool, n *int) bool {
	if len(v.List)+len(v.Items) == 0 {
		return false
	}
	if seen[v] {
		*n++
	}
	seen[v] = true
	for _, it := range v.List {
		if repeats(it, seen, n) {
			return true
		}
	}
	for _, it := range v.Items {
		if repeats(it.Key, seen, n) || repeats(it.Value, seen, n) {
			return true
		}
	}
	return *n > maxRepeats
}

// text is the client's reading of a text field that names something: checked for scalars that change on the way.
func (d *document) text(root *pyvalue.Value, field string) string {
	v := root.Get(field)
	d.checkText(v, field)
	return v.TextOf()
}

// checkText warns of, or refuses, an unquoted scalar that the client takes for something else than a text.
func (d *document) checkText(v *pyvalue.Value, field string) {
	if v != nil && len(d.report.Violations)+len(d.report.Warnings) < maxFaults {
		pyyaml.CheckText(&d.report, d.file, field, v)
	}
}

// ignoredKeys warns of keys that no client reads.
func (d *document) ignoredKeys(id rule.ID, root *pyvalue.Value, known []string) {
	warned := 0
	for _, it := range root.Items {
		key := it.Key.PyStr()
		if it.Key.Kind == pyvalue.Str && oneOf(key, known) {
			continue
		}
		if warned++; warned > maxListed {
			return
		}
		v := rule.Violation{Rule: id, Field: printed(key, 100), File: d.file, Line: it.Key.Line, Column: it.Key.Column, Message: fmt.Sprintf("the clients ignore the field %.100q", key)}
		if k := meant(key, known); k != "" {
			v.Hint = hintRename(key, k)
		}
		d.add(v)
	}
}

// found describes a value for a message.
func found(v *pyvalue.Value) string {
	switch {
	case v == nil:
		return "nothing"
	case v.Kind == pyvalue.None:
		return "null"
	case v.Kind == pyvalue.Map:
		return "an object"
	case v.Kind == pyvalue.List || v.Kind == pyvalue.Tuple || v.Kind == pyvalue.Set:
		return "a list"
	case v.Kind == pyvalue.Str:
		return fmt.Sprintf("the text %.100q", v.Text)
	}
	return fmt.Sprintf("%.100q, a %s", v.PyStr(), v.TypeName())
}

// pathOf joins the parts of a field's name. A part that comes from the document is shown as it is only when it is
// short and printable.
func pathOf(prefix, part string) string { return prefix + "." + printed(part, 100) }

// printed is a text from the document inside a message or field: in quotes when it holds what a terminal might take
// for more than a character, and of at most limit bytes.
func printed(s string, limit int) string {
	cut := s[:min(len(s), limit)]
	if len(cut) < len(s) || strings.ContainsFunc(cut, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(cut)
	}
	return s
}

// object is v when it is a map.
func (d *document) object(id rule.ID, field string, v, at *pyvalue.Value) (*pyvalue.Value, bool) {
	if v != nil && v.Kind == pyvalue.Map {
		return v, true
	}
	d.fault(id, field, or(v, at), "found %s, expected an object", found(v))
	return nil, false
}

// or is v, or what a position can be taken from when v is absent.
func or(v, at *pyvalue.Value) *pyvalue.Value {
	if v != nil {
		return v
	}
	return at
}

// sequence are the items of a list. An empty or absent value is an empty list.
func (d *document) sequence(id rule.ID, field string, v *pyvalue.Value) ([]*pyvalue.Value, bool) {
	if !v.Truthy() {
		return nil, true
	}
	if !isSequence(v) {
		d.fault(id, field, v, "found %s, expected a list", found(v))
		return nil, false
	}
	return v.List, true
}

func isSequence(v *pyvalue.Value) bool {
	return v != nil && (v.Kind == pyvalue.List || v.Kind == pyvalue.Tuple)
}

// texts are str(item).strip() of the items, without the empty ones; never nil.
func texts(items []*pyvalue.Value) []string {
	all := []string{}
	for _, it := range items {
		if s := pyvalue.Strip(it.PyStr()); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// iterated are the items that a Python loop over the value takes: of a text its characters, of a map its keys. ok is
// false where the loop would crash. An empty or absent value has none.
func iterated(v *pyvalue.Value) (items []*pyvalue.Value, ok bool) {
	if !v.Truthy() {
		return nil, true
	}
	switch v.Kind {
	case pyvalue.List, pyvalue.Tuple, pyvalue.Set:
		return v.List, true
	case pyvalue.Map:
		for _, it := range v.Items {
			items = append(items, it.Key)
		}
		return items, true
	case pyvalue.Str:
		for s := v.Text; s != ""; {
			_, n := pyvalue.DecodeRune(s)
			items = append(items, pyvalue.NewStr(s[:n]))
			s = s[n:]
		}
		return items, true
	case pyvalue.Bytes:
		for i := range len(v.Text) {
			items = append(items, pyvalue.NewStr(strconv.Itoa(int(v.Text[i]))))
		}
		return items, true
	}
	return nil, false
}

// segment checks one path-safe name and returns it stripped.
func (d *document) segment(id rule.ID, field, value string, at *pyvalue.Value) (string, bool) {
	s, err := name.Segment(value, field)
	if err != nil {
		if value == "" {
			d.fault(id, field, at, "the name is missing or empty")
		} else {
			d.fault(id, field, at, "%.100q is no name: expected %s", value, segmentRule)
		}
		return "", false
	}
	return s, true
}

// specifiers checks a PEP 440 specifier set.
func (d *document) specifiers(id rule.ID, field, value string, at *pyvalue.Value) {
	if _, err := pep440.ParseSpecifierSet(value); err != nil {
		d.fault(id, field, at, "the range %.100q can't be read: %v", value, err)
	}
}

// isInside reports whether a path is relative and has no ".." element, by POSIX rules (packs.md 5.3, "rel path").
func isInside(path string) bool {
	if strings.HasPrefix(path, "/") {
		return false
	}
	for element := range strings.SplitSeq(path, "/") {
		if element == ".." {
			return false
		}
	}
	return true
}

func oneOf(s string, all []string) bool {
	for _, one := range all {
		if s == one {
			return true
		}
	}
	return false
}
