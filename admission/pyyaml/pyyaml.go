// Package pyyaml reads YAML as the real clients do: YAML 1.1 in the syntax and with the values of PyYAML's SafeLoader
// (packs.md 2), with the position of every value and of every error.
//
// # What is read
//
// Strict UTF-8 with universal newlines and an optional byte-order mark, then the scanner, the grammar, the
// implicit types and the constructors of PyYAML 6: octal, binary and sexagesimal numbers, the booleans yes, no, on
// and off, dates, merge keys, !!binary, !!set, !!omap and !!pairs, a %YAML 1.x directive. Where a document makes the
// clients' reader stop, or crash with something that is not its own error (a date that does not exist, an
// integer of more than 4,300 digits, a list as a key, 500 levels of nesting), it is refused under a rule of its own.
//
// The parser is our own. Parsers of YAML for Go follow libyaml, which differs from PyYAML's own scanner in what it
// accepts (testdata/vectors/README-pyyaml.md says by how much), and none keeps the lone surrogates that decide
// whether a recipe can be hashed.
//
// # What is refused on top
//
// Anchors, aliases and merge keys, explicit tags, repeated keys, nesting beyond 64 levels, and scalars without quotes
// whose value is not the text that was written. These rules are ours: an administrator may turn them into
// warnings, and then the value is the clients'. A document that breaks them still has a value, so that the rules of
// its fields find everything else that is wrong with it. Aliases that form a cycle, or that stand for
// more values than the limit, are always refused: no value is cyclic, or larger than the limit when written out.
//
// Time and memory are linear in the size of the input, and nothing recurses deeper than limit.YAMLClientDepth.
package pyyaml

import (
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// maxListed is how many breaches of one rule are listed.
const maxListed = 64

// Options say how to read. The zero Options read a document of at most limit.Document bytes, softening nothing.
type Options struct {
	Policy   rule.Policy
	File     string // Violation.File
	MaxBytes int    // 0: limit.Document
	MaxDepth int    // levels of collections; 0: limit.YAMLDepth
	MaxNodes int    // values, aliases followed; 0: limit.YAMLNodes
}

// Load reads src. The value is nil exactly when the document can't be read at all, which the report then says;
// otherwise it is what the clients make of the document, even when the report refuses it. An empty document is None.
func Load(src []byte, opt Options) (*pyvalue.Value, rule.Report) {
	l := newLoader(opt)
	v, err := l.load(src)
	if err != nil {
		l.report.Add(rule.Violation{
			Rule: err.rule, File: l.opt.File, Line: err.at.line + 1, Column: err.at.column + 1, Message: err.message,
		})
		return nil, l.report
	}
	return v, l.report
}

// CheckText files a violation of yaml.scalar when v, the value of a text field, has no quotes and the text that the
// clients make of it is not the text that was written (1.10, 0x10, NO), and the warning yaml.scalar.unquoted when
// the two are the same but the value is no text (2, 1.5, a date). Null counts as an absent text, and collections are
// no concern of this rule. It reports whether v is refused.
func CheckText(r *rule.Report, file, field string, v *pyvalue.Value) (refused bool) {
	if v == nil || v.Kind == pyvalue.None {
		return false
	}
	return checkScalar(r, file, field, v, v.TextOf(), "the value")
}

// checkScalar compares the clients' text of a scalar with the text that was written.
func checkScalar(r *rule.Report, file, field string, v *pyvalue.Value, text, what string) (refused bool) {
	switch v.Kind {
	case pyvalue.None, pyvalue.Bool, pyvalue.Int, pyvalue.Float, pyvalue.Date, pyvalue.DateTime, pyvalue.Bytes:
	default:
		return false
	}
	found := rule.Violation{Field: field, File: file, Line: v.Line, Column: v.Column}
	if text == v.Written {
		found.Rule = "yaml.scalar.unquoted"
		found.Message = fmt.Sprintf("%s %.60s is written without quotes; YAML reads %s", what, v.Written, article(v))
	} else {
		found.Rule = "yaml.scalar"
		found.Message = fmt.Sprintf("%s is written %.60q, but YAML reads %s: the clients see the text %.60q", what, v.Written, article(v), text)
		found.Hint = fmt.Sprintf("Put it in quotes: %.60q.", v.Written)
	}
	return r.Add(found)
}

// article names the type that YAML gives a scalar.
func article(v *pyvalue.Value) string {
	switch v.Kind {
	case pyvalue.None:
		return "no value"
	case pyvalue.Bool:
		return "a boolean"
	case pyvalue.Int, pyvalue.Float:
		return "a number"
	case pyvalue.Date, pyvalue.DateTime:
		return "a date"
	}
	return "bytes"
}

// loader carries one reading of a document.
type loader struct {
	opt    Options
	report rule.Report
	listed map[rule.ID]int
	shared bool // there are aliases
}

func newLoader(opt Options) *loader {
	if opt.MaxBytes == 0 {
		opt.MaxBytes = limit.Document
	}
	if opt.MaxDepth == 0 {
		opt.MaxDepth = limit.YAMLDepth
	}
	if opt.MaxNodes == 0 {
		opt.MaxNodes = limit.YAMLNodes
	}
	return &loader{opt: opt, report: rule.Report{Policy: opt.Policy}, listed: make(map[rule.ID]int)}
}

func (l *loader) load(src []byte) (*pyvalue.Value, *fault) {
	if len(src) > l.opt.MaxBytes {
		return nil, newFault("yaml.limit", mark{}, "the document has %d bytes; at most %d are read", len(src), l.opt.MaxBytes)
	}
	text, err := decode(src)
	if err != nil {
		return nil, err
	}
	root, err := l.parse(text)
	if err != nil {
		return nil, err
	}
	if root == nil {
		return &pyvalue.Value{Line: 1, Column: 1, Plain: true}, nil
	}
	b := builder{load: l}
	return b.build(root)
}

// parse makes the nodes of a document and checks what they form.
func (l *loader) parse(text []rune) (*node, *fault) {
	root, err := newParser(text, l).document()
	if err != nil {
		return nil, err
	}
	if root != nil && l.shared {
		if err := l.checkGraph(root, 0); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// soft files a breach of a rule that does not end the reading.
func (l *loader) soft(id rule.ID, at mark, field, format string, args ...any) {
	if l.listed[id]++; l.listed[id] > maxListed {
		return
	}
	l.report.Add(rule.Violation{
		Rule: id, Field: field, File: l.opt.File, Line: at.line + 1, Column: at.column + 1, Message: fmt.Sprintf(format, args...),
	})
}

// alias files an anchor, an alias or a merge key.
func (l *loader) alias(at mark, what string) {
	l.shared = true
	l.soft("yaml.alias", at, "", "found %.80s; expected every value to be written out where it is needed", what)
}

// tagged files an explicit tag that the clients know; unknown ones are refused when their node is read.
func (l *loader) tagged(at mark, tag string) {
	switch tag {
	case "!", tagNull, tagBool, tagInt, tagFloat, tagBinary, tagTimestamp, tagOmap, tagPairs, tagSet, tagStr, tagSeq, tagMap:
		l.soft("yaml.tag", at, "", "found the tag %s; expected a value without a tag", shortTag(tag))
	}
}

// depth files nesting beyond the limit, and ends the reading where the clients' reader crashes.
func (l *loader) depth(levels int, at mark) *fault {
	if levels > limit.YAMLClientDepth {
		return newFault("yaml.recursion", at, "nested deeper than %d levels", limit.YAMLClientDepth)
	}
	if levels == l.opt.MaxDepth+1 {
		l.soft("yaml.depth", at, "", "nested deeper than %d levels", l.opt.MaxDepth)
	}
	return nil
}

// checkKey files a key that its map has twice, and one whose text is not the text that was written.
func (l *loader) checkKey(in, key *node, v *pyvalue.Value, first *node) {
	field := key.field()
	if first != nil {
		l.soft("yaml.duplicate_key", key.start, field, "the key %s stands twice in this map, first in line %d", v.PyRepr(), first.start.line+1)
	}
	if v.Kind == pyvalue.Str || l.listed["yaml.scalar"] >= maxListed {
		return
	}
	l.listed["yaml.scalar"]++
	checkScalar(&l.report, l.opt.File, field, v, v.PyStr(), "the key")
}
