package jobspec

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// maxFindings bounds the violations and, apart from them, the warnings of one report.
const maxFindings = 500

// rootField is the clients' word for the document.
const rootField = "<root>"

// reader walks a document, fills spec and files what it finds.
type reader struct {
	d       dialect.Dialect
	opt     Options
	report  *rule.Report
	spec    *Spec
	opened  []opened // objects in the order in which the clients read them
	dropped int      // findings beyond maxFindings
}

// tunePlane reports whether the document is read as tuneplane/v1.
func (r *reader) tunePlane() bool { return r.d == dialect.TunePlane }

// node is a value with its place in the document: the field as the clients name it, and the JSON pointer.
type node struct {
	v              *pyvalue.Value // nil when absent
	field, pointer string
	line, column   int // of the value, or of the object that lacks it
}

// absent reports whether the document has no such value; null is not absent.
func (n node) absent() bool { return n.v == nil }

// null reports whether the value is absent or null.
func (n node) null() bool { return n.v == nil || n.v.Kind == pyvalue.None }

// empty reports whether an object has no keys.
func (n node) empty() bool { return n.v == nil || len(n.v.Items) == 0 }

// at is n's place with another value.
func (n node) at(v *pyvalue.Value) node {
	n.v = v
	if v != nil && v.Line > 0 {
		n.line, n.column = v.Line, v.Column
	}
	return n
}

// get is the value of a key of an object.
func (n node) get(key string) node { return n.child(key, n.v.Get(key)) }

func (n node) child(key string, v *pyvalue.Value) node {
	c := n.at(v)
	c.field = showKey(key)
	if n.field != "" {
		c.field = n.field + "." + c.field
	}
	c.pointer = n.pointer + "/" + pointerEscaper.Replace(key)
	return c
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// item is an entry of a list whose entries the clients number.
func (n node) item(i int, v *pyvalue.Value) node {
	c := n.at(v)
	c.field = n.field + "[" + strconv.Itoa(i) + "]"
	c.pointer = n.pointer + "/" + strconv.Itoa(i)
	return c
}

// entry is an entry of a list of plain names, which the clients do not number.
func (n node) entry(i int, v *pyvalue.Value) node {
	c := n.item(i, v)
	c.field = n.field + "[]"
	return c
}

// part is a part of a text, under the name that the clients give it.
func (n node) part(name string) node {
	n.field += "." + name
	return n
}

// showKey is a key in a field path: as it is when it is short and printable, else quoted.
func showKey(key string) string {
	if utf8.RuneCountInString(key) <= 100 && utf8.ValidString(key) && strings.IndexFunc(key, notPrintable) < 0 {
		return key
	}
	return fmt.Sprintf("%.100q", key)
}

func notPrintable(c rune) bool { return !unicode.IsPrint(c) }

// bad files a breach of a rule and reports whether it refuses.
func (r *reader) bad(n node, id rule.ID, format string, args ...any) bool {
	if r.full(id) {
		return r.add(rule.Violation{Rule: id})
	}
	if n.field == "" && n.pointer == "" {
		n.field = rootField
	}
	return r.add(rule.Violation{
		Rule: id, Field: n.field, File: r.opt.File, Line: n.line, Column: n.column, Pointer: n.pointer,
		Message: fmt.Sprintf(format, args...),
	})
}

func (r *reader) add(v rule.Violation) bool {
	if r.full(v.Rule) {
		r.dropped++
		return !r.warns(v.Rule)
	}
	return r.report.Add(v)
}

// full reports whether the list into which a breach of the rule goes takes no more.
func (r *reader) full(id rule.ID) bool {
	if r.warns(id) {
		return len(r.report.Warnings) >= maxFindings
	}
	return len(r.report.Violations) >= maxFindings
}

func (r *reader) warns(id rule.ID) bool {
	info, ok := rule.Lookup(id)
	return ok && info.Warns(r.d, r.report.Policy)
}

func (r *reader) addAll(found []rule.Violation) {
	for _, v := range found {
		v.File = r.opt.File
		r.add(v)
	}
}

// overflow says that findings were left out.
func (r *reader) overflow() {
	if r.dropped > 0 {
		r.report.Add(rule.Violation{
			Rule: "job.report.truncated", File: r.opt.File,
			Message: fmt.Sprintf("%d more findings are not listed (at most %d violations and %d warnings are)", r.dropped, maxFindings, maxFindings),
		})
	}
}

// expected files a breach that is told by what was found and what should stand there.
func (r *reader) expected(n node, id rule.ID, want string) bool {
	return r.bad(n, id, "found %s, expected %s", show(n.v), want)
}

func (r *reader) missing(n node, id rule.ID) { r.bad(n, id, "the required field is missing") }

// show is a value in messages: bounded, in JSON's words, outside text escaped.
func show(v *pyvalue.Value) string {
	if v == nil {
		return "nothing"
	}
	switch v.Kind {
	case pyvalue.None:
		return "null"
	case pyvalue.Bool:
		return strconv.FormatBool(v.Bool)
	case pyvalue.Str:
		return fmt.Sprintf("%.100q", v.Text)
	case pyvalue.List:
		return fmt.Sprintf("an array (%d entries)", len(v.List))
	case pyvalue.Map:
		return fmt.Sprintf("an object (%d keys)", len(v.Items))
	}
	if len(v.Written) > 40 {
		return fmt.Sprintf("%.40s... (a number of %d characters)", v.Written, len(v.Written))
	}
	return "the number " + v.Written
}
