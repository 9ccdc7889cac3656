package pyyaml

import "slices"

// fetch queues what comes next: one token with the collection starts and ends that its place implies.
func (s *scanner) fetch() {
	s.skipToToken()
	s.dropStaleKeys()
	if s.err != nil {
		return
	}
	s.unwind(s.column)
	r := s.peek(0)
	switch {
	case r == eof:
		s.fetchEnd()
	case r == '%' && s.column == 0:
		s.closeBlocks()
		s.scanDirective()
	case s.atDocumentMark('-'):
		s.closeBlocks()
		s.addChars(tokDocumentStart, 3)
	case s.atDocumentMark('.'):
		s.closeBlocks()
		s.addChars(tokDocumentEnd, 3)
	case !s.fetchIndicator(r):
		s.fetchContent(r)
	}
}

// atDocumentMark reports whether a line of three r stands here.
func (s *scanner) atDocumentMark(r rune) bool {
	return s.column == 0 && s.documentMark(r)
}

func (s *scanner) documentMark(r rune) bool {
	return s.peek(0) == r && s.peek(1) == r && s.peek(2) == r && endsWord(s.peek(3))
}

// atSeparator reports whether either document mark stands here.
func (s *scanner) atSeparator() bool { return s.documentMark('-') || s.documentMark('.') }

func (s *scanner) fetchEnd() {
	s.closeBlocks()
	if s.err != nil {
		return
	}
	for i := range s.keys {
		s.keys[i].live = false
	}
	s.addHere(tokStreamEnd)
	s.done = true
}

// closeBlocks ends all block collections.
func (s *scanner) closeBlocks() {
	s.unwind(-1)
	s.dropKey(s.flow)
	s.keyAllowed = false
}

// fetchIndicator queues the token of the indicator r, if it is one here.
func (s *scanner) fetchIndicator(r rune) bool {
	switch {
	case r == '[':
		s.fetchFlowStart(tokFlowSequence)
	case r == '{':
		s.fetchFlowStart(tokFlowMapping)
	case r == ']':
		s.fetchFlowEnd(tokFlowSequenceEnd)
	case r == '}':
		s.fetchFlowEnd(tokFlowMappingEnd)
	case r == ',':
		s.keyAllowed = true
		s.dropKey(s.flow)
		s.addChars(tokFlowEntry, 1)
	case r == '-' && endsWord(s.peek(1)):
		s.fetchBlockEntry()
	case r == '?' && (s.flow > 0 || endsWord(s.peek(1))):
		s.fetchKey()
	case r == ':' && (s.flow > 0 || endsWord(s.peek(1))):
		s.fetchValue()
	default:
		return false
	}
	return true
}

// fetchContent queues an alias, an anchor, a tag or a scalar.
func (s *scanner) fetchContent(r rune) {
	switch {
	case r == '|' && s.flow == 0, r == '>' && s.flow == 0:
		s.keyAllowed = true
		s.dropKey(s.flow)
		s.scanBlockScalar(r == '>')
		return
	case r == '*', r == '&', r == '!', r == '\'', r == '"', s.beginsPlain(r):
	default:
		s.fail(s.mark, "no token begins with %s%s", show(r), hintFor(r))
		return
	}
	s.saveKey()
	s.keyAllowed = false
	if s.err != nil {
		return
	}
	switch r {
	case '*':
		s.scanName(tokAlias, "alias")
	case '&':
		s.scanName(tokAnchor, "anchor")
	case '!':
		s.scanTag()
	case '\'', '"':
		s.scanQuoted(r)
	default:
		s.scanPlain()
	}
}

// hintFor adds what a user most often got wrong.
func hintFor(r rune) string {
	switch r {
	case '\t':
		return "; indent with spaces"
	case '@', '`', '%':
		return "; put the text in quotes"
	}
	return ""
}

// beginsPlain reports whether r begins a scalar without quotes.
func (s *scanner) beginsPlain(r rune) bool {
	if endsWord(r) {
		return false
	}
	switch r {
	case '-':
		return !endsWord(s.peek(1))
	case '?', ':':
		return s.flow == 0 && !endsWord(s.peek(1))
	case ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`':
		return false
	}
	return true
}

func (s *scanner) fetchFlowStart(kind tokenKind) {
	s.saveKey()
	s.flow++
	s.keys = append(s.keys, possibleKey{})
	s.keyAllowed = true
	s.addChars(kind, 1)
}

func (s *scanner) fetchFlowEnd(kind tokenKind) {
	s.dropKey(s.flow)
	s.flow = max(s.flow-1, 0)
	s.keys = s.keys[:s.flow+1]
	s.firstKey = min(s.firstKey, s.flow)
	s.keyAllowed = false
	s.addChars(kind, 1)
}

func (s *scanner) fetchBlockEntry() {
	if s.flow == 0 {
		if !s.keyAllowed {
			s.fail(s.mark, "a list entry ('- ') can't begin here; put it on a line of its own")
			return
		}
		if s.deepen(s.column) {
			s.addHere(tokBlockSequence)
		}
	}
	s.keyAllowed = true
	s.dropKey(s.flow)
	s.addChars(tokBlockEntry, 1)
}

func (s *scanner) fetchKey() {
	if s.flow == 0 {
		if !s.keyAllowed {
			s.fail(s.mark, "a key ('? ') can't begin here; put it on a line of its own")
			return
		}
		if s.deepen(s.column) {
			s.addHere(tokBlockMapping)
		}
	}
	s.keyAllowed = s.flow == 0
	s.dropKey(s.flow)
	s.addChars(tokKey, 1)
}

// fetchValue queues ":"; when a key may have begun before it, the key's token is put in at that place.
func (s *scanner) fetchValue() {
	if k := &s.keys[s.flow]; k.live {
		k.live = false
		at := s.head + k.token - s.taken
		if s.flow == 0 && s.deepen(k.at.column) {
			s.queue = slices.Insert(s.queue, at, token{kind: tokBlockMapping, start: k.at, end: k.at})
			at++
		}
		s.queue = slices.Insert(s.queue, at, token{kind: tokKey, start: k.at, end: k.at})
		s.keyAllowed = false
	} else {
		if s.flow == 0 {
			if !s.keyAllowed {
				s.fail(s.mark, "a value (': ') can't begin here; put a text that holds ': ' in quotes")
				return
			}
			if s.deepen(s.column) {
				s.addHere(tokBlockMapping)
			}
		}
		s.keyAllowed = s.flow == 0
		s.dropKey(s.flow)
	}
	s.addChars(tokValue, 1)
}
