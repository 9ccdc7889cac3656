package strictjson

import (
	"strings"
	"unicode/utf16"

	"github.com/gatehouse-registry/gatehouse/digest/wtf8"
)

// text reads the string at pos and returns what it stands for.
func (r *Reader) text() (string, error) {
	start := r.pos + 1
	p := start
	for p < len(r.src) && r.src[p] != '"' && r.src[p] != '\\' && r.src[p] >= 0x20 {
		p++
	}
	if p < len(r.src) && r.src[p] == '"' {
		r.pos = p + 1
		return string(r.src[start:p]), nil
	}
	var b strings.Builder
	b.Write(r.src[start:p])
	for p < len(r.src) {
		switch c := r.src[p]; {
		case c == '"':
			r.pos = p + 1
			return b.String(), nil
		case c == '\\':
			next, err := r.escape(&b, p)
			if err != nil {
				return "", err
			}
			p = next
		case c < 0x20:
			return "", r.fault(Syntax, p, "found the control character %#02x unescaped in a text, expected none", c)
		default:
			b.WriteByte(c)
			p++
		}
	}
	return "", r.fault(Syntax, r.pos, "the text that begins here has no closing quote")
}

const shortEscapes = "\"\"\\\\//b\bf\fn\nr\rt\t"

// escape writes what the escape at p stands for and returns the offset after it.
func (r *Reader) escape(b *strings.Builder, p int) (int, error) {
	if p+1 >= len(r.src) {
		return 0, r.fault(Syntax, p, "the text ends inside an escape")
	}
	c := r.src[p+1]
	if c != 'u' {
		for i := 0; i < len(shortEscapes); i += 2 {
			if shortEscapes[i] == c {
				if c == 'b' || c == 'f' {
					if err := r.control(p, rune(shortEscapes[i+1])); err != nil {
						return 0, err
					}
				}
				b.WriteByte(shortEscapes[i+1])
				return p + 2, nil
			}
		}
		return 0, r.fault(Syntax, p, "an escape JSON does not have; it has \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u with four hex digits")
	}
	unit, ok := r.hex4(p + 2)
	if !ok {
		return 0, r.fault(Syntax, p, "\\u is not followed by four hex digits")
	}
	end := p + 6
	if utf16.IsSurrogate(unit) {
		if low, ok := r.lowAfter(end); ok && unit < 0xDC00 {
			b.WriteRune(utf16.DecodeRune(unit, low))
			return end + 6, nil
		}
		if err := r.tolerate(Surrogate, p, "found \\u%04x, half of a surrogate pair, expected the other half beside it", unit); err != nil {
			return 0, err
		}
		b.Write(wtf8.AppendRune(nil, unit))
		return end, nil
	}
	if err := r.control(p, unit); err != nil {
		return 0, err
	}
	b.WriteRune(unit)
	return end, nil
}

// control reports an escaped control character other than tab and the line ends.
func (r *Reader) control(at int, c rune) error {
	if c >= 0x20 || c == '\t' || c == '\n' || c == '\r' {
		return nil
	}
	return r.tolerate(Control, at, "found the control character U+%04X in a text, expected none", c)
}

// lowAfter reads a low surrogate's escape at p.
func (r *Reader) lowAfter(p int) (rune, bool) {
	if p+1 >= len(r.src) || r.src[p] != '\\' || r.src[p+1] != 'u' {
		return 0, false
	}
	low, ok := r.hex4(p + 2)
	return low, ok && low >= 0xDC00 && low <= 0xDFFF
}

func (r *Reader) hex4(p int) (rune, bool) {
	if p+4 > len(r.src) {
		return 0, false
	}
	var v rune
	for _, c := range r.src[p : p+4] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
