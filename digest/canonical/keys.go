package canonical

import (
	"math"
	"math/big"
	"slices"
	"strings"
)

// sorted returns the members in the order of their keys. Python sorts keys before it turns them into texts: texts by
// code point, numbers and booleans by value, and nothing else compares.
func sorted(o Object) ([]Member, *Error) {
	first, err := classOf(o[0].Key)
	if err != nil {
		return nil, err
	}
	for _, m := range o[1:] {
		class, err := classOf(m.Key)
		if err != nil {
			return nil, err
		}
		if class != first || class == alone || first == alone {
			return nil, fail(Keys, "the keys %s and %s don't compare, so they have no order", keyText(o[0].Key), keyText(m.Key))
		}
	}
	members := slices.Clone(o)
	if first == textual { // WTF-8 sorts by code point too
		slices.SortStableFunc(members, func(a, b Member) int { return strings.Compare(a.Key.(string), b.Key.(string)) })
	} else {
		slices.SortStableFunc(members, func(a, b Member) int { return exact(a.Key).Cmp(exact(b.Key)) })
	}
	return members, nil
}

// class is a sort of keys that compare with each other.
type class uint8

const (
	textual class = iota
	numeric
	alone // compares with nothing, not even its like: null, and NaN
)

func classOf(k any) (class, *Error) {
	switch k := k.(type) {
	case string:
		return textual, nil
	case *big.Int, bool:
		return numeric, nil
	case float64:
		if math.IsNaN(k) {
			return alone, nil
		}
		return numeric, nil
	case nil:
		return alone, nil
	case Opaque:
		return 0, fail(Keys, "a %s can't be a key", string(k))
	default:
		return 0, fail(Keys, "a %T can't be a key", k)
	}
}

// exact is a number without rounding. NaN does not come here.
func exact(k any) *big.Float {
	switch k := k.(type) {
	case bool:
		if k {
			return big.NewFloat(1)
		}
	case *big.Int:
		return new(big.Float).SetPrec(uint(max(k.BitLen(), 64))).SetInt(k)
	case float64:
		return big.NewFloat(k)
	}
	return new(big.Float)
}
