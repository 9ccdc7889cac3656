// Package suite holds the rules of what the platforms call environments, tasksets and rubrics, and of two documents that
// stand in projects (packs.md 7 to 11): manifest.json and tasks.jsonl of an environment in either dialect, taskset.json,
// a rubric's text, solution.yaml, and the discovery of data preparation scripts. A suite is uploaded file by file; its
// index.json, which comes last, names every file with size and sha256 and so seals the version.
//
// Every reader files all violations at once with line and column, those of the clients' own rules first, and never runs,
// imports or evaluates what it reads. Nothing here touches the network or a store.
package suite

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Kind is what a suite is.
type Kind string

// The kinds of suites.
const (
	Environment Kind = "environment"
	Taskset     Kind = "taskset"
	Rubric      Kind = "rubric"
)

// Kinds lists the kinds in their fixed order.
var Kinds = []Kind{Environment, Taskset, Rubric}

// Plural is the kind as routes and repositories name it.
func (k Kind) Plural() string { return string(k) + "s" }

// ArtifactType is the type of the kind's OCI artifact.
func (k Kind) ArtifactType() string { return "application/vnd.gatehouse." + string(k) + ".v1" }

// KindOfPlural finds the kind that Plural names.
func KindOfPlural(plural string) (Kind, bool) {
	for _, k := range Kinds {
		if k.Plural() == plural {
			return k, true
		}
	}
	return "", false
}

// maxFaults is how many violations one document reports. The rest are counted.
const maxFaults = 100

// findings collects what is wrong with one document.
type findings struct {
	file   string
	report rule.Report
	beyond int     // violations past maxFaults
	last   rule.ID // the rule of the first of those
}

// fault files a violation of the value at, or of no place when at is nil.
func (f *findings) fault(id rule.ID, field string, at *pyvalue.Value, format string, args ...any) {
	v := rule.Violation{Rule: id, Field: field, File: f.file, Message: fmt.Sprintf(format, args...)}
	if at != nil {
		v.Line, v.Column = at.Line, at.Column
	}
	f.add(v)
}

func (f *findings) add(v rule.Violation) {
	if len(f.report.Violations)+len(f.report.Warnings) < maxFaults {
		f.report.Add(v)
		return
	}
	if f.beyond == 0 {
		f.last = v.Rule
	}
	f.beyond++
}

// full reports whether what more is found would only be counted.
func (f *findings) full() bool { return len(f.report.Violations) >= maxFaults }

// finish orders the report and says how much of it is left out.
func (f *findings) finish() rule.Report {
	f.report.ClientsFirst()
	if f.beyond > 0 {
		f.report.Add(rule.Violation{Rule: f.last, File: f.file, Message: fmt.Sprintf("%d more findings are not listed", f.beyond)})
	}
	return f.report
}

// ignored warns of members that no client reads.
func (f *findings) ignored(id rule.ID, root *pyvalue.Value, known []string) {
	const most = 20
	warned := 0
	for _, it := range root.Items {
		if it.Key.Kind == pyvalue.Str && slices.Contains(known, it.Key.Text) {
			continue
		}
		if warned++; warned > most {
			return
		}
		f.fault(id, printed(it.Key.PyStr()), it.Key, "the clients don't read the field %.100q", it.Key.PyStr())
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
	return fmt.Sprintf("%.100s, a %s", v.PyStr(), v.TypeName())
}

// isMap reports whether v is an object.
func isMap(v *pyvalue.Value) bool { return v != nil && v.Kind == pyvalue.Map }

// isList reports whether v is a list.
func isList(v *pyvalue.Value) bool {
	return v != nil && (v.Kind == pyvalue.List || v.Kind == pyvalue.Tuple)
}

// or is v, or what a position can be taken from when v is absent.
func or(v, at *pyvalue.Value) *pyvalue.Value {
	if v != nil {
		return v
	}
	return at
}

// oneOf is a list of words for a message.
func oneOf(words []string) string { return "one of " + strings.Join(words, ", ") }

// printed is a text from the document inside a field's name: in quotes when it holds what does not print.
func printed(s string) string {
	cut := s[:min(len(s), 100)]
	if len(cut) < len(s) || strings.ContainsFunc(cut, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(cut)
	}
	return s
}
