package rule

import "github.com/gatehouse-registry/gatehouse/admission/dialect"

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
