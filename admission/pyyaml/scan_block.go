package pyyaml

import "strings"

// chomping is what happens to the line breaks at the end of a block scalar.
type chomping uint8

const (
	clip  chomping = iota // one stays
	strip                 // "-": none stays
	keep                  // "+": all stay
)

// scanBlockScalar reads a literal ("|") or folded (">") scalar.
func (s *scanner) scanBlockScalar(folded bool) {
	start := s.mark
	s.forward(1)
	chomp, increment := s.blockHeader()
	if s.err != nil {
		return
	}
	indent := max(s.indent+1, 1)
	var breaks string
	var end mark
	if increment == 0 {
		var widest int
		breaks, widest, end = s.blockIndentation()
		indent = max(indent, widest)
	} else {
		indent += increment - 1
		breaks, end = s.blockBreaks(indent)
	}
	var text strings.Builder
	line := ""
	for s.column == indent && s.peek(0) != eof {
		text.WriteString(breaks)
		blank := isBlank(s.peek(0))
		n := 0
		for !endsLine(s.peek(n)) {
			n++
		}
		text.WriteString(s.take(n))
		line = s.lineBreak()
		breaks, end = s.blockBreaks(indent)
		if s.column != indent || s.peek(0) == eof {
			break
		}
		if !folded || line != "\n" || blank || isBlank(s.peek(0)) {
			text.WriteString(line)
		} else if breaks == "" {
			text.WriteByte(' ')
		}
	}
	if chomp != strip {
		text.WriteString(line)
	}
	if chomp == keep {
		text.WriteString(breaks)
	}
	s.queue = append(s.queue, token{kind: tokScalar, value: text.String(), start: start, end: end})
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' }

// blockHeader reads the indicators after "|" or ">" and the rest of that line. The increment is 0 when none is given.
func (s *scanner) blockHeader() (chomp chomping, increment int) {
	chomp = s.chompIndicator()
	increment = s.indentIndicator()
	if chomp == clip && increment > 0 {
		chomp = s.chompIndicator()
	}
	if r := s.peek(0); s.err == nil && r != ' ' && !endsLine(r) {
		s.fail(s.mark, "after '|' or '>' stand '+', '-' or a digit, then the line ends; found %s", show(r))
	}
	if s.err == nil {
		s.restOfLine("a block scalar")
	}
	return chomp, increment
}

func (s *scanner) chompIndicator() chomping {
	switch s.peek(0) {
	case '+':
		s.forward(1)
		return keep
	case '-':
		s.forward(1)
		return strip
	}
	return clip
}

func (s *scanner) indentIndicator() int {
	r := s.peek(0)
	switch {
	case r == '0':
		s.fail(s.mark, "the indentation of a block scalar is 1 to 9; found 0")
		return 0
	case r > '0' && r <= '9':
		s.forward(1)
		return int(r - '0')
	}
	return 0
}

// restOfLine reads blanks and a comment up to the end of the line.
func (s *scanner) restOfLine(after string) {
	s.spaces()
	if s.peek(0) == '#' {
		s.skipLine()
	}
	if r := s.peek(0); !endsLine(r) {
		s.fail(s.mark, "a comment or the end of the line was expected after the header of %s; found %s", after, show(r))
		return
	}
	s.lineBreak()
}

// blockIndentation reads the empty lines before a block scalar's text and finds its widest indentation.
func (s *scanner) blockIndentation() (breaks string, widest int, end mark) {
	var b strings.Builder
	end = s.mark
	for r := s.peek(0); r == ' ' || isBreak(r); r = s.peek(0) {
		if r == ' ' {
			s.forward(1)
			widest = max(widest, s.column)
			continue
		}
		b.WriteString(s.lineBreak())
		end = s.mark
	}
	return b.String(), widest, end
}

// blockBreaks reads the indentation and the empty lines before the next line of a block scalar.
func (s *scanner) blockBreaks(indent int) (breaks string, end mark) {
	var b strings.Builder
	end = s.mark
	s.blockIndent(indent)
	for isBreak(s.peek(0)) {
		b.WriteString(s.lineBreak())
		end = s.mark
		s.blockIndent(indent)
	}
	return b.String(), end
}

func (s *scanner) blockIndent(indent int) {
	for s.column < indent && s.peek(0) == ' ' {
		s.forward(1)
	}
}
