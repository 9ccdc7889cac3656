package lock

import (
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// Error says what of a lock file can't be read, and where. It does not name the file.
type Error struct {
	Line, Column int    // 1-based, the column in characters; 0 when it is no one place
	Field        string // "" when the file as a whole is meant
	Message      string
	Hint         string // how to mend it; "" when the message says it
}

func (e *Error) Error() string {
	where := ""
	if e.Line > 0 {
		where = fmt.Sprintf("line %d, column %d: ", e.Line, e.Column)
	}
	return where + e.text()
}

// in is the error with the file that it is in.
func (e *Error) in(path string) string {
	if e.Line > 0 {
		path = fmt.Sprintf("%s:%d:%d", path, e.Line, e.Column)
	}
	return path + ": " + e.text()
}

func (e *Error) text() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Hint != "" {
		s += ". " + e.Hint
	}
	return s
}

// errorAt is an Error at the place of a value, which may be nil.
func errorAt(v *pyvalue.Value, field, hint, format string, args ...any) *Error {
	e := &Error{Field: field, Message: fmt.Sprintf(format, args...), Hint: hint}
	if v != nil {
		e.Line, e.Column = v.Line, v.Column
	}
	return e
}
