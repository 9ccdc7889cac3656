package pyvalue

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
)

// HashKey names the class of values that Python's dict takes for one key: 1, 1.0 and True are equal, 1 and "1" are
// not, date-times with an offset are equal when they are one instant. Lists, maps and sets are no keys: ok is
// false. A float that is not a number equals only itself; all those that YAML's .nan makes are one object in Python,
// and share a class here.
func (v *Value) HashKey() (key string, ok bool) {
	if v == nil {
		return "none", true
	}
	switch v.Kind {
	case None:
		return "none", true
	case Bool:
		if v.Bool {
			return "n1", true
		}
		return "n0", true
	case Int:
		return "n" + v.Int.String(), true
	case Float:
		return floatKey(v.Float), true
	case Str:
		return "s" + v.Text, true
	case Bytes:
		return "b" + v.Text, true
	case Date:
		return "d" + v.Text, true
	case DateTime:
		if d := parseDate(v.Text); d.aware {
			return "t" + d.instant().Format("2006-01-02T15:04:05.000000"), true
		}
		return "l" + v.Text, true
	case Tuple:
		return tupleKey(v.List)
	}
	return "", false
}

func floatKey(f float64) string {
	if f == math.Trunc(f) && !math.IsInf(f, 0) {
		n, _ := big.NewFloat(f).Int(nil)
		return "n" + n.String()
	}
	return "n" + strconv.FormatFloat(f, 'g', -1, 64)
}

func tupleKey(items []*Value) (string, bool) {
	key := "("
	for _, it := range items {
		k, ok := it.HashKey()
		if !ok {
			return "", false
		}
		key += fmt.Sprintf("%d:%s", len(k), k)
	}
	return key, true
}
