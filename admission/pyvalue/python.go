package pyvalue

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/digest/canonical"
	"github.com/gatehouse-registry/gatehouse/digest/wtf8"
)

// Truthy is Python's bool(v). A nil value is None.
func (v *Value) Truthy() bool {
	if v == nil {
		return false
	}
	switch v.Kind {
	case Bool:
		return v.Bool
	case Int:
		return v.Int.Sign() != 0
	case Float:
		return v.Float != 0
	case Str, Bytes:
		return v.Text != ""
	case List, Set, Tuple:
		return len(v.List) > 0
	case Map:
		return len(v.Items) > 0
	case Date, DateTime:
		return true
	}
	return false
}

// TypeName is Python's name of the value's type.
func (v *Value) TypeName() string {
	if v == nil {
		return "NoneType"
	}
	return [...]string{"NoneType", "bool", "int", "float", "str", "date", "datetime", "bytes", "list", "dict", "set", "tuple"}[v.Kind]
}

// PyStr is Python's str(v).
func (v *Value) PyStr() string {
	if v != nil && (v.Kind == Str || v.Kind == Date || v.Kind == DateTime) {
		return v.Text
	}
	return v.PyRepr()
}

// TextOf is the clients' reading of a text field: str(v or ""), then strip (packs.md 2).
func (v *Value) TextOf() string {
	if !v.Truthy() {
		return ""
	}
	return Strip(v.PyStr())
}

// maxRepr bounds how much of a collection PyRepr writes, and with it how deep it goes.
const maxRepr = 64 << 10

// PyRepr is Python's repr(v). A collection whose text is longer than 64 KiB is cut there, with "...".
func (v *Value) PyRepr() string {
	var b strings.Builder
	v.repr(&b)
	return b.String()
}

func (v *Value) repr(b *strings.Builder) {
	if b.Len() > maxRepr {
		b.WriteString("...")
		return
	}
	if v == nil {
		b.WriteString("None")
		return
	}
	switch v.Kind {
	case None:
		b.WriteString("None")
	case Bool:
		if v.Bool {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case Int:
		b.WriteString(v.Int.String())
	case Float:
		b.WriteString(FloatText(v.Float))
	case Str:
		b.WriteString(Quote(v.Text))
	case Bytes:
		b.WriteString("b" + quoteBytes(v.Text))
	case Date, DateTime:
		b.WriteString(dateRepr(v))
	case List:
		reprList(b, "[", "]", v.List)
	case Set:
		if len(v.List) == 0 {
			b.WriteString("set()")
			return
		}
		reprList(b, "{", "}", v.List)
	case Tuple:
		end := ")"
		if len(v.List) == 1 {
			end = ",)"
		}
		reprList(b, "(", end, v.List)
	case Map:
		b.WriteByte('{')
		for i, it := range v.Items {
			if b.Len() > maxRepr {
				b.WriteString("...")
				break
			}
			if i > 0 {
				b.WriteString(", ")
			}
			it.Key.repr(b)
			b.WriteString(": ")
			it.Value.repr(b)
		}
		b.WriteByte('}')
	}
}

func reprList(b *strings.Builder, open, end string, items []*Value) {
	b.WriteString(open)
	for i, it := range items {
		if b.Len() > maxRepr {
			b.WriteString("...")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		it.repr(b)
	}
	b.WriteString(end)
}

// FloatText is Python's repr of a float (packs.md 2).
func FloatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return canonical.Float(f)
}

// IsSpace reports whether Python's str.strip removes r: Unicode White_Space and U+001C to U+001F.
func IsSpace(r rune) bool {
	return unicode.Is(unicode.White_Space, r) || (r >= 0x1C && r <= 0x1F)
}

// Strip is Python's str.strip().
func Strip(s string) string { return strings.TrimFunc(s, IsSpace) }

// Quote is Python's repr of a text.
func Quote(s string) string {
	q := rune('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	var b strings.Builder
	b.WriteRune(q)
	for i := 0; i < len(s); {
		r, n := wtf8.DecodeRune(s[i:])
		i += n
		switch {
		case r == q || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case printable(r):
			b.WriteRune(r)
		case r < 0x100:
			b.WriteString(`\x` + hexPad(r, 2))
		case r < 0x10000:
			b.WriteString(`\u` + hexPad(r, 4))
		default:
			b.WriteString(`\U` + hexPad(r, 8))
		}
	}
	b.WriteRune(q)
	return b.String()
}

// printable is Python's str.isprintable of one character.
func printable(r rune) bool {
	return unicode.IsPrint(r)
}

func hexPad(r rune, n int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", max(0, n-len(s))) + s
}

func quoteBytes(s string) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	var b strings.Builder
	b.WriteByte(q)
	for i := range len(s) {
		switch c := s[i]; {
		case c == q || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20 || c >= 0x7F:
			b.WriteString(`\x` + hexPad(rune(c), 2))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte(q)
	return b.String()
}
