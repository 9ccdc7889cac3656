package pyyaml

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// scanTag reads a tag: !<uri>, a lone "!", !suffix, !!suffix or !handle!suffix.
func (s *scanner) scanTag() {
	start := s.mark
	t := token{kind: tokTag}
	switch r := s.peek(1); {
	case r == '<':
		s.forward(2)
		t.value = s.tagURI("tag")
		if s.err == nil && s.peek(0) != '>' {
			s.fail(s.mark, "a tag in angle brackets ends with '>'; found %s", show(s.peek(0)))
		}
		s.forward(1)
	case endsWord(r):
		t.value = "!"
		s.forward(1)
	default:
		t.short, t.handle = true, "!"
		if s.wordHasHandle() {
			t.handle = s.tagHandle("tag")
		} else {
			s.forward(1)
		}
		t.value = s.tagURI("tag")
	}
	if s.err != nil {
		return
	}
	if r := s.peek(0); r != ' ' && !endsLine(r) {
		s.fail(s.mark, "a blank was expected after the tag; found %s", show(r))
		return
	}
	s.add(t, start)
}

// wordHasHandle reports whether a second "!" stands in the word that begins here.
func (s *scanner) wordHasHandle() bool {
	for n := 1; ; n++ {
		switch r := s.peek(n); {
		case r == '!':
			return true
		case r == ' ' || endsLine(r):
			return false
		}
	}
}

// tagHandle reads "!", "!!" or "!name!".
func (s *scanner) tagHandle(what string) string {
	if s.peek(0) != '!' {
		s.fail(s.mark, "the handle of a %s begins with '!'; found %s", what, show(s.peek(0)))
		return ""
	}
	n := 1
	if s.peek(n) != ' ' {
		for isWord(s.peek(n)) {
			n++
		}
		if r := s.peek(n); r != '!' {
			s.forward(n)
			s.fail(s.mark, "the handle of a %s ends with '!'; found %s", what, show(r))
			return ""
		}
		n++
	}
	return s.take(n)
}

// tagURI reads the characters of a URI; escapes in it are decoded.
func (s *scanner) tagURI(what string) string {
	if s.err != nil {
		return ""
	}
	var b strings.Builder
	for {
		r := s.peek(0)
		switch {
		case r == '%':
			s.uriEscapes(&b, what)
		case !isWord(r) && !strings.ContainsRune(";/?:@&=+$,.!~*'()[]", r):
			if b.Len() == 0 && s.err == nil {
				s.fail(s.mark, "a URI was expected in the %s; found %s", what, show(r))
			}
			return b.String()
		default:
			b.WriteRune(r)
			s.forward(1)
		}
		if s.err != nil {
			return ""
		}
	}
}

// uriEscapes reads a run of %xx, which must be UTF-8.
func (s *scanner) uriEscapes(b *strings.Builder, what string) {
	at := s.mark
	var codes []byte
	for s.peek(0) == '%' {
		s.forward(1)
		for k := range 2 {
			if r := s.peek(k); !isHex(r) {
				s.fail(s.mark, "two hex digits were expected after '%%' in the %s; found %s", what, show(r))
				return
			}
		}
		code, _ := strconv.ParseUint(s.take(2), 16, 8)
		codes = append(codes, byte(code))
	}
	if !utf8.Valid(codes) {
		s.fail(at, "the escapes in the %s are no UTF-8", what)
		return
	}
	b.Write(codes)
}

// scanDirective reads a line that begins with "%". Those other than YAML and TAG mean nothing.
func (s *scanner) scanDirective() {
	if s.err != nil {
		return
	}
	start := s.mark
	s.forward(1)
	n := 0
	for isWord(s.peek(n)) {
		n++
	}
	t := token{kind: tokDirective, handle: s.take(n)}
	if r := s.peek(0); n == 0 || (r != ' ' && !endsLine(r)) {
		s.fail(s.mark, "the name of a directive has letters, digits, '-' and '_'; found %s", show(r))
		return
	}
	switch t.handle {
	case "YAML":
		s.spaces()
		t.value = s.versionNumber()
		if s.err == nil && s.peek(0) != '.' {
			s.fail(s.mark, "a version such as 1.1 was expected; found %s", show(s.peek(0)))
		}
		s.forward(1)
		s.versionNumber()
		s.directiveValueEnds()
	case "TAG":
		s.spaces()
		t.value = s.tagHandle("directive")
		if s.err == nil && s.peek(0) != ' ' {
			s.fail(s.mark, "a blank was expected after the handle; found %s", show(s.peek(0)))
		}
		s.spaces()
		t.prefix = s.tagURI("directive")
		s.directiveValueEnds()
	default:
		s.skipLine()
	}
	if s.err != nil {
		return
	}
	end := s.mark
	s.restOfLine("a directive")
	t.start, t.end = start, end
	s.queue = append(s.queue, t)
}

func (s *scanner) versionNumber() string {
	n := 0
	for r := s.peek(n); r >= '0' && r <= '9'; r = s.peek(n) {
		n++
	}
	if n == 0 && s.err == nil {
		s.fail(s.mark, "a digit was expected; found %s", show(s.peek(0)))
	}
	return s.take(n)
}

func (s *scanner) directiveValueEnds() {
	if r := s.peek(0); s.err == nil && r != ' ' && !endsLine(r) {
		s.fail(s.mark, "a blank or the end of the line was expected after the directive; found %s", show(r))
	}
}
