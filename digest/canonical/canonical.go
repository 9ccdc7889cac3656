// Package canonical writes documents in the one form that a digest is taken of.
//
//   - Python: what Python's json.dumps(v, sort_keys=True, separators=(",", ":"), ensure_ascii=False) writes, in
//     UTF-8. A recipe's manifest digest is the digest of these bytes (packs.md 5.2).
//   - ASCII: the same with every character beyond printable ASCII escaped, as json.dumps does by default. The
//     catalogue digest is the digest of these bytes (recipes-and-locks.md 3).
//   - Form: the two, with indentation or without NaN and infinities, for the documents that want them so.
//   - JCS: RFC 8785, for documents of our own.
//
// Python's forms keep what JSON alone does not: 1 and 1.0 differ, integers have any size, and keys are sorted as the
// values they are before they become texts, so that 9 stands before 10. What json.dumps can't write is an *Error that
// says why and where.
package canonical

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/gatehouse-registry/gatehouse/digest/wtf8"
)

// Object is a map with its pairs in the order in which they were written. A key is a string, a *big.Int, a float64, a
// bool or nil.
type Object []Member

// Member is a key of an Object and its value.
type Member struct{ Key, Value any }

// Opaque is a value that no form of JSON holds; it says what Python calls its type.
type Opaque string

// Source is a value of another model. CanonicalJSON returns nil, a bool, a *big.Int, a float64, a string in UTF-8 or
// WTF-8, a []any, an Object, or an Opaque; the parts of a collection may be Sources again.
type Source interface{ CanonicalJSON() any }

// Reason classes what can't be written.
type Reason uint8

// The reasons.
const (
	Unserializable Reason = iota // a date, bytes, a set: JSON has no such value
	Keys                         // the keys of a map can't be sorted, or one of them can't be a key
	Surrogate                    // a lone surrogate in a form that is UTF-8
	NotFinite                    // NaN or an infinity in a form without them
	Digits                       // an integer of more digits than Python writes
	TooDeep                      // nesting beyond MaxDepth, or a cycle
	TooLarge                     // a form of more than MaxBytes
	Input                        // JCS: the text is no strict JSON, or holds an integer that doubles can't tell apart
)

var reasons = [...]string{"not serializable", "keys", "surrogate", "not finite", "digits", "too deep", "too large", "input"}

// String names the reason.
func (r Reason) String() string { return reasons[r] }

// Error says why a value has no canonical form, and where in it.
type Error struct {
	Reason  Reason
	Path    string // such as runtime.versions.1.10 or plugins[0]; "" for the whole
	Message string
	Err     error // what lies below, if anything
}

// Error is the error on one line.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Unwrap gives what lies below.
func (e *Error) Unwrap() error { return e.Err }

// Limits of a canonical form.
const (
	MaxDepth  = 990      // levels of collections; Python crashes a little later
	MaxBytes  = 64 << 20 // of the form
	MaxDigits = 4300     // of an integer; Python writes no longer ones
)

// Form is a way of writing JSON that Python has. The zero Form is that of the recipe digest.
type Form struct {
	ASCII  bool // escape everything beyond printable ASCII
	Finite bool // refuse NaN and infinities, which are written bare otherwise
	Indent int  // blanks a level, each value on a line of its own and ": " after keys; 0 writes no white space
}

// Python is the form with all characters as they are.
func Python(v any) ([]byte, error) { return Form{}.Encode(v) }

// ASCII is the form with everything beyond printable ASCII escaped.
func ASCII(v any) ([]byte, error) { return Form{ASCII: true}.Encode(v) }

// Encode writes v, which is what a Source may return or a Source itself. The error is an *Error.
func (f Form) Encode(v any) ([]byte, error) {
	e := encoder{form: f}
	if err := e.value(v); err != nil {
		err.Path = e.pathText()
		return nil, err
	}
	return e.out.Bytes(), nil
}

type encoder struct {
	form Form
	out  bytes.Buffer
	path []step
}

// step is one level of the way to the value that is being written.
type step struct {
	key   any // of an object
	index int // of an array; -1 in an object
}

func fail(r Reason, format string, args ...any) *Error {
	return &Error{Reason: r, Message: fmt.Sprintf(format, args...)}
}

func (e *encoder) value(v any) *Error {
	if s, ok := v.(Source); ok {
		v = s.CanonicalJSON()
	}
	if e.out.Len() > MaxBytes {
		return fail(TooLarge, "the canonical form has more than %d bytes", MaxBytes)
	}
	switch v := v.(type) {
	case nil:
		e.out.WriteString("null")
	case bool:
		e.out.WriteString(strconv.FormatBool(v))
	case *big.Int:
		return e.integer(v)
	case float64:
		return e.float(v)
	case string:
		return e.text(v)
	case []any:
		return e.array(v)
	case Object:
		return e.object(v)
	case Opaque:
		return fail(Unserializable, "a %s is not JSON serializable", string(v))
	default:
		return fail(Unserializable, "a %T is not JSON serializable", v)
	}
	return nil
}

func (e *encoder) integer(v *big.Int) *Error {
	if v.BitLen() > 14_285 { // the bits of the largest integer of MaxDigits digits
		return fail(Digits, "an integer of more than %d digits", MaxDigits)
	}
	e.out.WriteString(v.String())
	return nil
}

func (e *encoder) float(v float64) *Error {
	if e.form.Finite && (math.IsNaN(v) || math.IsInf(v, 0)) {
		return fail(NotFinite, "%s is no JSON number", Float(v))
	}
	e.out.WriteString(Float(v))
	return nil
}

// Float is Python's text of a finite float: the shortest that reads back as f, with an exponent when that is below
// -4 or at least 16, else with a ".0" at least (packs.md 2). NaN and infinities are as json.dumps writes them.
func Float(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	mantissa, exp, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	n, _ := strconv.Atoi(exp)
	if n < -4 || n >= 16 {
		return fmt.Sprintf("%se%+03d", mantissa, n)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// short are the escapes of one letter.
var short = map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

func (e *encoder) text(s string) *Error {
	e.out.WriteByte('"')
	for i := 0; i < len(s); {
		if n := plain(s[i:]); n > 0 {
			e.out.WriteString(s[i : i+n])
			i += n
			continue
		}
		r, n := wtf8.DecodeRune(s[i:])
		esc := short[r]
		switch {
		case esc != "":
			e.out.WriteString(esc)
		case r < 0x20 || (e.form.ASCII && r > 0x7E):
			e.escape(r)
		case wtf8.IsSurrogate(r):
			return fail(Surrogate, "a text holds half of a surrogate pair, U+%04X", r)
		default:
			e.out.WriteString(s[i : i+n])
		}
		i += n
	}
	e.out.WriteByte('"')
	return nil
}

// plain counts the characters at the beginning of s that every form writes as they are.
func plain(s string) int {
	n := 0
	for n < len(s) && s[n] >= 0x20 && s[n] < 0x7F && s[n] != '"' && s[n] != '\\' {
		n++
	}
	return n
}

// escape writes r as one or two UTF-16 units.
func (e *encoder) escape(r rune) {
	if r > 0xFFFF {
		r -= 0x10000
		fmt.Fprintf(&e.out, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		return
	}
	fmt.Fprintf(&e.out, `\u%04x`, r)
}

// push goes one level down; pop comes back, unless an error stopped there.
func (e *encoder) push() *Error {
	if len(e.path) >= MaxDepth {
		return fail(TooDeep, "nested deeper than %d levels, or a value that holds itself", MaxDepth)
	}
	e.path = append(e.path, step{index: -1})
	return nil
}

func (e *encoder) pop() { e.path = e.path[:len(e.path)-1] }

// between writes what stands before the next entry of a collection: n is how many there were.
func (e *encoder) between(n int) {
	if n > 0 {
		e.out.WriteByte(',')
	}
	e.newline(len(e.path))
}

func (e *encoder) newline(level int) {
	if e.form.Indent > 0 {
		e.out.WriteByte('\n')
		e.out.WriteString(strings.Repeat(" ", level*e.form.Indent))
	}
}

func (e *encoder) array(items []any) *Error {
	if len(items) == 0 {
		e.out.WriteString("[]")
		return nil
	}
	e.out.WriteByte('[')
	if err := e.push(); err != nil {
		return err
	}
	for i, item := range items {
		e.path[len(e.path)-1].index = i
		e.between(i)
		if err := e.value(item); err != nil {
			return err
		}
	}
	e.pop()
	e.newline(len(e.path))
	e.out.WriteByte(']')
	return nil
}

func (e *encoder) object(o Object) *Error {
	if len(o) == 0 {
		e.out.WriteString("{}")
		return nil
	}
	members, err := sorted(o)
	if err != nil {
		return err
	}
	e.out.WriteByte('{')
	if err := e.push(); err != nil {
		return err
	}
	for i, m := range members {
		e.path[len(e.path)-1].key = m.Key
		e.between(i)
		if err := e.key(m.Key); err != nil {
			return err
		}
		e.out.WriteByte(':')
		if e.form.Indent > 0 {
			e.out.WriteByte(' ')
		}
		if err := e.value(m.Value); err != nil {
			return err
		}
	}
	e.pop()
	e.newline(len(e.path))
	e.out.WriteByte('}')
	return nil
}

// key writes a key as the text that json.dumps makes of it.
func (e *encoder) key(k any) *Error {
	switch k := k.(type) {
	case string:
		return e.text(k)
	default:
		e.out.WriteByte('"')
		if err := e.value(k); err != nil {
			return err
		}
		e.out.WriteByte('"')
		return nil
	}
}

// pathText is where the encoder stands; it is cut where it gets long.
func (e *encoder) pathText() string {
	var b strings.Builder
	for _, s := range e.path {
		switch {
		case b.Len() > 400:
			return b.String() + "..."
		case s.index >= 0:
			fmt.Fprintf(&b, "[%d]", s.index)
		case s.key == nil:
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(keyText(s.key))
		}
	}
	return b.String()
}

// keyText is a key as paths and messages show it.
func keyText(k any) string {
	switch k := k.(type) {
	case nil:
		return "null"
	case string:
		if len(k) <= 60 && k != "" && !strings.ContainsFunc(k, func(r rune) bool { return r <= ' ' || r > 0x7E || r == '.' }) {
			return k
		}
		return fmt.Sprintf("%.60q", k)
	case *big.Int:
		return fmt.Sprintf("%.60s", k.String())
	case float64:
		return Float(k)
	}
	return fmt.Sprint(k)
}
