package jobspec

import (
	"strconv"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// Place is where a value stands in the document that a spec was read from. The zero Place is nowhere.
type Place struct {
	Pointer      string // RFC 6901
	Line, Column int    // 1-based, the column in characters; of the object that lacks the value when there is none
}

// Place finds a field under the name that violations give it, such as spec.plugins[0].version or spec.recipe.plugins[]. Where
// the document ends before the field does, because a part of a text is named or a key is missing, it is the place of what is
// there. It is nowhere for a spec that was not read from a document.
func (s *Spec) Place(field string) Place {
	if s.doc == nil {
		return Place{}
	}
	n := node{v: s.doc, line: s.doc.Line, column: s.doc.Column}
	for rest := field; rest != "" && rest != rootField && !n.absent(); {
		next, more, ok := n.along(rest)
		if !ok {
			break
		}
		n, rest = next, more
	}
	return Place{Pointer: n.pointer(), Line: n.line, Column: n.column}
}

// along goes from n along the first part of a field's name. It fails where n has no parts of that form.
func (n node) along(field string) (next node, rest string, ok bool) {
	if inner, indexed := strings.CutPrefix(field, "["); indexed {
		number, rest, _ := strings.Cut(inner, "]")
		i, err := strconv.Atoi(number)
		if n.v.Kind != pyvalue.List || err != nil || i < 0 || i >= len(n.v.List) {
			return n, "", false
		}
		return n.item(i, n.v.List[i]), strings.TrimPrefix(rest, "."), true
	}
	if n.v.Kind != pyvalue.Map {
		return n, "", false
	}
	if n.v.Has(field) { // a key of the user's may hold dots
		return n.get(field), "", true
	}
	key, rest := field, ""
	if end := strings.IndexAny(field, ".["); end >= 0 {
		key, rest = field[:end], strings.TrimPrefix(field[end:], ".")
	}
	return n.get(key), rest, true
}
