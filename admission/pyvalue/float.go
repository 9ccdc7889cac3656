package pyvalue

import (
	"strconv"
	"strings"
)

// ParseFloat is Python's float() of a text: decimal notation with digits of any script and single underscores between them,
// white space around it, or a word for infinity or NaN. A number out of range is infinite, as there; not ok where float()
// would raise.
func ParseFloat(s string) (float64, bool) {
	s = Strip(s)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	switch strings.ToLower(s) {
	case "inf", "infinity", "nan":
		f, err := strconv.ParseFloat(strings.TrimPrefix(sign, "+")+s, 64)
		if err != nil { // "-nan" is Go's no number
			f, _ = strconv.ParseFloat(s, 64)
		}
		return f, true
	}
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		expSign := ""
		if mantissa, exponent = s[:i], s[i+1:]; exponent != "" && (exponent[0] == '-' || exponent[0] == '+') {
			expSign, exponent = exponent[:1], exponent[1:]
		}
		digits, ok := digitRun(exponent)
		if !ok {
			return 0, false
		}
		exponent = "e" + expSign + digits
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	wholeDigits, wholeOK := digitRun(whole)
	fractionDigits, fractionOK := digitRun(fraction)
	if whole == "" && fraction == "" || whole != "" && !wholeOK || fraction != "" && !fractionOK {
		return 0, false
	}
	// Beyond the range the value is infinity or zero all the same, and the error says no more.
	f, _ := strconv.ParseFloat(sign+"0"+wholeDigits+"."+fractionDigits+"0"+exponent, 64)
	return f, true
}

// digitRun is a run of decimal digits in ASCII. Single underscores may stand between two of them.
func digitRun(s string) (string, bool) {
	var digits strings.Builder
	underscore := true // one may not stand first
	for _, r := range s {
		if r == '_' && !underscore {
			underscore = true
			continue
		}
		d, ok := digitValue(r)
		if !ok {
			return "", false
		}
		digits.WriteByte(d)
		underscore = false
	}
	return digits.String(), !underscore
}
