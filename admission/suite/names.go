package suite

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// IndexFile seals a version; no other file of a suite has its name.
const IndexFile = "index.json"

// CheckFileName applies the rules that judge the name of one file of a suite: a plain relative path, written one way.
func CheckFileName(name string) []rule.Violation {
	var all []rule.Violation
	add := func(id rule.ID, format string, args ...any) {
		all = append(all, rule.Violation{Rule: id, Field: "name", Message: fmt.Sprintf("the file %.100q: ", name) + fmt.Sprintf(format, args...), Hint: hint(id)})
	}
	if len(name) > limit.Path {
		add("suite.file.length", "the name has %d bytes, at most %d are allowed", len(name), limit.Path)
		return all
	}
	if strings.ToValidUTF8(name, "\uFFFD") != name || strings.ContainsRune(name, unicode.ReplacementChar) {
		add("suite.file.name", "the name is not UTF-8")
	}
	if i := strings.IndexFunc(name, steers); i >= 0 {
		add("suite.file.name", "the name holds a control or direction character")
	}
	if strings.Contains(name, `\`) {
		add("suite.file.name", "the name holds a backslash, which some systems take for a separator")
	}
	for element := range strings.SplitSeq(name, "/") {
		switch {
		case element == "" || element == "." || element == "..":
			add("suite.file.path", "found the element %q, expected a plain relative path", element)
			return all
		case len(element) > limit.Component:
			add("suite.file.length", "an element has %d bytes, at most %d are allowed", len(element), limit.Component)
		}
	}
	return all
}

func hint(id rule.ID) string {
	info, _ := rule.Lookup(id)
	return info.Fix
}

// steers reports whether r is a control character, ends a line or changes the direction of text.
func steers(r rune) bool {
	return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Bidi_Control, r)
}

// clashes finds names that are one, and names that are both file and folder.
func clashes(names []string, add func(id rule.ID, name, format string, args ...any)) {
	// With NUL for every slash, what lies below a folder sorts right behind a file of its name.
	sorted := make([]string, len(names))
	for i, name := range names {
		sorted[i] = strings.ReplaceAll(name, "/", "\x00")
	}
	slices.Sort(sorted)
	for i := 1; i < len(sorted); i++ {
		name := strings.ReplaceAll(sorted[i], "\x00", "/")
		switch before := sorted[i-1]; {
		case before == sorted[i]:
			add("suite.file.unique", name, "the name comes twice")
		case strings.HasPrefix(sorted[i], before+"\x00"):
			add("suite.file.unique", name, "%.100q is a file and a folder", strings.ReplaceAll(before, "\x00", "/"))
		}
	}
}
