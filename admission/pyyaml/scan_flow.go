package pyyaml

import (
	"strconv"
	"strings"

	"github.com/gatehouse-registry/gatehouse/digest/wtf8"
)

// scanName reads an alias or an anchor.
func (s *scanner) scanName(kind tokenKind, what string) {
	start := s.mark
	s.forward(1)
	n := 0
	for isWord(s.peek(n)) {
		n++
	}
	if n == 0 {
		s.fail(s.mark, "the name of an %s has letters, digits, '-' and '_'; found %s", what, show(s.peek(0)))
		return
	}
	name := s.take(n)
	if r := s.peek(0); !endsWord(r) && !strings.ContainsRune("?:,]}%@`", r) {
		s.fail(s.mark, "the name of an %s has letters, digits, '-' and '_'; found %s", what, show(r))
		return
	}
	s.add(token{kind: kind, value: name}, start)
}

// scanQuoted reads a scalar in single or double quotes. Indentation does not matter inside it.
func (s *scanner) scanQuoted(quote rune) {
	start := s.mark
	s.forward(1)
	text := s.quotedText(nil, quote)
	for s.err == nil && s.peek(0) != quote {
		text = s.quotedBlanks(text)
		text = s.quotedText(text, quote)
	}
	if s.err != nil {
		return
	}
	s.forward(1)
	s.add(token{kind: tokScalar, value: string(text)}, start)
}

// quotedText reads up to a blank, a line break or the closing quote.
func (s *scanner) quotedText(text []byte, quote rune) []byte {
	for {
		r := s.peek(0)
		switch {
		case endsWord(r):
			return text
		case r == '\'' && quote == '\'':
			if s.peek(1) != '\'' {
				return text
			}
			s.forward(1)
		case r == '"' && quote == '"':
			return text
		case r == '\\' && quote == '"':
			text = s.escape(text)
			continue
		}
		text = wtf8.AppendRune(text, r)
		s.forward(1)
	}
}

// shortEscapes maps the character after a backslash to what the two stand for.
var shortEscapes = map[rune]rune{
	'0': 0, 'a': 7, 'b': 8, 't': 9, '\t': 9, 'n': 10, 'v': 11, 'f': 12, 'r': 13, 'e': 27, ' ': ' ', '"': '"',
	'\\': '\\', '/': '/', 'N': 0x85, '_': 0xA0, 'L': 0x2028, 'P': 0x2029,
}

// hexDigits is how many digits follow the escapes that name a character by number.
var hexDigits = map[rune]int{'x': 2, 'u': 4, 'U': 8}

// escape reads one escape of a scalar in double quotes.
func (s *scanner) escape(text []byte) []byte {
	at := s.mark
	s.forward(1)
	r := s.peek(0)
	if c, ok := shortEscapes[r]; ok {
		s.forward(1)
		return wtf8.AppendRune(text, c)
	}
	if n := hexDigits[r]; n > 0 {
		s.forward(1)
		return s.hexEscape(text, n, at)
	}
	if isBreak(r) {
		s.lineBreak()
		return s.quotedBreaks(text)
	}
	s.fail(s.mark, "'\\' and %s are no escape of YAML; write '\\\\' for a backslash, or use single quotes", show(r))
	return text
}

func (s *scanner) hexEscape(text []byte, n int, at mark) []byte {
	for k := range n {
		if !isHex(s.peek(k)) {
			s.fail(s.mark, "%d hex digits were expected after the escape; found %s", n, show(s.peek(k)))
			return text
		}
	}
	code, _ := strconv.ParseUint(s.take(n), 16, 32)
	if code > 0x10FFFF {
		s.fail(at, "the escape names the character %#x; the last one is 0x10ffff", code)
		s.err.rule = "yaml.value"
		return text
	}
	return wtf8.AppendRune(text, rune(code))
}

func isHex(r rune) bool {
	return (r >= '0' && r <= '9') || (r >= 'a' && r <= 'f') || (r >= 'A' && r <= 'F')
}

// quotedBlanks reads blanks inside quotes; a line break among them folds.
func (s *scanner) quotedBlanks(text []byte) []byte {
	n := 0
	for s.peek(n) == ' ' || s.peek(n) == '\t' {
		n++
	}
	blanks := s.take(n)
	switch r := s.peek(0); {
	case r == eof:
		s.fail(s.mark, "the text ends inside quotes")
	case isBreak(r):
		if line := s.lineBreak(); line != "\n" {
			return s.quotedBreaks(append(text, line...))
		}
		before := len(text)
		if text = s.quotedBreaks(text); len(text) == before {
			text = append(text, ' ')
		}
	default:
		text = append(text, blanks...)
	}
	return text
}

// quotedBreaks reads empty lines inside quotes and the blanks that begin the next one.
func (s *scanner) quotedBreaks(text []byte) []byte {
	for {
		if s.atSeparator() {
			s.fail(s.mark, "a document separator stands inside quotes")
			return text
		}
		for s.peek(0) == ' ' || s.peek(0) == '\t' {
			s.forward(1)
		}
		if !isBreak(s.peek(0)) {
			return text
		}
		text = append(text, s.lineBreak()...)
	}
}

// scanPlain reads a scalar without quotes, which may go on over several lines.
func (s *scanner) scanPlain() {
	start, end := s.mark, s.mark
	indent := s.indent + 1
	var text, blanks strings.Builder
	for s.peek(0) != '#' {
		n := s.plainLength()
		if n == 0 {
			break
		}
		s.keyAllowed = false
		text.WriteString(blanks.String())
		text.WriteString(s.take(n))
		end = s.mark
		blanks.Reset()
		s.plainBlanks(&blanks)
		if blanks.Len() == 0 || s.peek(0) == '#' || (s.flow == 0 && s.column < indent) {
			break
		}
	}
	s.queue = append(s.queue, token{kind: tokScalar, plain: true, value: text.String(), start: start, end: end})
}

// plainLength counts the characters up to a blank or to what ends a plain scalar.
func (s *scanner) plainLength() int {
	for n := 0; ; n++ {
		r := s.peek(n)
		if endsWord(r) {
			return n
		}
		if s.flow > 0 && strings.ContainsRune(",?[]{}", r) {
			return n
		}
		if r == ':' {
			after := s.peek(n + 1)
			if endsWord(after) || (s.flow > 0 && strings.ContainsRune(",[]{}", after)) {
				return n
			}
		}
	}
}

// plainBlanks reads the blanks inside a plain scalar, and folds line breaks. It writes nothing where the scalar ends.
func (s *scanner) plainBlanks(out *strings.Builder) {
	n := 0
	for s.peek(n) == ' ' {
		n++
	}
	blanks := s.take(n)
	if !isBreak(s.peek(0)) {
		out.WriteString(blanks)
		return
	}
	line := s.lineBreak()
	s.keyAllowed = true
	if s.atSeparator() {
		return
	}
	var breaks strings.Builder
	for r := s.peek(0); r == ' ' || isBreak(r); r = s.peek(0) {
		if r == ' ' {
			s.forward(1)
			continue
		}
		breaks.WriteString(s.lineBreak())
		if s.atSeparator() {
			return
		}
	}
	if line != "\n" {
		out.WriteString(line)
	} else if breaks.Len() == 0 {
		out.WriteByte(' ')
	}
	out.WriteString(breaks.String())
}
