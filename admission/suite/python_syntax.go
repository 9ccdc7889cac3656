package suite

import "slices"

// docstring is the value of a script's docstring, "" when it has none or is no Python.
func docstring(src string) string {
	tokens, ok := tokenize(src)
	if !ok || !isPython(tokens) {
		return ""
	}
	i, open := 0, 0
	for i < len(tokens) && tokens[i].is("(") {
		i++
		open++
	}
	text, parts := "", 0
	for ; i < len(tokens) && tokens[i].kind == tokenString; i++ {
		if tokens[i].prefix != "" && tokens[i].prefix != "r" && tokens[i].prefix != "u" {
			return ""
		}
		text += tokens[i].text
		parts++
	}
	for ; open > 0 && i < len(tokens) && tokens[i].is(")"); i++ {
		open--
	}
	if parts == 0 || open > 0 || i < len(tokens) && tokens[i].kind != tokenNewline && !tokens[i].is(";") {
		return ""
	}
	return text
}

var keywords = []string{
	"False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except", "finally", "for",
	"from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
}

// Words that begin a statement with a block; the last two only where the line ends in a colon.
var (
	blockWords = []string{"if", "elif", "else", "while", "for", "try", "except", "finally", "with", "def", "class", "match", "case"}
	softWords  = []string{"match", "case", "type"}
	values     = []string{"True", "False", "None"}
)

// follows says which statements may stand before one that continues a compound statement.
var follows = map[string][]string{
	"elif": {"if", "elif"}, "else": {"if", "elif", "for", "while", "except"}, "except": {"try", "except"}, "finally": {"try", "except", "else"},
}

// isPython holds the statements of a script to the shapes that Python has.
func isPython(tokens []token) bool {
	s := &syntax{before: []string{""}}
	for start := 0; start < len(tokens); {
		switch tokens[start].kind {
		case tokenIndent:
			if !s.block {
				return false
			}
			s.block = false
			s.before = append(s.before, "")
			start++
			continue
		case tokenDedent:
			if s.block || !s.leave() {
				return false
			}
			start++
			continue
		}
		end := start
		for tokens[end].kind != tokenNewline {
			end++
		}
		if s.block || !s.statement(tokens[start:end]) {
			return false
		}
		start = end + 1
	}
	return !s.block && s.before[0] != "try"
}

// syntax is where in a script the check stands.
type syntax struct {
	block  bool     // a block has to begin
	before []string // by level of indentation: the word that the statement before began with
}

// leave ends a block.
func (s *syntax) leave() bool {
	n := len(s.before) - 1
	unfinished := s.before[n] == "try"
	s.before = s.before[:n]
	return !unfinished && n > 0
}

// statement checks a logical line.
func (s *syntax) statement(line []token) bool {
	head := line
	if line[0].is("async") && len(line) > 1 {
		head = line[1:]
	}
	word := ""
	if head[0].kind == tokenName && slices.Contains(blockWords, head[0].text) {
		word = head[0].text
	}
	colon := blockColon(head)
	if (word == "match" || word == "case") && colon != len(head)-1 {
		word = ""
	}
	before := &s.before[len(s.before)-1]
	want, goesOn := follows[word]
	if goesOn && !slices.Contains(want, *before) || !goesOn && *before == "try" {
		return false
	}
	*before = word
	switch {
	case word == "":
		if line[len(line)-1].is(":") {
			return false
		}
	case colon < 0 || !s.opens(head, word):
		return false
	default:
		s.block = colon == len(head)-1
	}
	return shape(line)
}

// opens checks the head of a statement with a block.
func (s *syntax) opens(head []token, word string) bool {
	switch word {
	case "def":
		return len(head) > 2 && isName(head[1]) && (head[2].is("(") || head[2].is("["))
	case "class":
		return len(head) > 1 && isName(head[1])
	case "else", "try", "finally":
		return len(head) > 1 && head[1].is(":")
	case "if", "elif", "while", "with", "for":
		return len(head) > 1 && !head[1].is(":")
	}
	return true
}

func isName(t token) bool { return t.kind == tokenName && !slices.Contains(keywords, t.text) }

// blockColon is the place of the colon that begins a block: outside brackets and lambdas. -1 for none.
func blockColon(line []token) int {
	depth, lambdas := 0, 0
	for i, t := range line {
		switch {
		case t.kind == tokenOp && (t.text == "(" || t.text == "[" || t.text == "{"):
			depth++
		case t.kind == tokenOp && (t.text == ")" || t.text == "]" || t.text == "}"):
			depth--
		case depth > 0:
		case t.is("lambda"):
			lambdas++
		case t.is(":") && t.kind == tokenOp && lambdas > 0:
			lambdas--
		case t.is(":") && t.kind == tokenOp:
			return i
		}
	}
	return -1
}

// Operators that need something on their right, and such as can't begin it.
var (
	needRight = []string{
		"+", "-", "%", "@", "<<", ">>", "&", "|", "^", "<", ">", "<=", ">=", "==", "!=", "=", "+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=",
		"<<=", ">>=", "**=", ":=", "->", "//", "**", "~", "and", "or", "not", "in", "is",
		"import", "as", "del", "assert", "global", "nonlocal", "await", "class", "def", "while", "for", "with", "if", "elif",
	}
	onlyBetween = []string{
		"%", "@", "<<", ">>", "&", "|", "^", "<", ">", "<=", ">=", "==", "!=", "=", "+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=", "<<=", ">>=", "**=",
		":=", "->", "//", "/", "and", "or", "in", "is", ".", ",", ")", "]", "}", ";", ":",
	}
)

func in(t token, list []string) bool {
	return (t.kind == tokenOp || t.kind == tokenName) && slices.Contains(list, t.text)
}

// shape checks which token may follow which in one line.
func shape(line []token) bool {
	for i, t := range line {
		if i == 0 {
			if in(t, onlyBetween) && !t.is("@") {
				return false
			}
			continue
		}
		before := line[i-1]
		switch {
		case ends(before) && begins(t) && !adjacent(line, i):
			return false
		case (in(before, needRight) || before.is(";")) && in(t, onlyBetween) && !(before.is("not") && t.is("in")):
			return false
		case i == 1 && t.is(":=") && line[0].kind == tokenName: // of a whole statement, not in brackets
			return false
		case before.is(".") && before.kind == tokenOp && !line[0].is("from") && t.kind != tokenName:
			return false
		}
	}
	last := line[len(line)-1]
	star := (last.is("*") || last.is("/")) && !line[0].is("from")
	return !in(last, needRight) && !last.is(".") && !last.is("from") && !star && !parts(line)
}

// ends reports whether an expression may end with the token.
func ends(t token) bool {
	switch t.kind {
	case tokenName:
		return isName(t) || slices.Contains(values, t.text)
	case tokenNumber, tokenString:
		return true
	}
	return t.text == ")" || t.text == "]" || t.text == "}" || t.text == "..."
}

// begins reports whether the token begins an expression and never goes on with one.
func begins(t token) bool {
	switch t.kind {
	case tokenName:
		return isName(t) || slices.Contains(values, t.text) || t.text == "lambda"
	case tokenNumber, tokenString:
		return true
	}
	return t.text == "{" || t.text == "~" || t.text == "..."
}

// adjacent reports whether two expressions side by side are right all the same: strings, the dots of a relative import, and
// what follows a soft keyword.
func adjacent(line []token, i int) bool {
	before, t := line[i-1], line[i]
	if before.kind == tokenString && t.kind == tokenString {
		return true
	}
	if before.is("...") && line[0].is("from") {
		return true
	}
	return i == 1 && before.kind == tokenName && slices.Contains(softWords, before.text)
}

// parts reports what only Python 2 takes: a comma behind the exception of except or raise.
func parts(line []token) bool {
	if !line[0].is("except") && !line[0].is("raise") {
		return false
	}
	depth := 0
	for _, t := range line {
		switch {
		case t.kind != tokenOp:
		case t.text == "(" || t.text == "[" || t.text == "{":
			depth++
		case t.text == ")" || t.text == "]" || t.text == "}":
			depth--
		case t.text == "," && depth == 0:
			return true
		}
	}
	return false
}
