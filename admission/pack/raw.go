package pack

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// Raw is a value that a document holds and no rule changes, such as the default of a parameter. Its JSON keeps apart
// what Python keeps apart: integers are written in full, floats with a point or an exponent, and nan, inf and -inf as
// {"$float": "nan"}. What a recipe can't hold, since it could not be hashed, is written as near as JSON has it: dates
// as text, bytes in base64, sets as lists. Keys become texts.
type Raw struct{ *pyvalue.Value }

// floatKey marks a float that JSON has no number for.
const floatKey = "$float"

// MarshalJSON writes the value.
func (r Raw) MarshalJSON() ([]byte, error) {
	v := r.Value
	if isNone(v) {
		return []byte("null"), nil
	}
	switch v.Kind {
	case pyvalue.Bool:
		return strconv.AppendBool(nil, v.Bool), nil
	case pyvalue.Int:
		return v.Int.Append(nil, 10), nil
	case pyvalue.Float:
		text := pyvalue.FloatText(v.Float)
		if json.Valid([]byte(text)) {
			return []byte(text), nil
		}
		return plainJSON(map[string]string{floatKey: text})
	case pyvalue.Bytes:
		return plainJSON(base64.StdEncoding.EncodeToString([]byte(v.Text)))
	case pyvalue.List, pyvalue.Tuple, pyvalue.Set:
		items := make([]Raw, len(v.List))
		for i, it := range v.List {
			items[i] = Raw{it}
		}
		return plainJSON(items)
	case pyvalue.Map:
		var t Table[Raw]
		for _, it := range v.Items {
			t.set(it.Key.PyStr(), Raw{it.Value})
		}
		return t.MarshalJSON()
	}
	return plainJSON(v.Text)
}
