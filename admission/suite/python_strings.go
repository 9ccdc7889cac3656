package suite

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/digest/wtf8"
)

// stringToken reads a string whose prefix, in lower case, was read already.
func (l *lexer) stringToken(prefix string) {
	quote := l.src[l.at : l.at+1]
	if strings.HasPrefix(l.src[l.at:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	l.at += len(quote)
	start := l.at
	for {
		rest := l.src[l.at:]
		switch {
		case rest == "" || rest[0] == '\n' && len(quote) == 1:
			l.ok = false
			return
		case strings.HasPrefix(rest, quote):
			l.at += len(quote)
			l.addString(prefix, l.src[start:l.at-len(quote)])
			return
		case rest[0] == '\\':
			l.at += min(2, len(rest))
		default:
			l.at++
		}
	}
}

func (l *lexer) addString(prefix, raw string) {
	t := token{kind: tokenString, prefix: prefix, text: raw}
	switch {
	case strings.Contains(prefix, "f"):
		l.ok = balancedBraces(raw)
	case strings.Contains(prefix, "b"):
		l.ok = !strings.ContainsFunc(raw, func(r rune) bool { return r >= utf8.RuneSelf })
	case !strings.Contains(prefix, "r"):
		t.text, l.ok = unescape(raw)
	}
	l.tokens = append(l.tokens, t)
}

// balancedBraces holds that every brace of an f-string has its partner.
func balancedBraces(raw string) bool {
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case depth == 0 && (c == '{' || c == '}') && i+1 < len(raw) && raw[i+1] == c:
			i++
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth < 0 {
				return false
			}
		}
	}
	return depth == 0
}

// simpleEscapes are the escapes of one letter.
var simpleEscapes = map[byte]string{
	'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v",
}

// unescape is the value of a string that is not raw. An unknown escape stands for itself; a character's name, which only
// Python's own tables know, is left as it is written.
func unescape(raw string) (string, bool) {
	if !strings.Contains(raw, `\`) {
		return raw, true
	}
	var b strings.Builder
	for i := 0; i < len(raw); {
		if raw[i] != '\\' || i+1 == len(raw) {
			b.WriteByte(raw[i])
			i++
			continue
		}
		c := raw[i+1]
		if text, ok := simpleEscapes[c]; ok {
			b.WriteString(text)
			i += 2
			continue
		}
		width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		switch {
		case c >= '0' && c <= '7':
			end := i + 2
			for end < len(raw) && end < i+4 && raw[end] >= '0' && raw[end] <= '7' {
				end++
			}
			n, _ := strconv.ParseUint(raw[i+1:end], 8, 32) // digits only
			b.WriteRune(rune(n))
			i = end
		case width > 0:
			n, ok := hexRune(raw[i+2:], width)
			if !ok {
				return "", false
			}
			b.Write(wtf8.AppendRune(nil, n))
			i += 2 + width
		case c == 'N':
			end := strings.IndexByte(raw[i:], '}')
			if !strings.HasPrefix(raw[i+2:], "{") || end < 0 {
				return "", false
			}
			b.WriteString(raw[i : i+end+1])
			i += end + 1
		default:
			b.WriteByte('\\')
			i++
		}
	}
	return b.String(), true
}

func hexRune(s string, width int) (rune, bool) {
	if len(s) < width {
		return 0, false
	}
	n, err := strconv.ParseUint(s[:width], 16, 32)
	return rune(n), err == nil && n <= 0x10FFFF && s[0] != '+' && s[0] != '-'
}
