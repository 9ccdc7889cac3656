package pyvalue

import (
	"unicode/utf8"
)

// AppendRune appends r to a text in WTF-8: a surrogate becomes three bytes, anything else is as in UTF-8.
func AppendRune(b []byte, r rune) []byte {
	if r >= 0xD800 && r <= 0xDFFF {
		return append(b, 0xED, 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(b, r)
}

// DecodeRune is utf8.DecodeRuneInString for WTF-8: it also returns surrogates, with a width of three.
func DecodeRune(s string) (r rune, width int) {
	r, width = utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && width == 1 && len(s) >= 3 && s[0] == 0xED && s[1]&0xE0 == 0xA0 && s[2]&0xC0 == 0x80 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return r, width
}
