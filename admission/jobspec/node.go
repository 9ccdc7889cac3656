package jobspec

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// node is a value with its place in the document. The names of the place are made only when something is wrong there.
type node struct {
	v            *pyvalue.Value // nil when absent
	line, column int            // of the value, or of the object that lacks it
	last         step
	here         *step  // last, shared by what lies below, once something there was looked at
	alias        string // the field's name where the clients have another one
	piece        string // the part of a text that is meant, "" for all
}

// step is the last part of a path from the document to a value.
type step struct {
	up    *step  // the part before; nil where that is the document
	key   string // of a member
	index int    // of an entry
	form  form
}

// form says how the clients write a step.
type form uint8

const (
	root   form = iota
	member      // .key
	item        // [0]
	entry       // []: an entry of a list of plain names
)

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

// open is n with the way to it laid, so that what lies below shares that.
func (n node) open() node {
	if n.here == nil {
		here := n.last
		n.here = &here
	}
	return n
}

func (n node) below(v *pyvalue.Value, s step) node {
	c := node{line: n.line, column: n.column}.at(v)
	s.up = n.open().here
	c.last = s
	return c
}

// get is the value of a key of an object.
func (n node) get(key string) node { return n.child(key, n.v.Get(key)) }

func (n node) child(key string, v *pyvalue.Value) node {
	return n.below(v, step{key: key, form: member})
}

// item is an entry of a list whose entries the clients number.
func (n node) item(i int, v *pyvalue.Value) node { return n.below(v, step{index: i, form: item}) }

// entry is an entry of a list of plain names, which the clients do not number.
func (n node) entry(i int, v *pyvalue.Value) node { return n.below(v, step{index: i, form: entry}) }

// part is a part of a text, under the name that the clients give it.
func (n node) part(name string) node {
	n.piece = name
	return n
}

// as is n under the name of another field: the clients look no further than that.
func (n node) as(other node) node {
	n.alias = other.field()
	return n
}

// field is the place as the clients name it, "" for the document.
func (n node) field() string {
	name := n.alias
	if name == "" {
		name = string(n.last.appendField(nil))
	}
	if n.piece != "" {
		name += "." + n.piece
	}
	return name
}

// pointer is the place as a JSON pointer (RFC 6901).
func (n node) pointer() string { return string(n.last.appendPointer(nil)) }

func (s step) appendField(b []byte) []byte {
	if s.up != nil {
		b = s.up.appendField(b)
	}
	switch s.form {
	case member:
		if len(b) > 0 {
			b = append(b, '.')
		}
		b = append(b, showKey(s.key)...)
	case item:
		b = append(strconv.AppendInt(append(b, '['), int64(s.index), 10), ']')
	case entry:
		b = append(b, "[]"...)
	}
	return b
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func (s step) appendPointer(b []byte) []byte {
	if s.up != nil {
		b = s.up.appendPointer(b)
	}
	switch s.form {
	case member:
		b = append(append(b, '/'), pointerEscaper.Replace(s.key)...)
	case item, entry:
		b = strconv.AppendInt(append(b, '/'), int64(s.index), 10)
	}
	return b
}

// violation is a breach at n.
func (n node) violation(id rule.ID, message string) rule.Violation {
	return rule.Violation{Rule: id, Field: n.field(), Line: n.line, Column: n.column, Pointer: n.pointer(), Message: message}
}

// showKey is a key in a field path: as it is when it is short and printable, else quoted.
func showKey(key string) string {
	if utf8.RuneCountInString(key) <= 100 && utf8.ValidString(key) && strings.IndexFunc(key, notPrintable) < 0 {
		return key
	}
	return fmt.Sprintf("%.100q", key)
}

func notPrintable(c rune) bool { return !unicode.IsPrint(c) }
