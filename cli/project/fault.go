package project

import (
	"errors"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/pyyaml"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Fault is what is wrong with a file of the project.
type Fault struct {
	File    string `json:"file"`   // below the project's folder, with slashes
	Line    int    `json:"line"`   // 1-based; 0 when it is no one place
	Column  int    `json:"column"` // 1-based, in characters
	Field   string `json:"field"`  // "" when the file as a whole is meant
	Message string `json:"message"`
	Hint    string `json:"hint"`

	err error // errOutside, or nil
}

// errOutside is what the Fault of a base of `defaults` that lies outside the project is.
var errOutside = errors.New("outside the project")

func (f *Fault) Unwrap() error { return f.err }

func (f *Fault) Error() string {
	s := f.Message
	if f.Field != "" {
		s = f.Field + ": " + s
	}
	where := f.File
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", where, f.Line, f.Column)
	}
	s = where + ": " + s
	if f.Hint != "" {
		s += ". " + f.Hint
	}
	return s
}

// fault is a Fault at the place of a value, which may be nil.
func fault(file string, at *pyvalue.Value, field, format string, args ...any) *Fault {
	f := &Fault{File: file, Field: field, Message: fmt.Sprintf(format, args...)}
	if at != nil {
		f.Line, f.Column = at.Line, at.Column
	}
	return f
}

// faultOf is a violation of a rule of documents as a Fault.
func faultOf(file string, v rule.Violation) *Fault {
	f := &Fault{File: file, Line: v.Line, Column: v.Column, Field: v.Field, Message: v.Message, Hint: v.Hint}
	if info, ok := rule.Lookup(v.Rule); ok && f.Hint == "" {
		f.Hint = info.Fix
	}
	return f
}

// loadYAML is a document of the project as the clients read it: anchors, tags and repeated keys are theirs to allow. size is
// that of the file, in bytes.
func (p *Project) loadYAML(path string) (doc *pyvalue.Value, size int, err error) {
	src, err := p.read(path)
	if err != nil {
		return nil, 0, err
	}
	doc, report := pyyaml.Load(src, pyyaml.Options{MaxDepth: limit.YAMLClientDepth})
	if doc == nil {
		report.ClientsFirst() // an anchor, which is allowed here, is not what is wrong
		return nil, 0, faultOf(path, report.Violations[0])
	}
	return doc, len(src), nil
}
