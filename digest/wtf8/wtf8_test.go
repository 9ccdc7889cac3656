package wtf8

import (
	"testing"
	"unicode/utf8"
)

func TestRoundTrip(t *testing.T) {
	last := ""
	for r := range rune(0x110000) {
		text := string(AppendRune(nil, r))
		got, n := DecodeRune(text + "x")
		if got != r || n != len(text) {
			t.Fatalf("U+%04X: got U+%04X of %d bytes", r, got, n)
		}
		if utf8.ValidString(text) == IsSurrogate(r) {
			t.Fatalf("U+%04X: valid UTF-8 is %v", r, utf8.ValidString(text))
		}
		if text <= last {
			t.Fatalf("U+%04X does not sort by code point", r)
		}
		last = text
	}
}

func TestDecodeNonsense(t *testing.T) {
	for _, s := range []string{"\xff", "\xed\xa0", "\xed\xa0x", "\xed", "\xc0\xaf", "\xed\xc0\x80"} {
		if r, n := DecodeRune(s); r != utf8.RuneError || n != 1 {
			t.Errorf("%q: U+%04X of %d bytes", s, r, n)
		}
	}
}
