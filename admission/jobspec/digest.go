package jobspec

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/canonical"
)

// Digest names the job: sha256 of the RFC 8785 form of the normalised document (jobspec.md 7). Stamp the owner first. Two
// documents that normalise alike have one digest. It fails only for a spec that a report refused.
//
// RFC 8785 writes numbers as doubles, so hyperparameters beyond 2^53 that round to one double share a digest. What is
// stored, pinned and launched is bound by the digest of its bytes besides.
func (s *Spec) Digest() (digest.Digest, error) {
	sum, _, err := digestOf(s.value())
	return sum, err
}

// Forms gives Normalised and Digest for the price of one.
func (s *Spec) Forms() (normalised []byte, sum digest.Digest, err error) {
	v := s.value()
	sum, size, err := digestOf(v)
	return appendJSON(make([]byte, 0, size), v), sum, err
}

// digestOf also gives the size of the canonical form, which is nearly that of the normalised one.
func digestOf(v *pyvalue.Value) (sum digest.Digest, size int, err error) {
	form, ok := appendPlain(make([]byte, 0, 4096), v, 0)
	if !ok {
		if form, err = canonical.JCS(appendJSON(nil, rounded(v))); err != nil {
			return sum, 0, fmt.Errorf("canonical form of the spec: %w", err)
		}
	}
	return digest.FromBytes(form), len(form), nil
}

// plainDepth is how deep a plain value may be nested.
const plainDepth = 16

// appendPlain writes the RFC 8785 form of a value in which nothing is hard about that: no fractions, no large integers, keys
// of ASCII, all different. ok is false for any other, which JCS must write or refuse. Nearly every job is plain.
func appendPlain(b []byte, v *pyvalue.Value, depth int) (form []byte, ok bool) {
	switch v.Kind {
	case pyvalue.None:
		return append(b, "null"...), true
	case pyvalue.Bool:
		return strconv.AppendBool(b, v.Bool), true
	case pyvalue.Int:
		return v.Int.Append(b, 10), v.Int.BitLen() < 53
	case pyvalue.Str:
		return appendText(b, v.Text), utf8.ValidString(v.Text)
	case pyvalue.List:
		return appendPlainList(b, v.List, depth)
	case pyvalue.Map:
		return appendPlainMap(b, v.Items, depth)
	}
	return b, false
}

func appendPlainList(b []byte, list []*pyvalue.Value, depth int) (form []byte, ok bool) {
	b = append(b, '[')
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, ok = appendPlain(b, item, depth+1); !ok || depth > plainDepth {
			return b, false
		}
	}
	return append(b, ']'), true
}

func appendPlainMap(b []byte, items []pyvalue.Item, depth int) (form []byte, ok bool) {
	for _, it := range items {
		if !ascii(it.Key.Text) || it.Key.Kind != pyvalue.Str {
			return b, false
		}
	}
	byKey := func(x, y pyvalue.Item) int { return strings.Compare(x.Key.Text, y.Key.Text) }
	if !slices.IsSortedFunc(items, byKey) {
		items = slices.Clone(items)
		slices.SortFunc(items, byKey)
	}
	b = append(b, '{')
	for i, it := range items {
		if i > 0 {
			if it.Key.Text == items[i-1].Key.Text {
				return b, false
			}
			b = append(b, ',')
		}
		b = append(appendText(b, it.Key.Text), ':')
		if b, ok = appendPlain(b, it.Value, depth+1); !ok || depth > plainDepth {
			return b, false
		}
	}
	return append(b, '}'), true
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// rounded writes integers that doubles can't tell apart as the doubles that RFC 8785 makes of them.
func rounded(v *pyvalue.Value) *pyvalue.Value {
	switch v.Kind {
	case pyvalue.Int:
		if v.Int.BitLen() > 53 {
			f, _ := new(big.Float).SetInt(v.Int).Float64()
			return &pyvalue.Value{Kind: pyvalue.Float, Float: f}
		}
	case pyvalue.List:
		out := &pyvalue.Value{Kind: pyvalue.List, List: make([]*pyvalue.Value, len(v.List))}
		for i, item := range v.List {
			out.List[i] = rounded(item)
		}
		return out
	case pyvalue.Map:
		out := &pyvalue.Value{Kind: pyvalue.Map, Items: make([]pyvalue.Item, len(v.Items))}
		for i, it := range v.Items {
			out.Items[i] = pyvalue.Item{Key: it.Key, Value: rounded(it.Value)}
		}
		return out
	}
	return v
}
