package pyyaml

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

// maxDigits is how many decimal digits Python converts to an integer, and back.
const maxDigits = 4300

// maxBits is how many bits an integer of maxDigits digits has at most.
const maxBits = 14_285

// noValue is the fault of a scalar that has a type but no value of it; the clients' reader crashes there.
func (n *node) noValue(format string, args ...any) *fault {
	return newFault("yaml.value", n.start, format, args...)
}

// text is the text of a scalar node. A map that holds the key "=" stands for the value of that key.
func (n *node) text() (string, *fault) {
	if n.kind == scalarNode {
		return n.value, nil
	}
	for _, p := range n.pairs {
		if p.key.tag == tagValue {
			return p.value.text()
		}
	}
	return "", n.noValue("the tag %.60q is one of scalars; found %s", shortTag(n.tag), n.kind)
}

// scalarValue is what a node with a scalar's tag stands for. known is false for the tags of collections and for
// those that mean nothing.
func (n *node) scalarValue() (v *pyvalue.Value, known bool, err *fault) {
	read := map[string]func(*node, string, *pyvalue.Value) *fault{
		tagNull: (*node).readNull, tagBool: (*node).readBool, tagInt: (*node).readInt, tagFloat: (*node).readFloat,
		tagBinary: (*node).readBinary, tagTimestamp: (*node).readTimestamp, tagStr: (*node).readStr,
	}[n.tag]
	if read == nil {
		return nil, false, nil
	}
	text, err := n.text()
	if err != nil {
		return nil, true, err
	}
	v = n.newValue(pyvalue.None)
	v.Written = text
	return v, true, read(n, text, v)
}

// newValue is a value at the node's place.
func (n *node) newValue(kind pyvalue.Kind) *pyvalue.Value {
	return &pyvalue.Value{Kind: kind, Line: n.start.line + 1, Column: n.start.column + 1, Plain: n.plain}
}

func (n *node) readNull(string, *pyvalue.Value) *fault { return nil }

func (n *node) readStr(text string, v *pyvalue.Value) *fault {
	v.Kind, v.Text = pyvalue.Str, text
	return nil
}

func (n *node) readBool(text string, v *pyvalue.Value) *fault {
	v.Kind = pyvalue.Bool
	switch strings.ToLower(text) {
	case "yes", "true", "on":
		v.Bool = true
	case "no", "false", "off":
	default:
		return n.noValue("%.60q is no boolean", text)
	}
	return nil
}

// sign cuts the sign off a number from which the underscores are gone.
func sign(text string) (digits string, negative bool) {
	switch {
	case strings.HasPrefix(text, "-"):
		return text[1:], true
	case strings.HasPrefix(text, "+"):
		return text[1:], false
	}
	return text, false
}

func (n *node) readInt(text string, v *pyvalue.Value) *fault {
	digits, negative := sign(strings.ReplaceAll(text, "_", ""))
	i, ok := integer(digits)
	switch {
	case !ok:
		return n.noValue("%.60q is no integer of at most %d digits", text, maxDigits)
	case i.BitLen() > maxBits:
		return n.noValue("%.60q has more than %d digits", text, maxDigits)
	}
	if negative {
		i.Neg(i)
	}
	v.Kind, v.Int = pyvalue.Int, i
	return nil
}

// integer reads binary, hexadecimal, octal, sexagesimal and decimal integers without sign.
func integer(digits string) (*big.Int, bool) {
	switch {
	case digits == "":
		return nil, false
	case digits == "0":
		return new(big.Int), true
	case strings.HasPrefix(digits, "0b"):
		return pyInt(digits[2:], 2)
	case strings.HasPrefix(digits, "0x"):
		return pyInt(digits[2:], 16)
	case digits[0] == '0':
		return pyInt(digits, 8)
	case !strings.Contains(digits, ":"):
		return pyInt(digits, 10)
	}
	sum, base := new(big.Int), big.NewInt(1)
	parts := strings.Split(digits, ":")
	for i := len(parts) - 1; i >= 0; i-- {
		part, ok := pyInt(parts[i], 10)
		if !ok || base.BitLen() > maxBits {
			return nil, false
		}
		sum.Add(sum, part.Mul(part, base))
		base.Mul(base, big.NewInt(60))
	}
	return sum, true
}

// pyInt is Python's int(text, base): blanks around are cut, the digits of every script count, and a prefix that
// fits the base may stand before them.
func pyInt(text string, base int) (*big.Int, bool) {
	text, negative := sign(asciiDigits(text))
	prefix := map[int]string{2: "0b", 8: "0o", 16: "0x"}[base]
	if prefix != "" && len(text) > 2 && strings.EqualFold(text[:2], prefix) {
		text = text[2:]
	}
	if base == 10 && len(text) > maxDigits {
		return nil, false
	}
	if text == "" || strings.ContainsAny(text[:1], "+-") || strings.Contains(text, "_") {
		return nil, false
	}
	i, ok := new(big.Int).SetString(text, base)
	if ok && negative {
		i.Neg(i)
	}
	return i, ok
}

// asciiDigits cuts blanks off and turns the decimal digits of every script into ASCII, as Python does for numbers:
// in a text of ASCII alone the blanks are C's, otherwise Unicode's.
func asciiDigits(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0 {
		return strings.Trim(text, " \t\n\v\f\r")
	}
	return strings.Map(asciiDigit, pyvalue.Strip(text))
}

// asciiDigit relies on Unicode, which keeps the ten digits of a script together and in order.
func asciiDigit(r rune) rune {
	if r < 0x80 || !unicode.Is(unicode.Nd, r) {
		return r
	}
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return '0' + (r-rune(t.Lo))%10
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return '0' + (r-rune(t.Lo))%10
		}
	}
	return r
}

func (n *node) readFloat(text string, v *pyvalue.Value) *fault {
	digits, negative := sign(strings.ToLower(strings.ReplaceAll(text, "_", "")))
	f, ok := float(digits)
	if !ok {
		return n.noValue("%.60q is no number", text)
	}
	if negative {
		f = -f
	}
	v.Kind, v.Float = pyvalue.Float, f
	return nil
}

// float reads decimal and sexagesimal numbers, .inf and .nan, without sign.
func float(digits string) (float64, bool) {
	switch {
	case digits == ".inf":
		return math.Inf(1), true
	case digits == ".nan":
		return math.NaN(), true
	case !strings.Contains(digits, ":"):
		return pyFloat(digits)
	}
	sum, base := 0.0, big.NewInt(1)
	parts := strings.Split(digits, ":")
	for i := len(parts) - 1; i >= 0; i-- {
		part, ok := pyFloat(parts[i])
		scale, _ := new(big.Float).SetInt(base).Float64()
		if !ok || math.IsInf(scale, 0) {
			return 0, false
		}
		sum += part * scale
		base.Mul(base, big.NewInt(60))
	}
	return sum, true
}

var decimal = pattern.New(`^[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|inf|infinity|nan)$`)

// pyFloat is Python's float(text) of a text in lower case.
func pyFloat(text string) (float64, bool) {
	text = asciiDigits(text)
	if !decimal.MatchString(text) {
		return 0, false
	}
	f, _ := strconv.ParseFloat(text, 64) // beyond the range it is an infinity, as in Python
	return f, true
}

var timestamp = pattern.New(`^([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})` +
	`(?:(?:[Tt]|[ \t]+)([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]*))?` +
	`(?:[ \t]*(Z|([-+])([0-9]{1,2})(?::([0-9]{2}))?))?)?\n?$`)

func (n *node) readTimestamp(text string, v *pyvalue.Value) *fault {
	m := timestamp.FindStringSubmatch(n.value)
	if m == nil || n.kind != scalarNode {
		return n.noValue("%.60q is no date", text)
	}
	num := func(i int) int {
		x, _ := strconv.Atoi(m[i])
		return x
	}
	day := time.Date(num(1), time.Month(num(2)), num(3), 0, 0, 0, 0, time.UTC)
	if num(1) == 0 || day.Year() != num(1) || int(day.Month()) != num(2) || day.Day() != num(3) {
		return n.noValue("there is no date %s-%s-%s", m[1], m[2], m[3])
	}
	v.Kind, v.Text = pyvalue.Date, day.Format("2006-01-02")
	if m[4] == "" {
		return nil
	}
	offset := num(10)*60 + num(11)
	if num(4) > 23 || num(5) > 59 || num(6) > 59 || offset >= 24*60 {
		return n.noValue("there is no time %.40q", text)
	}
	v.Kind = pyvalue.DateTime
	v.Text += fmt.Sprintf(" %02d:%02d:%02d", num(4), num(5), num(6))
	if micro := (m[7] + "000000")[:6]; micro != "000000" {
		v.Text += "." + micro
	}
	if m[8] != "" {
		sign := m[9]
		if sign == "" || offset == 0 {
			sign = "+"
		}
		v.Text += fmt.Sprintf("%s%02d:%02d", sign, offset/60, offset%60)
	}
	return nil
}

func (n *node) readBinary(text string, v *pyvalue.Value) *fault {
	for _, r := range text {
		if r >= 0x80 {
			return n.noValue("base64 holds the character %+q", r)
		}
	}
	raw, ok := base64Bytes(text)
	if !ok {
		return n.noValue("%.60q is no base64 of whole bytes", text)
	}
	v.Kind, v.Text = pyvalue.Bytes, string(raw)
	return nil
}

// base64Bytes decodes as Python's lenient decoder does: characters that are no digits are skipped, and what
// follows the padding is not read.
func base64Bytes(text string) ([]byte, bool) {
	var out []byte
	var left byte
	quad, pads := 0, 0
	for i := range len(text) {
		if text[i] == '=' {
			if quad >= 2 {
				if pads++; quad+pads >= 4 {
					return out, true
				}
			}
			continue
		}
		d := strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", text[i])
		if d < 0 {
			continue
		}
		pads = 0
		switch b := byte(d); quad {
		case 0:
			left = b
		case 1:
			out, left = append(out, left<<2|b>>4), b&0xF
		case 2:
			out, left = append(out, left<<4|b>>2), b&0x3
		case 3:
			out = append(out, left<<6|b)
		}
		quad = (quad + 1) % 4
	}
	return out, quad == 0
}

// shortTag writes YAML's own tags with "!!".
func shortTag(tag string) string {
	if rest, ok := strings.CutPrefix(tag, tagPrefix); ok {
		return "!!" + rest
	}
	return tag
}
