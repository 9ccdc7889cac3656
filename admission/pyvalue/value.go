// Package pyvalue is the value model of the real clients' readers: what Python makes of a YAML or JSON document.
// The clients' rules are written in Python's terms (truth, str(), repr(), strip()), so ours need those terms too.
//
// Python's texts may hold lone surrogates (a YAML or JSON escape such as "\ud800" makes one). A text here is a Go
// string in WTF-8 (package wtf8). Two escapes that would be a pair in UTF-16 stay two surrogates where Python
// keeps them apart (YAML) and are one character where Python joins them (JSON).
package pyvalue

import "math/big"

// Kind is the Python type of a value.
type Kind uint8

// The kinds, in Python's words: NoneType, bool, int, float, str, date, datetime, bytes, list, dict, set and tuple
// (YAML's !!omap and !!pairs are lists of tuples of two).
const (
	None Kind = iota
	Bool
	Int
	Float
	Str
	Date
	DateTime
	Bytes
	List
	Map
	Set
	Tuple
)

// Value is one node of a document. Nodes reached through YAML aliases are shared; the readers hand out no cycles.
type Value struct {
	Kind  Kind
	Bool  bool
	Int   *big.Int
	Float float64
	Text  string   // Str: the text. Date, DateTime: Python's str(). Bytes: the raw bytes
	List  []*Value // List, Tuple: the items. Set: the members
	Items []Item   // Map: in Python's insertion order, each key once

	Line, Column int    // 1-based position in the source; 0 when it has none
	Written      string // a scalar as it was written, without quotes; "" for collections
	Plain        bool   // a YAML scalar without quotes
}

// Item is a key and its value in a Map.
type Item struct {
	Key   *Value
	Value *Value
}

// Get finds the value of a text key, nil when there is none.
func (v *Value) Get(key string) *Value {
	if v == nil || v.Kind != Map {
		return nil
	}
	for _, it := range v.Items {
		if it.Key.Kind == Str && it.Key.Text == key {
			return it.Value
		}
	}
	return nil
}

// Has reports whether a map has the text key, be its value null or not.
func (v *Value) Has(key string) bool { return v.Get(key) != nil }

// Keys are the text keys of a map, for whoever looks for many of them: Get and Has go through all.
func (v *Value) Keys() map[string]bool {
	keys := make(map[string]bool, len(v.Items))
	for _, it := range v.Items {
		if it.Key.Kind == Str {
			keys[it.Key.Text] = true
		}
	}
	return keys
}

// NewStr is a text value without a position.
func NewStr(s string) *Value { return &Value{Kind: Str, Text: s, Written: s} }
