// Package pep440 reads versions and version specifiers and answers as Python's packaging library does (26.4, the
// one that the real clients install). The launcher decides with that library whether a core version satisfies
// a pack's range; a gate that answered otherwise would admit jobs that then fail, or refuse ones that run.
//
// What the library does beyond the text of PEP 440 holds here too:
//   - white space around a version or specifier is Python's (str.strip and \s): Unicode white space and U+001C..U+001F;
//   - empty parts between the commas of a set count for nothing, and the empty set contains every version;
//   - "===" compares texts without case and accepts any text without white space, ";" or ")";
//   - a number of more than 4300 digits is no number (Python raises; here the version is malformed);
//   - by default a single pre-release is contained in a set that its order satisfies, as if pre-releases were allowed.
package pep440

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// ErrInvalid is wrapped by every error of ParseVersion and ParseSpecifierSet.
var ErrInvalid = errors.New("not as PEP 440 writes it")

// maxDigits is how many digits Python's int() reads.
const maxDigits = 4300

// Version is a parsed version. The zero Version is the result of no parse. Compare versions with Compare, never with
// ==: spellings of one version differ in their fields ("1.0" and "1.0.0").
type Version struct {
	epoch   number
	release []number // at least one
	pre     *part    // letter a, b or rc
	post    *number
	dev     *number
	local   []string // normalised: lower case, numbers without leading zeros; nil when there is none
}

type part struct {
	letter string
	n      number
}

// number is a natural number of any size in decimal digits without leading zeros; "" is 0.
type number string

func parseNumber(digits string) number { return number(strings.TrimLeft(digits, "0")) }

func (n number) String() string {
	if n == "" {
		return "0"
	}
	return string(n)
}

func (n number) compare(m number) int {
	if len(n) != len(m) {
		return sign(len(n) - len(m))
	}
	return strings.Compare(string(n), string(m))
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// ParseVersion reads a version in any spelling that PEP 440 allows ("v1.0-RC.1" is "1.0rc1"). Its errors wrap
// ErrInvalid.
func ParseVersion(s string) (Version, error) {
	text := pyvalue.Strip(s)
	if isASCII(text) {
		p := parser{rest: strings.ToLower(text)}
		if v, ok := p.version(); ok && p.rest == "" && !p.overflow {
			return v, nil
		}
	}
	return Version{}, fmt.Errorf("version %.100q is %w", s, ErrInvalid)
}

// isASCII keeps out the letters that fold to ASCII ones, such as the Kelvin sign.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// String is the normal form of PEP 440. Trailing zeros of the release stay as they were written.
func (v Version) String() string {
	var b strings.Builder
	if v.epoch != "" {
		b.WriteString(v.epoch.String() + "!")
	}
	for i, n := range v.release {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(n.String())
	}
	if v.pre != nil {
		b.WriteString(v.pre.letter + v.pre.n.String())
	}
	if v.post != nil {
		b.WriteString(".post" + v.post.String())
	}
	if v.dev != nil {
		b.WriteString(".dev" + v.dev.String())
	}
	if v.local != nil {
		b.WriteString("+" + strings.Join(v.local, "."))
	}
	return b.String()
}

// IsPrerelease reports whether v is an alpha, beta, release candidate or development release.
func (v Version) IsPrerelease() bool { return v.pre != nil || v.dev != nil }

// Epoch is the number before "!", in decimal; "0" when there is none.
func (v Version) Epoch() string { return v.epoch.String() }

// Local is the normalised label after "+", "" when there is none.
func (v Version) Local() string { return strings.Join(v.local, ".") }

// Public is v without its local label.
func (v Version) Public() Version {
	v.local = nil
	return v
}

// Canonical is the normal form without zeros at the end of the release: equal texts exactly for equal versions.
func (v Version) Canonical() string {
	n := len(v.release)
	for n > 1 && v.release[n-1] == "" {
		n--
	}
	v.release = v.release[:n]
	return v.String()
}
