package pyyaml

import (
	"fmt"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// mark is a place in the text: offset in characters, line and column from 0. A byte-order mark takes no column.
type mark struct{ offset, line, column int }

// fault is what ends the reading of a document.
type fault struct {
	rule    rule.ID
	at      mark
	message string
}

func (f *fault) Error() string { return f.message }

func newFault(id rule.ID, at mark, format string, args ...any) *fault {
	return &fault{rule: id, at: at, message: fmt.Sprintf(format, args...)}
}

// decode turns a file's bytes into the characters that the clients' reader sees: strict UTF-8 with universal
// newlines, so that CR LF and CR become LF, and without the characters that YAML forbids.
func decode(src []byte) ([]rune, *fault) {
	text := make([]rune, 0, len(src))
	var at mark
	for i := 0; i < len(src); {
		r, n := rune(src[i]), 1
		if r >= utf8.RuneSelf {
			if r, n = utf8.DecodeRune(src[i:]); r == utf8.RuneError && n == 1 {
				return nil, newFault("yaml.encoding", at, "the byte %#02x is no UTF-8", src[i])
			}
		}
		i += n
		if r == '\r' {
			if i < len(src) && src[i] == '\n' {
				i++
			}
			r = '\n'
		}
		if !allowed(r) {
			return nil, newFault("yaml.character", at, "the character U+%04X may not stand in YAML", r)
		}
		text = append(text, r)
		at.step(r)
	}
	return text, nil
}

// step moves the mark over r.
func (m *mark) step(r rune) {
	m.offset++
	switch {
	case isBreak(r):
		m.line++
		m.column = 0
	case r != '\uFEFF':
		m.column++
	}
}

// allowed reports whether YAML 1.1 lets r stand in a document.
func allowed(r rune) bool {
	switch {
	case r < 0x20:
		return r == '\t' || r == '\n'
	case r < 0x7F, r == 0x85:
		return true
	case r < 0xA0:
		return false
	}
	return r != 0xFFFE && r != 0xFFFF
}

// The end of the text reads as NUL, which no text holds.
const eof rune = 0

func isBreak(r rune) bool { return r == '\n' || r == 0x85 || r == 0x2028 || r == 0x2029 }

// endsLine holds for line breaks and the end of the text.
func endsLine(r rune) bool { return r == eof || isBreak(r) }

// endsWord holds for blanks, line breaks and the end of the text.
func endsWord(r rune) bool { return r == ' ' || r == '\t' || endsLine(r) }

// isWord holds for the characters of names: anchors, directives, tag handles.
func isWord(r rune) bool {
	return (r >= '0' && r <= '9') || (r >= 'A' && r <= 'Z') || (r >= 'a' && r <= 'z') || r == '-' || r == '_'
}

// show is a character as messages show it.
func show(r rune) string {
	if r == eof {
		return "the end of the text"
	}
	return fmt.Sprintf("%+q", r)
}
