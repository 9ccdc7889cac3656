package pack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// maxKeyCompared bounds the texts that are compared for likeness, in bytes.
const maxKeyCompared = 40

// lookAlike finds the key of m that was probably meant for the absent field: equal but for case and
// punctuation, or one edit away. Keys that known holds mean themselves.
func lookAlike(m *pyvalue.Value, field string, known []string) string {
	if m == nil || m.Kind != pyvalue.Map || m.Has(field) {
		return ""
	}
	for _, it := range m.Items {
		if it.Key.Kind != pyvalue.Str || slices.Contains(known, it.Key.Text) || len(it.Key.Text) > maxKeyCompared {
			continue
		}
		if folded(it.Key.Text) == folded(field) || oneEdit(strings.ToLower(it.Key.Text), field) {
			return it.Key.Text
		}
	}
	return ""
}

// meant finds the known key that an unknown one was probably meant to be, "" when there is none.
func meant(key string, known []string) string {
	if len(key) > maxKeyCompared {
		return ""
	}
	for _, k := range known {
		if folded(key) == folded(k) || oneEdit(strings.ToLower(key), k) {
			return k
		}
	}
	return ""
}

func hintRename(found, field string) string {
	return fmt.Sprintf("The file has %q: write it %q.", found, field)
}

// folded is s without case, "-", "_", "." and blanks.
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_. ", r) {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// oneEdit reports whether a becomes b by inserting, deleting, replacing or swapping one byte. Texts of fewer than
// four bytes are like nothing but themselves.
func oneEdit(a, b string) bool {
	if len(a) < 4 || len(b) < 4 {
		return false
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		if i == len(a) {
			return true
		}
		swapped := i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		return swapped || a[i+1:] == b[i+1:]
	case 1:
		return a[i:] == b[i+1:]
	}
	return false
}
