// Package wtf8 reads and writes texts that may hold surrogates, as Python's and JavaScript's do: WTF-8 is UTF-8 in
// which a surrogate takes the three bytes that UTF-8's scheme gives it. A text without surrogates is plain UTF-8, so
// utf8.ValidString tells whether a text has any. Comparing two such texts by bytes compares them by code points.
package wtf8

import "unicode/utf8"

// IsSurrogate reports whether r is one half of a UTF-16 pair.
func IsSurrogate(r rune) bool { return r >= 0xD800 && r <= 0xDFFF }

// AppendRune appends r, which may be a surrogate. Two halves in a row are not joined.
func AppendRune(b []byte, r rune) []byte {
	if IsSurrogate(r) {
		return append(b, 0xED, 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(b, r)
}

// DecodeRune is utf8.DecodeRuneInString that also knows surrogates. Bytes that are neither are U+FFFD, one at a time.
func DecodeRune(s string) (r rune, width int) {
	r, width = utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && width == 1 && len(s) >= 3 && s[0] == 0xED && s[1]&0xE0 == 0xA0 && s[2]&0xC0 == 0x80 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return r, width
}
