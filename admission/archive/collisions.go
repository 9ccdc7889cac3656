package archive

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// folded is a path and its form under which two names are one to some file system. The key has a NUL for every
// slash, so that everything below one folded folder sorts together, right after a file of that name.
type folded struct{ path, key string }

// folder folds names: case, Unicode form, and what file systems drop from names.
type folder struct{ caser cases.Caser }

func newFolder() folder { return folder{cases.Fold()} }

func (f folder) fold(path string) folded {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		elements[i] = f.element(e)
	}
	return folded{path, strings.Join(elements, "\x00")}
}

func (f folder) element(e string) string {
	if isASCII(e) {
		return strings.TrimRight(strings.ToLower(e), ". ")
	}
	e = strings.Map(func(r rune) rune {
		if invisible(r) || r == 0x200c || r == 0x200d {
			return -1
		}
		return r
	}, e)
	return strings.TrimRight(norm.NFC.String(f.caser.String(norm.NFD.String(e))), ". ")
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func (a folded) compare(b folded) int {
	return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.path, b.path))
}

// collide finds paths that are equal, or equal to some file system, and paths that are both file and folder. No
// path holds a NUL. Paths that share a folded folder are neighbours once sorted, so looking at neighbours finds
// every fault, and the memory is that of the paths. It ends when add reports no room for more.
func collide(paths []string, add func(...rule.Violation) bool) (goOn bool) {
	f := newFolder()
	all := make([]folded, len(paths))
	for i, path := range paths {
		all[i] = f.fold(path)
	}
	slices.SortFunc(all, folded.compare)
	for i := 1; i < len(all); i++ {
		if v, ok := clash(all[i-1], all[i]); ok && !add(v) {
			return false
		}
	}
	return true
}

// clash compares two neighbours.
func clash(a, b folded) (rule.Violation, bool) {
	if a.path == b.path {
		return violation("archive.duplicate.path", b.path, "the path comes twice"), true
	}
	ak, bk, ap, bp := a.key, b.key, a.path, b.path
	for done := false; !done; {
		var aKey, bKey, aName, bName string
		var aMore, bMore bool
		aKey, ak, _ = strings.Cut(ak, "\x00")
		bKey, bk, _ = strings.Cut(bk, "\x00")
		aName, ap, aMore = strings.Cut(ap, "/")
		bName, bp, bMore = strings.Cut(bp, "/")
		if aKey != bKey {
			return rule.Violation{}, false
		}
		if aName != bName {
			return violation("archive.name.collision", b.path, "%.200q and %.200q are one name on some systems", before(a.path, ap), before(b.path, bp)), true
		}
		done = !aMore || !bMore
	}
	return violation("archive.duplicate.folder", b.path, "%.200q is a file and a folder", a.path), true
}

// before is path without rest, its end.
func before(path, rest string) string {
	return strings.TrimSuffix(path[:len(path)-len(rest)], "/")
}
