// Package strictjson reads JSON text token by token and says where every fault lies.
//
// Several readers of one document must see one value, so by default the package refuses what two readers could
// take in two ways: a key that an object names twice, keys that differ only in case (encoding/json takes one for
// the other), a byte-order mark, bytes that are no UTF-8, surrogates without their partner, control characters in
// a text, NaN and infinities, numbers beyond the range of a double, nesting beyond a limit, and anything after the
// document. A caller may tolerate some of these (Options.Tolerate); then the reader goes on as Python's json does,
// except that every member of an object is reported, the repeated ones too.
//
// The grammar is RFC 8259. Time is linear in the input; memory beyond the input is one key set for each open object.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kind classes faults.
type Kind uint8

// The kinds of faults. The first four end the reading whatever the options say; the others are met only by readers
// that are stricter than Python's.
const (
	Syntax    Kind = iota // no JSON text: RFC 8259 does not allow it here; also anything after the document
	Encoding              // a byte-order mark, or bytes that are no UTF-8
	TooDeep               // nesting beyond MaxDepth
	TooLong               // an integer of more digits than MaxDigits
	Duplicate             // an object names a key twice
	Folded                // keys of one object are equal but for case
	Constant              // NaN, Infinity or -Infinity
	Range                 // a number with a fraction or exponent that no double holds
	Surrogate             // an escaped surrogate without its partner
	Control               // an escaped C0 control character other than tab, line feed and carriage return
)

var kindNames = [...]string{"syntax", "encoding", "depth", "digits", "duplicate key", "keys equal but for case", "constant", "range", "surrogate", "control character"}

// String names the kind in messages.
func (k Kind) String() string { return kindNames[k] }

// Fatal reports whether reading ends at a fault of this kind.
func (k Kind) Fatal() bool { return k < Duplicate }

// Fault is one breach of strict JSON. Line and Column are 1-based, the column in characters.
type Fault struct {
	Kind         Kind
	Offset       int // bytes before the fault
	Line, Column int
	Path         string // the member at fault, such as layers[0].size; "" for the document
	Pointer      string // the same as RFC 6901 writes it; "" for the document, and where it would be very long
	Message      string // what was found and what was expected, outside text escaped
}

// Error is the fault on one line.
func (f *Fault) Error() string {
	if f.Path == "" {
		return fmt.Sprintf("line %d column %d: %s", f.Line, f.Column, f.Message)
	}
	return fmt.Sprintf("line %d column %d: %s: %s", f.Line, f.Column, f.Path, f.Message)
}

// Limits that hold when Options names none.
const (
	DefaultMaxDepth  = 64
	DefaultMaxDigits = 4300 // Python's limit for the conversion of text to an integer
)

// Options say how strict to be. The zero Options are the strictest.
type Options struct {
	MaxDepth  int // nesting of arrays and objects; 0 is DefaultMaxDepth
	MaxDigits int // digits of an integer; 0 is DefaultMaxDigits
	// Tolerate is asked about every fault that is not fatal; true goes on reading. Nil tolerates nothing. From the thousandth
	// fault of a kind on, Path, Pointer and Message are empty.
	Tolerate func(*Fault) bool
	// FreeKeys names members, such as annotations, whose objects have keys that are data: there, and below
	// there, keys that differ only in case are two keys.
	FreeKeys []string
}

// Scan reads src to its end and returns the first fault, a *Fault, that opt does not tolerate.
func Scan(src []byte, opt Options) error {
	r := NewReader(src, opt)
	for {
		if _, err := r.Next(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// Decode reads one document of at most max bytes into a value that encoding/json fills. Beyond what Scan refuses, a key that
// the value has no field for is an error.
func Decode(src []byte, max int, opt Options, into any) error {
	if len(src) > max {
		return fmt.Errorf("%d bytes, at most %d allowed", len(src), max)
	}
	if err := Scan(src, opt); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

// Type is the type of a token.
type Type uint8

// The types of tokens.
const (
	BeginObject Type = iota
	EndObject
	BeginArray
	EndArray
	Key    // a member's name; its value is the next token
	String // Text is the decoded text
	Number // Text is the literal as written, NaN and infinities too
	True
	False
	Null
)

// Token is one piece of a document. Line and Column say where it begins.
type Token struct {
	Type         Type
	Text         string // Key, String: the decoded text, lone surrogates in WTF-8. Number: the literal
	Offset       int
	Line, Column int
}
