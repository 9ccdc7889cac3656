package suite

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// RubricFile is the one file of a rubric.
const RubricFile = "rubric.txt"

// CheckRubric applies the rules of a rubric: text of at most limit.RubricText bytes that says something. The platforms
// give it no other form (packs.md 10).
func CheckRubric(text []byte, policy rule.Policy) rule.Report {
	r := &findings{file: RubricFile, report: rule.Report{Policy: policy}}
	switch {
	case len(text) > limit.RubricText:
		r.fault("rubric.limit", "", nil, "the text has %d bytes, at most %d are allowed", len(text), limit.RubricText)
	case !utf8.Valid(text):
		line, column := 1, 1
		for rest := text; len(rest) > 0; {
			c, n := utf8.DecodeRune(rest)
			if c == utf8.RuneError && n == 1 {
				break
			}
			if column++; c == '\n' {
				line, column = line+1, 1
			}
			rest = rest[n:]
		}
		r.add(rule.Violation{Rule: "rubric.text", File: r.file, Line: line, Column: column, Message: "the text is not UTF-8"})
	case bytes.HasPrefix(text, []byte("\uFEFF")):
		r.add(rule.Violation{Rule: "rubric.text", File: r.file, Line: 1, Column: 1, Message: "the text begins with a byte-order mark"})
	case strings.TrimSpace(string(text)) == "":
		r.fault("rubric.text", "", nil, "the text is empty")
	default:
		r.controls(string(text))
	}
	return r.finish()
}

// controls finds characters that a judge's prompt can't be meant to hold.
func (f *findings) controls(text string) {
	for n, line := range strings.Split(text, "\n") {
		if i := strings.IndexFunc(line, func(c rune) bool { return c < 0x20 && c != '\t' && c != '\r' || c == 0x7F }); i >= 0 {
			f.add(rule.Violation{Rule: "rubric.text", File: f.file, Line: n + 1, Column: utf8.RuneCountInString(line[:i]) + 1, Message: fmt.Sprintf("the text holds the control character %U", line[i])})
		}
	}
}
