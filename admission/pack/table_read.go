package pack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/gatehouse-registry/gatehouse/admission/pyjson"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// UnmarshalJSON reads an object in its order. Null is the empty table.
func (t *Table[V]) UnmarshalJSON(src []byte) error {
	*t = Table[V]{}
	dec := json.NewDecoder(bytes.NewReader(src))
	open, err := dec.Token()
	if err != nil || open == nil {
		return err
	}
	if open != json.Delim('{') {
		return fmt.Errorf("found %.40q, expected an object", fmt.Sprint(open))
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var v V
		if err := dec.Decode(&v); err != nil {
			return fmt.Errorf("%.100q: %w", name, err)
		}
		t.set(name.(string), v)
	}
	_, err = dec.Token()
	return err
}

// UnmarshalJSON reads a value back. What JSON has no form for comes back as the text that MarshalJSON wrote for it, but for
// floats, which come back as they were.
func (r *Raw) UnmarshalJSON(src []byte) error {
	v, report := pyjson.Load(src, pyjson.Options{})
	if !report.OK() {
		return errors.New(report.Violations[0].Message)
	}
	restoreFloats(v)
	r.Value = v
	return nil
}

// restoreFloats puts the floats that MarshalJSON marked in their place.
func restoreFloats(v *pyvalue.Value) {
	for _, it := range v.List {
		restoreFloats(it)
	}
	for _, it := range v.Items {
		restoreFloats(it.Value)
	}
	if text := v.Get(floatKey); text != nil && len(v.Items) == 1 {
		if f, err := strconv.ParseFloat(text.Text, 64); err == nil {
			*v = pyvalue.Value{Kind: pyvalue.Float, Float: f, Line: v.Line, Column: v.Column}
		}
	}
}
