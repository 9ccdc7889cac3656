package rule

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// Example is something that breaks a rule, as small as a person would show it.
type Example struct {
	Dialect dialect.Dialect // of the document; "" takes the rule's first dialect
	// Path and Value say what to put where in the smallest JobSpec of the dialect: spec.source.exp and "/abs". The value is
	// JSON; without one what is there is removed. Without a path the value is the whole document.
	Path, Value string
	// Text tells what breaks a rule that no single document can.
	Text string
}

// None reports whether there is no example.
func (e Example) None() bool { return e == Example{} }

// ExampleDialect is the dialect of the document in the rule's example.
func (i Info) ExampleDialect() dialect.Dialect {
	switch {
	case i.Example.Dialect != "":
		return i.Example.Dialect
	case len(i.Dialects) > 0:
		return i.Dialects[0]
	}
	return dialect.Forge
}

// maxShown is how many characters of an example's value are shown.
const maxShown = 160

// String is the example on one line: where to put what, or what must be the case.
func (e Example) String() string {
	value := strings.ReplaceAll(e.Value, "\n", `\n`)
	if n := utf8.RuneCountInString(value); n > maxShown {
		value = fmt.Sprintf("%s... (%d characters)", string([]rune(value)[:maxShown]), n)
	}
	switch {
	case e.Text != "":
		return e.Text
	case e.Path == "":
		return value
	case e.Value == "":
		return "no " + e.Path
	}
	return e.Path + " = " + value
}

// Effect says in a few words what a breach does, and what an administrator may make of the rule.
func (i Info) Effect() string {
	var words []string
	switch {
	case i.Severity == Warn:
		words = append(words, "warns")
	case len(i.WarnIn) > 0:
		words = append(words, fmt.Sprintf("refuses (in %s it warns)", i.WarnIn[0]))
	default:
		words = append(words, "refuses")
	}
	switch {
	case !i.Ours:
	case len(i.OursIn) > 0:
		words = append(words, fmt.Sprintf("ours in %s", i.OursIn[0]))
	default:
		words = append(words, "ours")
	}
	switch {
	case i.Softenable():
		words = append(words, "may be softened or audited")
	case i.Auditable():
		words = append(words, "may be audited")
	}
	return strings.Join(words, ", ")
}

// at puts a JSON value at a path.
func at(path, value string) Example { return Example{Path: path, Value: value} }

// without removes what is at a path.
func without(path string) Example { return Example{Path: path} }

// whole is a whole document.
func whole(document string) Example { return Example{Value: document} }

// told is an example in words.
func told(text string) Example { return Example{Text: text} }

// inTune is e in a document of tuneplane.
func inTune(e Example) Example {
	e.Dialect = dialect.TunePlane
	return e
}
