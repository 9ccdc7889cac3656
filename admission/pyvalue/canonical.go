package pyvalue

import (
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
	"github.com/gatehouse-registry/gatehouse/digest/wtf8"
)

// CanonicalJSON is v in the model of package canonical, one level deep, so that canonical.Python(v) and the like take
// a Value as it is. Dates, bytes and sets have no form there: Python's json does not write them either.
func (v *Value) CanonicalJSON() any {
	if v == nil {
		return nil
	}
	switch v.Kind {
	case None:
		return nil
	case Bool:
		return v.Bool
	case Int:
		return v.Int
	case Float:
		return v.Float
	case Str:
		return v.Text
	case List, Tuple:
		items := make([]any, len(v.List))
		for i, it := range v.List {
			items[i] = it
		}
		return items
	case Map:
		o := make(canonical.Object, len(v.Items))
		for i, it := range v.Items {
			o[i] = canonical.Member{Key: it.Key.CanonicalJSON(), Value: it.Value}
		}
		return o
	}
	return canonical.Opaque(v.TypeName())
}

// DecodeRune is wtf8.DecodeRune, for those who walk the characters of a Value's Text.
func DecodeRune(s string) (r rune, width int) { return wtf8.DecodeRune(s) }
