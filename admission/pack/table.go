package pack

import (
	"iter"
	"slices"
)

// Table is a map that keeps the order of the document, as a Python dict does: a name that is set again keeps its
// place and takes the new value. Its JSON is an object in that order.
type Table[V any] struct {
	names  []string
	byName map[string]V
}

func (t *Table[V]) set(name string, v V) {
	if _, ok := t.byName[name]; !ok {
		t.names = append(t.names, name)
	}
	if t.byName == nil {
		t.byName = make(map[string]V)
	}
	t.byName[name] = v
}

// Get finds the value of a name.
func (t Table[V]) Get(name string) (V, bool) {
	v, ok := t.byName[name]
	return v, ok
}

// Has reports whether the table has the name.
func (t Table[V]) Has(name string) bool { _, ok := t.byName[name]; return ok }

// Len is the number of names.
func (t Table[V]) Len() int { return len(t.names) }

// Names lists the names in order; never nil.
func (t Table[V]) Names() []string { return append([]string{}, t.names...) }

// All ranges over names and values in order.
func (t Table[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range t.names {
			if !yield(name, t.byName[name]) {
				return
			}
		}
	}
}

// MarshalJSON writes the object with its names in order.
func (t Table[V]) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, name := range t.names {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendMember(b, name, t.byName[name]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func appendMember(b []byte, name string, v any) ([]byte, error) {
	key, err := plainJSON(name)
	if err != nil {
		return nil, err
	}
	value, err := plainJSON(v)
	if err != nil {
		return nil, err
	}
	return slices.Concat(b, key, []byte{':'}, value), nil
}
