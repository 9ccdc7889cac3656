package pep440

import (
	"fmt"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// SpecifierSet is a comma-separated list of specifiers, all of which must hold. The zero value is the empty set:
// every version satisfies it.
type SpecifierSet struct{ specifiers []specifier }

// specifier is one operator with its operand.
type specifier struct {
	op       string  // one of operators
	version  Version // the operand, without ".*"; unset for "==="
	wildcard bool    // the operand ended in ".*"
	text     string  // of "===": the operand in lower case
	source   string  // the specifier as written, without white space around operator and operand
}

// operators in the order in which they must be tried: an operator stands before its own beginnings.
var operators = []string{"===", "==", "~=", "!=", "<=", ">=", "<", ">"}

// ParseSpecifierSet reads a list such as ">=0.3,<1". Empty parts count for nothing. Its errors wrap ErrInvalid
// and name the part at fault.
func ParseSpecifierSet(s string) (SpecifierSet, error) {
	var set SpecifierSet
	for part := range strings.SplitSeq(s, ",") {
		part = pyvalue.Strip(part)
		if part == "" {
			continue
		}
		spec, ok := parseSpecifier(part)
		if !ok {
			return SpecifierSet{}, fmt.Errorf("version specifier %.100q is %w (expected one of ~= == != <= >= < > === and a version)", part, ErrInvalid)
		}
		set.specifiers = append(set.specifiers, spec)
	}
	return set, nil
}

func parseSpecifier(s string) (specifier, bool) {
	for _, op := range operators {
		operand, ok := strings.CutPrefix(s, op)
		if !ok {
			continue
		}
		operand = strings.TrimLeftFunc(operand, pyvalue.IsSpace)
		spec := specifier{op: op, source: op + operand}
		if op == "===" {
			spec.text = strings.ToLower(operand)
			return spec, operand != "" && !strings.ContainsFunc(operand, notArbitrary)
		}
		return spec, spec.parseOperand(operand)
	}
	return specifier{}, false
}

// notArbitrary reports the characters that the operand of "===" may not hold.
func notArbitrary(r rune) bool { return r == ';' || r == ')' || pyvalue.IsSpace(r) }

// parseOperand reads the version after an operator other than "===": "==" and "!=" take local labels and ".*", "~="
// needs two parts of a release.
func (s *specifier) parseOperand(operand string) bool {
	equality := s.op == "==" || s.op == "!="
	if base, ok := strings.CutSuffix(operand, ".*"); ok && equality {
		operand, s.wildcard = base, true
	}
	var err error
	if s.version, err = ParseVersion(operand); err != nil || operand != pyvalue.Strip(operand) {
		return false
	}
	v := s.version
	if s.wildcard && (v.IsPrerelease() || v.post != nil || v.local != nil) {
		return false
	}
	if v.local != nil && !equality {
		return false
	}
	return s.op != "~=" || len(v.release) >= 2
}

// Empty reports whether the set has no specifier.
func (s SpecifierSet) Empty() bool { return len(s.specifiers) == 0 }

// String is the set in its written order, without white space and empty parts.
func (s SpecifierSet) String() string {
	parts := make([]string, len(s.specifiers))
	for i, spec := range s.specifiers {
		parts[i] = spec.source
	}
	return strings.Join(parts, ",")
}

// Contains reports whether v satisfies every specifier. With prereleases false no pre-release is contained, not even
// one that a specifier names. True is both Python's prereleases=True and its default for one version, since where a
// single version is asked for there is no final release to prefer.
func (s SpecifierSet) Contains(v Version, prereleases bool) bool {
	if !prereleases && v.IsPrerelease() {
		return false
	}
	for _, spec := range s.specifiers {
		if !spec.contains(v) {
			return false
		}
	}
	return true
}

func (s specifier) contains(v Version) bool {
	switch s.op {
	case "===":
		return strings.ToLower(v.String()) == s.text
	case "==":
		return s.equal(v)
	case "!=":
		return !s.equal(v)
	case "~=":
		return v.Compare(s.version) >= 0 && hasPrefix(v, s.version, len(s.version.release)-1)
	case ">=":
		return v.Compare(s.version) >= 0
	case "<=":
		return v.Public().Compare(s.version) <= 0
	case "<":
		return s.less(v)
	}
	return s.greater(v)
}

// equal ignores v's local label unless the operand has one.
func (s specifier) equal(v Version) bool {
	if s.wildcard {
		return hasPrefix(v, s.version, len(s.version.release))
	}
	if s.version.local == nil {
		v = v.Public()
	}
	return v.Compare(s.version) == 0
}

// hasPrefix reports whether v has the epoch of w and the first n parts of w's release.
func hasPrefix(v, w Version, n int) bool {
	if v.epoch.compare(w.epoch) != 0 {
		return false
	}
	for i := range n {
		if releasePart(v, i).compare(w.release[i]) != 0 {
			return false
		}
	}
	return true
}

// less leaves out the pre-releases of the operand, unless that is a pre-release itself.
func (s specifier) less(v Version) bool {
	bound := s.version
	if !bound.IsPrerelease() {
		zero := number("")
		bound.dev = &zero
	}
	return v.Compare(bound) < 0
}

// greater leaves out the local labels of the operand and, unless that is a post or development release, its
// post-releases.
func (s specifier) greater(v Version) bool {
	w := s.version
	if v.Public().Compare(w) <= 0 {
		return false
	}
	if w.post != nil || w.dev != nil {
		return true
	}
	return compareBase(v, w) != 0 || comparePre(v, w) != 0
}
