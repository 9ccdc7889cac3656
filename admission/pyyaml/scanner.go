package pyyaml

// maxKey is how many characters a key without "?" may have, its ":" included; it also ends on its line.
const maxKey = 1024

// scanner cuts a text into tokens as YAML 1.1 and the clients' reader do. Its hard part is that a key is known as
// such only at the ":" after it, so tokens wait in a queue while one of them may still turn out to begin a key.
//
// The first fault stays in err and moves the scanner to the end of the text, so that every loop ends.
type scanner struct {
	text []rune
	mark
	err *fault

	flow    int     // open brackets and braces
	indent  int     // column of the innermost block collection, -1 outside
	indents []int   // the columns outside it
	queue   []token // tokens that are cut; those before head are taken
	head    int
	taken   int  // tokens taken
	done    bool // the end of the text is queued

	// keyAllowed says that a key without "?" may begin here; in block context also that a collection may.
	keyAllowed bool
	// keys[n] is the place, n brackets deep, where a key may have begun. Those below firstKey are void.
	keys     []possibleKey
	firstKey int
}

// possibleKey is a place where a key may have begun.
type possibleKey struct {
	live     bool
	required bool // the indentation leaves no other reading
	token    int  // number of its token, counted from the first of the text
	at       mark
}

func newScanner(text []rune) *scanner {
	return &scanner{text: text, indent: -1, keyAllowed: true, keys: make([]possibleKey, 1)}
}

// fail keeps the first fault and ends the scan.
func (s *scanner) fail(at mark, format string, args ...any) {
	if s.err == nil {
		s.err = newFault("yaml.syntax", at, format, args...)
	}
	s.offset = len(s.text)
}

// peek is the character k places on.
func (s *scanner) peek(k int) rune {
	if i := s.offset + k; i < len(s.text) {
		return s.text[i]
	}
	return eof
}

// forward moves on over n characters.
func (s *scanner) forward(n int) {
	for ; n > 0 && s.offset < len(s.text); n-- {
		s.step(s.text[s.offset])
	}
}

// take moves on over n characters and returns them.
func (s *scanner) take(n int) string {
	from := s.offset
	s.forward(n)
	return string(s.text[from:s.offset])
}

// spaces moves on over blanks that are no tabs.
func (s *scanner) spaces() {
	for s.peek(0) == ' ' {
		s.forward(1)
	}
}

// lineBreak moves on over one line break and returns what it counts as in a scalar, "" when there is none.
func (s *scanner) lineBreak() string {
	switch r := s.peek(0); r {
	case '\n', 0x85:
		s.forward(1)
		return "\n"
	case 0x2028, 0x2029:
		s.forward(1)
		return string(r)
	}
	return ""
}

// token is the next token, without taking it.
func (s *scanner) token() (*token, *fault) {
	for s.err == nil && s.needsMore() {
		s.fetch()
	}
	if s.err != nil {
		return nil, s.err
	}
	return &s.queue[s.head], nil
}

// next takes the next token. token must have returned it before.
func (s *scanner) next() token {
	t := s.queue[s.head]
	s.head++
	s.taken++
	if s.head == len(s.queue) {
		s.queue, s.head = s.queue[:0], 0
	}
	return t
}

// needsMore reports whether the first queued token may still turn out to begin a key.
func (s *scanner) needsMore() bool {
	if s.done {
		return false
	}
	if s.head == len(s.queue) {
		return true
	}
	s.dropStaleKeys()
	for _, k := range s.keys[s.firstKey:] {
		if k.live {
			return k.token == s.taken
		}
	}
	return false
}

// dropStaleKeys voids the places that are too far back. Outer ones lie further back than inner ones.
func (s *scanner) dropStaleKeys() {
	for s.firstKey < len(s.keys) {
		k := &s.keys[s.firstKey]
		if k.live && k.at.line == s.line && s.offset-k.at.offset <= maxKey {
			return
		}
		if k.live {
			s.dropKey(s.firstKey)
		}
		if s.firstKey == len(s.keys)-1 {
			return
		}
		s.firstKey++
	}
}

// dropKey voids the place at a level; a required key that found no ":" is a fault.
func (s *scanner) dropKey(level int) {
	k := &s.keys[level]
	if k.live && k.required {
		s.fail(s.mark, "the key that begins in line %d column %d has no ':' after it", k.at.line+1, k.at.column+1)
	}
	k.live = false
}

// saveKey notes that a key may begin here.
func (s *scanner) saveKey() {
	if !s.keyAllowed {
		return
	}
	s.dropKey(s.flow)
	s.keys[s.flow] = possibleKey{
		live: true, required: s.flow == 0 && s.indent == s.column, token: s.taken + len(s.queue) - s.head, at: s.mark,
	}
	s.firstKey = min(s.firstKey, s.flow)
}

// add queues a token that began at start and ends here.
func (s *scanner) add(t token, start mark) {
	t.start, t.end = start, s.mark
	s.queue = append(s.queue, t)
}

// addHere queues a token without characters.
func (s *scanner) addHere(kind tokenKind) { s.add(token{kind: kind}, s.mark) }

// addChars queues a token of n characters.
func (s *scanner) addChars(kind tokenKind, n int) {
	start := s.mark
	s.forward(n)
	s.add(token{kind: kind}, start)
}

// unwind ends the block collections that are indented deeper than column.
func (s *scanner) unwind(column int) {
	if s.flow > 0 {
		return
	}
	for s.indent > column {
		last := len(s.indents) - 1
		s.indent, s.indents = s.indents[last], s.indents[:last]
		s.addHere(tokBlockEnd)
	}
}

// deepen opens a block collection at column unless one is open there.
func (s *scanner) deepen(column int) bool {
	if s.indent >= column {
		return false
	}
	s.indents = append(s.indents, s.indent)
	s.indent = column
	return true
}

// skipToToken moves on over blanks, comments and line breaks.
func (s *scanner) skipToToken() {
	if s.offset == 0 && s.peek(0) == '\uFEFF' {
		s.forward(1)
	}
	for {
		s.spaces()
		if s.peek(0) == '#' {
			s.skipLine()
		}
		if s.lineBreak() == "" {
			return
		}
		if s.flow == 0 {
			s.keyAllowed = true
		}
	}
}

// skipLine moves on to the end of the line.
func (s *scanner) skipLine() {
	for !endsLine(s.peek(0)) {
		s.forward(1)
	}
}
