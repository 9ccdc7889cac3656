package pyvalue

import (
	"math"
	"math/big"
	"strings"
	"unicode"
)

// ParseInt is Python's int(v): texts are read, floats cut, truth values are 0 and 1; not ok where it would raise.
func ParseInt(v *Value) (*big.Int, bool) {
	if v == nil {
		return nil, false
	}
	switch v.Kind {
	case Int:
		return v.Int, true
	case Bool:
		if v.Bool {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	case Float:
		if math.IsNaN(v.Float) || math.IsInf(v.Float, 0) {
			return nil, false
		}
		n, _ := big.NewFloat(v.Float).Int(nil)
		return n, true
	case Str, Bytes:
		return intText(v.Text)
	}
	return nil, false
}

// maxIntDigits is how many digits Python's int() reads.
const maxIntDigits = 4300

// intText reads a decimal integer as int() does: white space around it, a sign, digits of any script, single "_"
// between digits.
func intText(s string) (*big.Int, bool) {
	s = Strip(s)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	var digits strings.Builder
	underscore := true // one may not stand first
	for _, r := range s {
		if r == '_' && !underscore {
			underscore = true
			continue
		}
		d, ok := digitValue(r)
		if !ok {
			return nil, false
		}
		digits.WriteByte(d)
		underscore = false
	}
	if underscore || digits.Len() > maxIntDigits {
		return nil, false
	}
	return new(big.Int).SetString(strings.TrimPrefix(sign, "+")+digits.String(), 10)
}

// digitValue is the ASCII digit of a decimal digit of any script. The digits of a script stand together, from 0 to 9.
func digitValue(r rune) (byte, bool) {
	if r >= '0' && r <= '9' {
		return byte(r), true
	}
	if !unicode.Is(unicode.Nd, r) {
		return 0, false
	}
	n := 0
	for unicode.Is(unicode.Nd, r-1) {
		r--
		n++
	}
	return '0' + byte(n%10), true
}
