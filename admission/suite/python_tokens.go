package suite

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A script's docstring counts only when the whole script is Python: where it is not, the client shows nothing. So the script is
// taken apart into tokens, as Python does, and its statements are held to the shapes that Python has (python_syntax.go).
// Nothing is executed. What a full grammar would refuse beyond that passes; the price is a summary too many.

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokenName tokenKind = iota
	tokenNumber
	tokenString
	tokenOp
	tokenNewline
	tokenIndent
	tokenDedent
)

// token is one token. The text of a string is its value.
type token struct {
	kind   tokenKind
	text   string
	prefix string // of a string: its letters in lower case
}

// is reports whether the token is the operator or keyword.
func (t token) is(text string) bool {
	return t.text == text && (t.kind == tokenOp || t.kind == tokenName)
}

// lexer takes a script apart.
type lexer struct {
	src      string
	at       int
	tokens   []token
	brackets []byte
	indents  []indent
	ok       bool
}

// indent is how far a line stands in, with tabs of eight and of one: where the two disagree, tabs and blanks are mixed.
type indent struct{ eight, one int }

// tokenize takes a script apart; not ok where Python would not.
func tokenize(src string) (tokens []token, ok bool) {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	if strings.ContainsRune(src, 0) || strings.HasPrefix(src, "\uFEFF") {
		return nil, false
	}
	l := &lexer{src: src, indents: []indent{{}}, ok: true}
	for l.ok && l.at < len(l.src) {
		l.line()
	}
	if !l.ok || len(l.brackets) > 0 {
		return nil, false
	}
	l.newline()
	for range len(l.indents) - 1 {
		l.emit(tokenDedent, "")
	}
	return l.tokens, true
}

func (l *lexer) emit(k tokenKind, text string) {
	l.tokens = append(l.tokens, token{kind: k, text: text})
}

// newline ends a logical line that holds something.
func (l *lexer) newline() {
	if n := len(l.tokens); n > 0 && l.tokens[n-1].kind < tokenNewline {
		l.emit(tokenNewline, "")
	}
}

// line reads a logical line with its indentation.
func (l *lexer) line() {
	in := l.margin()
	if l.at >= len(l.src) || l.src[l.at] == '\n' || l.src[l.at] == '#' {
		l.skipComment()
		l.at = min(l.at+1, len(l.src))
		return
	}
	if l.indent(in); !l.ok {
		return
	}
	for l.ok && l.at < len(l.src) {
		switch c := l.src[l.at]; {
		case c == '\n':
			l.at++
			if len(l.brackets) == 0 {
				l.newline()
				return
			}
		case c == ' ' || c == '\t' || c == '\f':
			l.at++
		case c == '#':
			l.skipComment()
		case c == '\\':
			if !strings.HasPrefix(l.src[l.at:], "\\\n") || l.at+2 >= len(l.src) {
				l.ok = false
			}
			l.at += 2
		default:
			l.token(c)
		}
	}
}

// margin measures the blanks before a line.
func (l *lexer) margin() (in indent) {
	for ; l.at < len(l.src); l.at++ {
		switch l.src[l.at] {
		case ' ':
			in.eight++
			in.one++
		case '\t':
			in.eight = in.eight/8*8 + 8
			in.one++
		case '\f':
			in = indent{}
		default:
			return in
		}
	}
	return in
}

func (l *lexer) skipComment() {
	if end := strings.IndexByte(l.src[l.at:], '\n'); end >= 0 {
		l.at += end
		return
	}
	l.at = len(l.src)
}

// maxIndents is how deep Python nests blocks.
const maxIndents = 100

// indent opens and closes blocks.
func (l *lexer) indent(in indent) {
	top := l.indents[len(l.indents)-1]
	switch {
	case in == top:
	case in.eight > top.eight && in.one > top.one:
		if l.ok = len(l.indents) < maxIndents; l.ok {
			l.indents = append(l.indents, in)
			l.emit(tokenIndent, "")
		}
	case in.eight < top.eight && in.one < top.one:
		for len(l.indents) > 1 && l.indents[len(l.indents)-1].eight > in.eight {
			l.indents = l.indents[:len(l.indents)-1]
			l.emit(tokenDedent, "")
		}
		l.ok = l.indents[len(l.indents)-1] == in
	default:
		l.ok = false // tabs and blanks are mixed
	}
}

// token reads a token that begins with c.
func (l *lexer) token(c byte) {
	switch rest := l.src[l.at:]; {
	case c == '"' || c == '\'':
		l.stringToken("")
	case c >= '0' && c <= '9' || c == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		l.number()
	case c == '_' || c >= utf8.RuneSelf || c|0x20 >= 'a' && c|0x20 <= 'z':
		l.name()
	default:
		l.operator(rest)
	}
}

func (l *lexer) name() {
	start := l.at
	for l.at < len(l.src) {
		r, n := utf8.DecodeRuneInString(l.src[l.at:])
		first := r == '_' || unicode.IsLetter(r) || unicode.Is(unicode.Nl, r) || unicode.Is(unicode.Other_ID_Start, r)
		if !first && (l.at == start || !unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)) {
			break
		}
		l.at += n
	}
	text := l.src[start:l.at]
	if text == "" {
		l.ok = false
		return
	}
	if l.at < len(l.src) && (l.src[l.at] == '"' || l.src[l.at] == '\'') {
		switch p := strings.ToLower(text); p {
		case "r", "u", "b", "f", "br", "rb", "fr", "rf":
			l.stringToken(p)
			return
		}
	}
	l.emit(tokenName, text)
}

// number reads a number as far as its characters go and holds it to Python's forms.
func (l *lexer) number() {
	start := l.at
	for l.at < len(l.src) {
		c := l.src[l.at]
		sign := (c == '+' || c == '-') && l.at > start && l.src[l.at-1]|0x20 == 'e' && !isBased(l.src[start:l.at])
		if !sign && c != '.' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			break
		}
		l.at++
	}
	text := strings.ToLower(l.src[start:l.at])
	if !isNumber(text) {
		l.keywordAfterNumber(start)
		return
	}
	l.emit(tokenNumber, text)
}

// keywordAfterNumber takes apart what Python still allows: a keyword that follows a number without a blank (1if x else 2).
func (l *lexer) keywordAfterNumber(start int) {
	text := l.src[start:l.at]
	for _, word := range []string{"if", "else", "and", "or", "in", "is", "not", "for"} {
		if number, ok := strings.CutSuffix(text, word); ok && isNumber(strings.ToLower(number)) {
			l.emit(tokenNumber, number)
			l.emit(tokenName, word)
			return
		}
	}
	l.ok = false
}

func isBased(text string) bool {
	return len(text) > 1 && text[0] == '0' && strings.ContainsRune("xobXOB", rune(text[1]))
}

// isNumber reports whether a lower-case text is a number of Python.
func isNumber(text string) bool {
	if strings.HasSuffix(text, "_") || strings.Contains(text, "__") || strings.Contains(text, "_.") || strings.Contains(text, "._") {
		return false
	}
	plain := strings.ReplaceAll(text, "_", "")
	only := func(s, set string) bool { return s != "" && strings.Trim(s, set) == "" }
	switch {
	case strings.HasPrefix(plain, "0x"):
		return only(plain[2:], "0123456789abcdef")
	case strings.HasPrefix(plain, "0o"):
		return only(plain[2:], "01234567")
	case strings.HasPrefix(plain, "0b"):
		return only(plain[2:], "01")
	}
	plain, imaginary := strings.CutSuffix(plain, "j")
	mantissa, exponent, scientific := strings.Cut(plain, "e")
	whole, fraction, pointed := strings.Cut(mantissa, ".")
	if scientific && !only(strings.TrimLeft(exponent[:min(1, len(exponent))], "+-")+exponent[min(1, len(exponent)):], "0123456789") {
		return false
	}
	if whole != "" && !only(whole, "0123456789") || fraction != "" && !only(fraction, "0123456789") || whole+fraction == "" {
		return false
	}
	octal := len(whole) > 1 && whole[0] == '0' && strings.Trim(whole, "0") != ""
	return !octal || pointed || scientific || imaginary
}

// operators are Python's, the longest first.
var operators = []string{
	"**=", "//=", ">>=", "<<=", "...", "->", ":=", "==", "!=", "<=", ">=", "<<", ">>", "**", "//", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=",
	"+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<", ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "=",
}

func (l *lexer) operator(rest string) {
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			l.at += len(op)
			l.emit(tokenOp, op)
			l.bracket(op)
			return
		}
	}
	l.ok = false
}

// bracket keeps the brackets in pairs.
func (l *lexer) bracket(op string) {
	switch op {
	case ";":
		l.ok = len(l.brackets) == 0
	case "(", "[", "{":
		l.brackets = append(l.brackets, op[0])
		l.ok = len(l.brackets) <= 200
	case ")", "]", "}":
		open := map[string]byte{")": '(', "]": '[', "}": '{'}[op]
		n := len(l.brackets)
		if l.ok = n > 0 && l.brackets[n-1] == open; l.ok {
			l.brackets = l.brackets[:n-1]
		}
	}
}
