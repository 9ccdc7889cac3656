package strictjson

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Reader hands out the tokens of one document. It is not safe for concurrent use.
type Reader struct {
	src    []byte
	opt    Options
	pos    int
	line   int // 1-based line of pos
	col    int // characters before colAt on its line
	colAt  int // offset up to which col has been counted
	stack  []frame
	state  state
	faults [len(kindNames)]int // by kind, so far
	last   mark                // where the last fault was
	err    error
}

// frame is one open array or object.
type frame struct {
	object bool
	free   bool   // keys are data: no look-alike check
	count  int    // values read so far
	key    string // the member being read
	names  names
	keys   map[string]bool // keys that differ from the first of their fold
}

// mark is an offset with the number of characters before it on its line.
type mark struct{ at, col int }

type state uint8

const (
	wantValue  state = iota
	wantFirst        // after [ or {: a value, a key or the end
	wantMember       // after a comma in an object
	wantColon
	wantComma // after a value inside a collection: a comma or the end
	wantEnd   // after the document
)

// NewReader reads src. The bytes must not change while it is in use.
func NewReader(src []byte, opt Options) *Reader {
	if opt.MaxDepth == 0 {
		opt.MaxDepth = DefaultMaxDepth
	}
	if opt.MaxDigits == 0 {
		opt.MaxDigits = DefaultMaxDigits
	}
	r := &Reader{src: src, opt: opt, line: 1}
	r.err = r.checkEncoding()
	return r
}

// Next returns the next token, io.EOF after the whole document, or a *Fault. After an error it returns that error
// again.
func (r *Reader) Next() (Token, error) {
	if r.err != nil {
		return Token{}, r.err
	}
	t, err := r.next()
	if err != nil {
		r.err = err
	}
	return t, err
}

func (r *Reader) next() (Token, error) {
	for {
		r.skipSpace()
		if r.pos == len(r.src) {
			if r.state == wantEnd {
				return Token{}, io.EOF
			}
			return Token{}, r.fault(Syntax, r.pos, "found the end of the text, expected %s", r.expected())
		}
		c := r.src[r.pos]
		switch r.state {
		case wantEnd:
			return Token{}, r.fault(Syntax, r.pos, "found %s after the end of the document, expected nothing more", r.show())
		case wantColon:
			if c != ':' {
				return Token{}, r.unexpected()
			}
			r.pos++
			r.state = wantValue
		case wantComma:
			if c == ',' {
				r.pos++
				r.state = wantValue
				if r.top().object {
					r.state = wantMember
					r.top().key = ""
				}
				continue
			}
			return r.end(c)
		case wantMember:
			return r.key()
		case wantFirst:
			if c == ']' || c == '}' {
				return r.end(c)
			}
			if r.top().object {
				return r.key()
			}
			return r.value(c)
		default:
			return r.value(c)
		}
	}
}

var words = []struct {
	text string
	typ  Type
}{{"true", True}, {"false", False}, {"null", Null}}

func (r *Reader) top() *frame { return &r.stack[len(r.stack)-1] }

// value reads the token at pos, which begins a value.
func (r *Reader) value(c byte) (Token, error) {
	t := r.token()
	switch {
	case c == '{':
		return r.open(t, BeginObject)
	case c == '[':
		return r.open(t, BeginArray)
	case c == '"':
		text, err := r.text()
		t.Type, t.Text = String, text
		return r.closeValue(t, err)
	case c == '-' || (c >= '0' && c <= '9') || c == 'N' || c == 'I':
		text, err := r.number()
		t.Type, t.Text = Number, text
		return r.closeValue(t, err)
	}
	for _, w := range words {
		if bytes.HasPrefix(r.src[r.pos:], []byte(w.text)) {
			t.Type = w.typ
			r.pos += len(w.text)
			return r.closeValue(t, nil)
		}
	}
	return Token{}, r.unexpected()
}

func (r *Reader) closeValue(t Token, err error) (Token, error) {
	if err != nil {
		return Token{}, err
	}
	r.closed()
	return t, nil
}

// closed notes that a value is complete.
func (r *Reader) closed() {
	if len(r.stack) == 0 {
		r.state = wantEnd
		return
	}
	r.top().count++
	r.state = wantComma
}

func (r *Reader) open(t Token, typ Type) (Token, error) {
	if len(r.stack) >= r.opt.MaxDepth {
		return Token{}, r.fault(TooDeep, r.pos, "nested deeper than %d levels", r.opt.MaxDepth)
	}
	free := len(r.stack) > 0 && (r.top().free || (r.top().object && slices.Contains(r.opt.FreeKeys, r.top().key)))
	f := frame{object: typ == BeginObject, free: free}
	if n := len(r.stack); n < cap(r.stack) {
		f.names.few = r.stack[:n+1][n].names.few[:0] // of an object that was read
	}
	r.stack = append(r.stack, f)
	r.pos++
	r.state = wantFirst
	t.Type = typ
	return t, nil
}

// end reads ] or }.
func (r *Reader) end(c byte) (Token, error) {
	t := r.token()
	object := r.top().object
	switch {
	case c == '}' && object:
		t.Type = EndObject
	case c == ']' && !object:
		t.Type = EndArray
	default:
		return Token{}, r.unexpected()
	}
	r.pos++
	r.stack = r.stack[:len(r.stack)-1]
	r.closed()
	return t, nil
}

// key reads a member's name.
func (r *Reader) key() (Token, error) {
	if r.src[r.pos] != '"' {
		return Token{}, r.unexpected()
	}
	t := r.token()
	text, err := r.text()
	if err != nil {
		return Token{}, err
	}
	t.Type, t.Text = Key, text
	r.top().key = text
	if err := r.checkKey(t); err != nil {
		return Token{}, err
	}
	r.state = wantColon
	return t, nil
}

// checkKey compares a name with those that its object has had.
func (r *Reader) checkKey(t Token) error {
	f := r.top()
	first, taken := f.names.add(foldKey(t.Text), t.Text)
	switch {
	case !taken:
		return nil
	case first == t.Text || f.keys[t.Text]:
		return r.tolerate(Duplicate, t.Offset, "found the key %.100q twice, expected it once in this object", t.Text)
	}
	if f.keys == nil {
		f.keys = make(map[string]bool)
	}
	f.keys[t.Text] = true
	if f.free {
		return nil
	}
	return r.tolerate(Folded, t.Offset, "the keys %.100q and %.100q differ only in case", first, t.Text)
}

func (r *Reader) skipSpace() {
	for r.pos < len(r.src) {
		switch r.src[r.pos] {
		case '\n':
			r.line++
			r.col, r.colAt = 0, r.pos+1
		case ' ', '\t', '\r':
		default:
			return
		}
		r.pos++
	}
}

// token is an empty token at pos.
func (r *Reader) token() Token {
	r.col += utf8.RuneCount(r.src[r.colAt:r.pos])
	r.colAt = r.pos
	return Token{Offset: r.pos, Line: r.line, Column: r.col + 1}
}

// expected says what the state allows, for messages.
func (r *Reader) expected() string {
	switch r.state {
	case wantColon:
		return "':'"
	case wantMember:
		return "a key in double quotes after the comma"
	case wantEnd:
		return "nothing more"
	case wantFirst, wantComma:
		end := "']'"
		if r.top().object {
			end = "'}'"
		}
		if r.state == wantComma {
			return "',' or " + end
		}
		if r.top().object {
			return "a key in double quotes or " + end
		}
		return "a value or " + end
	}
	return "a value"
}

func (r *Reader) unexpected() error {
	remark := ""
	if c := r.src[min(r.pos, len(r.src)-1)]; c == '/' || c == '#' {
		remark = "; JSON has no comments"
	}
	return r.fault(Syntax, r.pos, "found %s, expected %s%s", r.show(), r.expected(), remark)
}

// show is the character at pos, escaped, for messages.
func (r *Reader) show() string {
	if r.pos >= len(r.src) {
		return "the end of the text"
	}
	c, _ := utf8.DecodeRune(r.src[r.pos:])
	return strconv.QuoteRuneToASCII(c)
}

// checkEncoding looks for a byte-order mark and for bytes that are no UTF-8.
func (r *Reader) checkEncoding() error {
	if bytes.HasPrefix(r.src, []byte("\uFEFF")) {
		return r.fault(Encoding, 0, "the text begins with a byte-order mark")
	}
	if utf8.Valid(r.src) {
		return nil
	}
	for i := 0; i < len(r.src); {
		c, n := utf8.DecodeRune(r.src[i:])
		if c == utf8.RuneError && n == 1 {
			line, col := position(r.src, i)
			return &Fault{Kind: Encoding, Offset: i, Line: line, Column: col + 1, Message: fmt.Sprintf("the byte %#02x is no UTF-8", r.src[i])}
		}
		i += n
	}
	return nil
}

// position is the 1-based line and the number of characters before the offset on that line.
func position(src []byte, at int) (line, col int) {
	before := src[:at]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[start:])
}
