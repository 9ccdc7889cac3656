package strictjson

import (
	"strings"
	"unicode"
)

// names are the folded keys of an object, each with the first key of that fold. Most objects have few.
type names struct {
	few  []named
	many map[string]string // in place of few, once there are more than maxFew
}

type named struct{ fold, first string }

const maxFew = 16

// add notes a key. It returns the first key of its fold, when there was one before.
func (n *names) add(fold, key string) (first string, taken bool) {
	if n.many != nil {
		if first, taken = n.many[fold]; !taken {
			n.many[fold] = key
		}
		return first, taken
	}
	for i := range n.few {
		if n.few[i].fold == fold {
			return n.few[i].first, true
		}
	}
	if len(n.few) < maxFew {
		n.few = append(n.few, named{fold, key})
		return "", false
	}
	n.many = make(map[string]string, 2*maxFew)
	for _, k := range n.few {
		n.many[k.fold] = k.first
	}
	n.many[fold] = key
	return "", false
}

// foldKey maps texts that strings.EqualFold takes for equal to one text: for keys in lower case, as most are, to themselves.
func foldKey(s string) string {
	return strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-' {
			return c
		}
		least := c
		for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		if 'A' <= least && least <= 'Z' {
			least += 'a' - 'A'
		}
		return least
	}, s)
}
