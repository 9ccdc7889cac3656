package pep440

import "strings"

// parser reads a version from the front of rest, which is lower-case ASCII. Every method either consumes what it
// names or leaves rest as it was.
type parser struct {
	rest     string
	overflow bool // a number was too long for Python
}

func (p *parser) version() (v Version, ok bool) {
	p.literal("v")
	if v.epoch, v.release, ok = p.epochAndRelease(); !ok {
		return v, false
	}
	v.pre = p.pre()
	v.post = p.post()
	v.dev = p.dev()
	if v.local, ok = p.localLabel(); !ok {
		return v, false
	}
	return v, true
}

func (p *parser) epochAndRelease() (epoch number, release []number, ok bool) {
	first, ok := p.number()
	if !ok {
		return "", nil, false
	}
	if p.literal("!") {
		epoch = first
		if first, ok = p.number(); !ok {
			return "", nil, false
		}
	}
	release = []number{first}
	for {
		mark := p.rest
		if !p.literal(".") {
			return epoch, release, true
		}
		n, ok := p.number()
		if !ok {
			p.rest = mark
			return epoch, release, true
		}
		release = append(release, n)
	}
}

// preLetters are the spellings of pre-release letters and their normal forms. A spelling stands before its own
// beginnings, so that the first that fits is the longest.
var preLetters = []struct{ spelling, letter string }{
	{"alpha", "a"}, {"beta", "b"}, {"preview", "rc"}, {"pre", "rc"}, {"rc", "rc"}, {"a", "a"}, {"b", "b"}, {"c", "rc"},
}

func (p *parser) pre() *part {
	mark := p.rest
	p.separator()
	for _, l := range preLetters {
		if p.literal(l.spelling) {
			return &part{l.letter, p.optionalNumber()}
		}
	}
	p.rest = mark
	return nil
}

func (p *parser) post() *number {
	mark := p.rest
	if p.literal("-") {
		if n, ok := p.number(); ok {
			return &n
		}
		p.rest = mark
	}
	return p.lettered("post", "rev", "r")
}

func (p *parser) dev() *number { return p.lettered("dev") }

// lettered reads an optional separator, one of the words and an optional number.
func (p *parser) lettered(words ...string) *number {
	mark := p.rest
	p.separator()
	for _, w := range words {
		if p.literal(w) {
			n := p.optionalNumber()
			return &n
		}
	}
	p.rest = mark
	return nil
}

// optionalNumber is what follows a letter: an optional separator and an optional number, 0 when it is absent. The
// separator belongs to the letter even when no number follows.
func (p *parser) optionalNumber() number {
	p.separator()
	n, _ := p.number()
	return n
}

// localLabel reads "+" and dot-separated segments. It fails after a "+" that no segment follows.
func (p *parser) localLabel() (segments []string, ok bool) {
	if !p.literal("+") {
		return nil, true
	}
	for {
		s := p.while(func(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'z' })
		if s == "" {
			return nil, false
		}
		if strings.Trim(s, "0123456789") == "" {
			p.overflow = p.overflow || len(s) > maxDigits
			s = parseNumber(s).String()
		}
		segments = append(segments, s)
		if !p.separator() {
			return segments, true
		}
	}
}

func (p *parser) literal(s string) bool {
	rest, ok := strings.CutPrefix(p.rest, s)
	p.rest = rest
	return ok
}

func (p *parser) separator() bool { return p.literal(".") || p.literal("-") || p.literal("_") }

func (p *parser) number() (number, bool) {
	digits := p.while(isDigit)
	p.overflow = p.overflow || len(digits) > maxDigits
	return parseNumber(digits), digits != ""
}

func (p *parser) while(accept func(byte) bool) string {
	n := 0
	for n < len(p.rest) && accept(p.rest[n]) {
		n++
	}
	s := p.rest[:n]
	p.rest = p.rest[n:]
	return s
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
