package pep440

import (
	"cmp"
	"strings"
)

// Compare orders versions as PEP 440 does: -1 when v is before w, 0 when both are one version, +1 after.
func (v Version) Compare(w Version) int {
	return cmp.Or(
		compareBase(v, w),
		comparePre(v, w),
		compareOptional(v.post, w.post, -1),
		compareOptional(v.dev, w.dev, +1),
		compareLocal(v.local, w.local),
	)
}

// compareBase orders by epoch and release, where missing parts of a release are zeros.
func compareBase(v, w Version) int {
	if c := v.epoch.compare(w.epoch); c != 0 {
		return c
	}
	for i := range max(len(v.release), len(w.release)) {
		if c := releasePart(v, i).compare(releasePart(w, i)); c != 0 {
			return c
		}
	}
	return 0
}

func releasePart(v Version, i int) number {
	if i < len(v.release) {
		return v.release[i]
	}
	return ""
}

// comparePre orders x.dev0 < xa1 < xb1 < xrc1 < x, and x.post1 with x.
func comparePre(v, w Version) int {
	if c := cmp.Compare(preRank(v), preRank(w)); c != 0 || v.pre == nil || w.pre == nil {
		return c
	}
	return v.pre.n.compare(w.pre.n)
}

// preRank places a development release of the version itself before its alphas, and the final release and its
// post-releases after its candidates.
func preRank(v Version) int {
	switch {
	case v.pre != nil:
		return map[string]int{"a": 1, "b": 2, "rc": 3}[v.pre.letter]
	case v.post == nil && v.dev != nil:
		return 0
	}
	return 4
}

// compareOptional orders numbers of which one that is absent counts as below (-1) or above (+1) every number.
func compareOptional(n, m *number, absent int) int {
	switch {
	case n == nil && m == nil:
		return 0
	case n == nil:
		return absent
	case m == nil:
		return -absent
	}
	return n.compare(*m)
}

// compareLocal orders labels: none before any, numbers above words, a label after its own beginning.
func compareLocal(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if c := compareSegment(a[i], b[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func compareSegment(a, b string) int {
	aNum, bNum := isDigits(a), isDigits(b)
	switch {
	case aNum && bNum:
		return parseNumber(a).compare(parseNumber(b))
	case aNum:
		return 1
	case bNum:
		return -1
	}
	return strings.Compare(a, b)
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }
