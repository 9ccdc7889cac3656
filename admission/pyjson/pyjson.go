// Package pyjson reads JSON documents into Python's value model, as the real clients' reader does, with the
// position of every value and with the literal text of every number kept (1, 1.0 and 1e0 are three things).
//
// It is stricter than the clients in what two readers could take in two ways (package strictjson): those rules are
// ours and may be softened; then the value is Python's: the last of a repeated key counts, NaN and infinities are
// floats, a lone surrogate stays in the text. A document that breaks them is read on all the same, so that
// the rules of its fields find everything else that is wrong with it.
package pyjson

import (
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
)

// maxDepth is where reading ends whatever a policy says: the clients' reader crashes a little later.
const maxDepth = 900

// maxListed is how many breaches of one rule are listed.
const maxListed = 64

// Rules names the rules under which faults are filed, so that each family of documents has ids of its own.
type Rules struct {
	Syntax    rule.ID // no JSON, or text after the document
	Encoding  rule.ID // a byte-order mark or bytes that are no UTF-8
	Limit     rule.ID // larger, deeper or longer than any policy allows; always refused
	Duplicate rule.ID // an object names a key twice
	Constant  rule.ID // NaN, Infinity, -Infinity
	Number    rule.ID // a number beyond the range of a double
	Depth     rule.ID // deeper than Options.MaxDepth
	String    rule.ID // a lone surrogate or a control character in a text
}

// Family is the rules prefix.syntax, .encoding, .limit, .duplicate_key, .constant, .number, .depth and .string.
func Family(prefix string) Rules {
	id := func(name string) rule.ID { return rule.ID(prefix + "." + name) }
	return Rules{
		Syntax: id("syntax"), Encoding: id("encoding"), Limit: id("limit"), Duplicate: id("duplicate_key"),
		Constant: id("constant"), Number: id("number"), Depth: id("depth"), String: id("string"),
	}
}

// Options say how to read. The zero Options read a document of at most limit.Document bytes under the rules json.*.
type Options struct {
	Policy   rule.Policy
	File     string // Violation.File
	Rules    Rules  // zero: Family("json")
	MaxBytes int    // 0: limit.Document
	MaxDepth int    // 0: limit.JSONDepth
	MaxNodes int    // 0: limit.JSONNodes
}

// Load reads src. The value is nil exactly when the document can't be read at all, which the report then says;
// otherwise it is what Python makes of the document, even when the report refuses it.
func Load(src []byte, opt Options) (*pyvalue.Value, rule.Report) {
	l := newLoader(opt)
	if len(src) > l.opt.MaxBytes {
		l.add(l.opt.Rules.Limit, 0, 0, "found %d bytes, expected at most %d", len(src), l.opt.MaxBytes)
		return nil, l.report
	}
	l.reader = strictjson.NewReader(src, strictjson.Options{MaxDepth: maxDepth, Tolerate: l.tolerate})
	v, err := l.document()
	if err != nil {
		if f, ok := errors.AsType[*strictjson.Fault](err); ok {
			l.file(f)
		}
		return nil, l.report
	}
	return v, l.report
}

type loader struct {
	opt    Options
	report rule.Report
	reader *strictjson.Reader
	stack  []open
	nodes  int
	listed map[rule.ID]int
	deep   bool // the breach of MaxDepth is filed
	spare  []pyvalue.Value
}

// value is a new value. They are made many at a time.
func (l *loader) value() *pyvalue.Value {
	if len(l.spare) == 0 {
		l.spare = make([]pyvalue.Value, 32)
	}
	v := &l.spare[0]
	l.spare = l.spare[1:]
	return v
}

// open is a collection under construction.
type open struct {
	value *pyvalue.Value
	key   *pyvalue.Value
	index map[string]int // key -> place in value.Items, once there are more than maxFew
}

// maxFew is how many keys of an object are compared one by one.
const maxFew = 16

// place finds a key that the object has already.
func (o *open) place(key string) (at int, ok bool) {
	if o.index != nil {
		at, ok = o.index[key]
		return at, ok
	}
	for i := range o.value.Items {
		if o.value.Items[i].Key.Text == key {
			return i, true
		}
	}
	return 0, false
}

// add appends a member that the object does not have.
func (o *open) add(key, v *pyvalue.Value) {
	if o.value.Items == nil {
		o.value.Items = make([]pyvalue.Item, 0, 4)
	}
	o.value.Items = append(o.value.Items, pyvalue.Item{Key: key, Value: v})
	switch n := len(o.value.Items); {
	case o.index != nil:
		o.index[key.Text] = n - 1
	case n > maxFew:
		o.index = make(map[string]int, 2*n)
		for i := range o.value.Items {
			o.index[o.value.Items[i].Key.Text] = i
		}
	}
}

func newLoader(opt Options) *loader {
	if opt.Rules == (Rules{}) {
		opt.Rules = Family("json")
	}
	if opt.MaxBytes == 0 {
		opt.MaxBytes = limit.Document
	}
	if opt.MaxDepth == 0 {
		opt.MaxDepth = limit.JSONDepth
	}
	if opt.MaxNodes == 0 {
		opt.MaxNodes = limit.JSONNodes
	}
	return &loader{opt: opt, report: rule.Report{Policy: opt.Policy}, listed: make(map[rule.ID]int)}
}

// errLimit ends the reading of a document whose breach of a limit is filed.
var errLimit = errors.New("limit")

func (l *loader) document() (*pyvalue.Value, error) {
	var root *pyvalue.Value
	for {
		t, err := l.reader.Next()
		if errors.Is(err, io.EOF) {
			return root, nil
		}
		if err != nil {
			return nil, err
		}
		v, err := l.token(t)
		if err != nil {
			return nil, err
		}
		if v != nil && root == nil {
			root = v
		}
	}
}

// token takes one token; it returns the value that begins with it, if any.
func (l *loader) token(t strictjson.Token) (*pyvalue.Value, error) {
	switch t.Type {
	case strictjson.EndObject, strictjson.EndArray:
		l.stack = l.stack[:len(l.stack)-1]
		return nil, nil
	case strictjson.Key:
		key := l.value()
		*key = pyvalue.Value{Kind: pyvalue.Str, Text: t.Text, Written: t.Text, Line: t.Line, Column: t.Column}
		l.stack[len(l.stack)-1].key = key
		return nil, nil
	}
	if l.nodes++; l.nodes > l.opt.MaxNodes {
		l.add(l.opt.Rules.Limit, t.Line, t.Column, "found more than %d values, expected at most that many", l.opt.MaxNodes)
		return nil, errLimit
	}
	v := scalar(l.value(), t)
	l.attach(v)
	if v.Kind == pyvalue.Map || v.Kind == pyvalue.List {
		l.stack = append(l.stack, open{value: v})
		if len(l.stack) > l.opt.MaxDepth && !l.deep {
			l.deep = true
			l.add(l.opt.Rules.Depth, t.Line, t.Column, "found nesting of more than %d levels, expected at most that many", l.opt.MaxDepth)
		}
	}
	return v, nil
}

// attach puts v where it belongs in the innermost open collection.
func (l *loader) attach(v *pyvalue.Value) {
	if len(l.stack) == 0 {
		return
	}
	o := &l.stack[len(l.stack)-1]
	if o.value.Kind == pyvalue.List {
		o.value.List = append(o.value.List, v)
		return
	}
	if at, ok := o.place(o.key.Text); ok {
		o.value.Items[at].Value = v
		return
	}
	o.add(o.key, v)
}

// scalar makes v the value a token stands for; collections come back empty.
func scalar(v *pyvalue.Value, t strictjson.Token) *pyvalue.Value {
	v.Line, v.Column = t.Line, t.Column
	switch t.Type {
	case strictjson.BeginObject:
		v.Kind = pyvalue.Map
	case strictjson.BeginArray:
		v.Kind = pyvalue.List
	case strictjson.String:
		v.Kind, v.Text, v.Written = pyvalue.Str, t.Text, t.Text
	case strictjson.True, strictjson.False:
		v.Kind, v.Bool = pyvalue.Bool, t.Type == strictjson.True
		v.Written = strconv.FormatBool(v.Bool)
	case strictjson.Null:
		v.Written = "null"
	case strictjson.Number:
		number(v, t.Text)
	}
	return v
}

// number reads a literal as Python does: an integer unless it has a fraction or an exponent.
func number(v *pyvalue.Value, literal string) {
	v.Written = literal
	if n, ok := new(big.Int).SetString(literal, 10); ok {
		v.Kind, v.Int = pyvalue.Int, n
		return
	}
	v.Kind = pyvalue.Float
	v.Float, _ = strconv.ParseFloat(literal, 64) // beyond the range it is an infinity, as in Python
}

// tolerate files a fault that need not end the reading.
func (l *loader) tolerate(f *strictjson.Fault) bool {
	if f.Kind != strictjson.Folded { // keys of documents read as maps may differ in case alone
		l.file(f)
	}
	return true
}

// file adds a fault under its rule.
func (l *loader) file(f *strictjson.Fault) {
	id := l.opt.Rules.of(f.Kind)
	if l.listed[id]++; l.listed[id] <= maxListed {
		l.report.Add(rule.Violation{
			Rule: id, Field: f.Path, Pointer: f.Pointer, File: l.opt.File, Line: f.Line, Column: f.Column, Message: f.Message,
		})
	}
}

// of is the rule of a kind of fault.
func (r Rules) of(k strictjson.Kind) rule.ID {
	switch k {
	case strictjson.Encoding:
		return r.Encoding
	case strictjson.TooDeep, strictjson.TooLong:
		return r.Limit
	case strictjson.Duplicate, strictjson.Folded:
		return r.Duplicate
	case strictjson.Constant:
		return r.Constant
	case strictjson.Range:
		return r.Number
	case strictjson.Surrogate, strictjson.Control:
		return r.String
	}
	return r.Syntax
}

func (l *loader) add(id rule.ID, line, column int, format string, args ...any) {
	l.report.Add(rule.Violation{
		Rule: id, File: l.opt.File, Line: line, Column: column, Message: fmt.Sprintf(format, args...),
	})
}
