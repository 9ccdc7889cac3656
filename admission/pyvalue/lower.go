package pyvalue

import (
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Lower is Python's str.lower(): Unicode's full mapping, so İ becomes two characters and a final Σ becomes ς.
func Lower(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return cases.Lower(language.Und).String(s)
		}
	}
	return lowerASCII(s)
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
