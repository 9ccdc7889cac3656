package jobspec

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// maxLabel is how many bytes a display name or a label may have.
const maxLabel = 1024

// segment checks that a part of a text is a name once it is trimmed, as the clients do; ours then asks that there was
// nothing to trim, since the clients keep the untrimmed text. It reports whether the clients accept.
func (r *reader) segment(n node, s string, id rule.ID) bool {
	trimmed := pyvalue.Strip(s)
	if !name.IsSegment(trimmed) {
		r.bad(n, id, "found %.100q%s, expected a name (a letter or digit, then letters, digits, '.', '_' or '-')", trimmed, notName(trimmed))
		return false
	}
	if s != trimmed {
		r.bad(n, "job.name.inner_space", "found %.100q, expected no white space around %.100q", s, trimmed)
	}
	if len(trimmed) > limit.Component {
		r.bad(n, "job.name.length", "found a name of %d bytes, expected at most %d", len(trimmed), limit.Component)
	}
	return true
}

// notName says in brackets why a text is no name, where that is not plain to see.
func notName(s string) string {
	for i, c := range s {
		switch {
		case c >= utf8.RuneSelf:
			return fmt.Sprintf(" (%q is U+%04X, which is not ASCII)", c, c)
		case strings.ContainsRune("._-", c) && i == 0:
			return fmt.Sprintf(" (it begins with %q)", c)
		case !strings.ContainsRune("._-", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c):
			return fmt.Sprintf(" (%q is not allowed)", c)
		}
	}
	return ""
}

// shorter checks the length of a free text.
func (r *reader) shorter(n node, s string) {
	if len(s) > maxLabel {
		r.bad(n, "job.name.length", "found %d bytes, expected at most %d", len(s), maxLabel)
	}
}

// names reads a list of names; each entry becomes text first. Blank entries are dropped where blanks is set.
func (r *reader) names(n node, array, segment rule.ID, blanks bool) ([]string, bool) {
	list, ok := r.list(n, array, "strings")
	var names []string
	for i, v := range list {
		e := n.entry(i, v)
		text := pyvalue.Strip(r.text(e))
		if blanks && text == "" {
			continue
		}
		if r.segment(e, text, segment) {
			names = append(names, text)
			continue
		}
		ok = false
	}
	return names, ok
}

// split splits at slashes and drops empty parts, as the clients do with ids and references.
func split(s string) []string {
	parts := make([]string, 0, 3)
	for part := range strings.SplitSeq(s, "/") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// reference is <owner>/<name>[@<version>]. Pinned tells an empty version from none.
type reference struct {
	owner, name, version string
	at                   bool // there is an '@'
}

// parseReference takes a trimmed text apart. Strict keeps empty parts, which makes a leading slash a breach.
func parseReference(s string, strict bool) (reference, bool) {
	body, version, at := strings.Cut(s, "@")
	parts := split(body)
	if strict {
		parts = strings.Split(body, "/")
	}
	if len(parts) != 2 {
		return reference{}, false
	}
	return reference{owner: parts[0], name: parts[1], version: version, at: at}, true
}

// reference checks <owner>/<name>[@<version>], each part a name, the version possibly blank.
func (r *reader) reference(n node, s string, id rule.ID, strict bool) (reference, bool) {
	ref, ok := parseReference(s, strict)
	if !ok {
		r.bad(n, id, "found %.100q, expected <owner>/<name>[@<version>]", s)
		return ref, false
	}
	ok = r.segment(n.part("owner"), ref.owner, id)
	ok = r.segment(n.part("name"), ref.name, id) && ok
	if pyvalue.Strip(ref.version) != "" {
		ok = r.segment(n.part("version"), ref.version, id) && ok
	}
	return ref, ok
}
