package jobbuild

import (
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// literal is the value that the clients take a text of --set for: a truth value, else what Python's int() reads, else what
// its float() reads, else the text itself. The text has no white space at its ends.
func literal(text string) *pyvalue.Value {
	switch strings.ToLower(text) {
	case "true", "yes", "on":
		return &pyvalue.Value{Kind: pyvalue.Bool, Bool: true}
	case "false", "no", "off":
		return &pyvalue.Value{Kind: pyvalue.Bool}
	}
	v := pyvalue.NewStr(text)
	if n, ok := pyvalue.ParseInt(v); ok {
		return &pyvalue.Value{Kind: pyvalue.Int, Int: n}
	}
	if f, ok := pyvalue.ParseFloat(text); ok {
		return &pyvalue.Value{Kind: pyvalue.Float, Float: f}
	}
	return v
}
