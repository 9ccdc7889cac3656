package strictjson

import (
	"bytes"
	"math"
	"strconv"
)

// number reads a number, or one of Python's constants.
func (r *Reader) number() (string, error) {
	start := r.pos
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(r.src[start:], []byte(word)) {
			if err := r.tolerate(Constant, start, "found %s, expected a JSON number", word); err != nil {
				return "", err
			}
			r.pos += len(word)
			return word, nil
		}
	}
	p := start
	if r.src[p] == '-' {
		p++
	}
	digits := r.digits(p)
	if digits == p {
		r.pos = p
		return "", r.unexpected()
	}
	if r.src[p] == '0' {
		digits = p + 1
	}
	end := r.fraction(digits)
	literal := string(r.src[start:end])
	if end == digits && digits-p > r.opt.MaxDigits {
		return "", r.fault(TooLong, start, "found an integer of %d digits, expected at most %d", digits-p, r.opt.MaxDigits)
	}
	if end > digits {
		if v, _ := strconv.ParseFloat(literal, 64); math.IsInf(v, 0) {
			if err := r.tolerate(Range, start, "found the number %.60s, expected one within the range of a double", literal); err != nil {
				return "", err
			}
		}
	}
	r.pos = end
	return literal, nil
}

// fraction returns the end of the fraction and exponent that begin at p, or p.
func (r *Reader) fraction(p int) int {
	if p < len(r.src) && r.src[p] == '.' {
		if end := r.digits(p + 1); end > p+1 {
			p = end
		}
	}
	if p < len(r.src) && (r.src[p] == 'e' || r.src[p] == 'E') {
		q := p + 1
		if q < len(r.src) && (r.src[q] == '+' || r.src[q] == '-') {
			q++
		}
		if end := r.digits(q); end > q {
			p = end
		}
	}
	return p
}

// digits returns the end of the digits that begin at p.
func (r *Reader) digits(p int) int {
	for p < len(r.src) && r.src[p] >= '0' && r.src[p] <= '9' {
		p++
	}
	return p
}
