package archive

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// Show is a path from outside as it may be shown on a terminal or a page: as it is where every character prints,
// else quoted and escaped; long paths are cut.
func Show(path string) string {
	const most = 200
	cut := path
	if len(path) > most {
		cut = strings.ToValidUTF8(path[:most], "") + "…"
		if !utf8.ValidString(path) {
			cut = path[:most] + "…"
		}
	}
	if path != "" && utf8.ValidString(cut) && !strings.ContainsFunc(cut, unprintable) {
		return cut
	}
	return strconv.Quote(cut)
}

func unprintable(r rune) bool { return !strconv.IsPrint(r) }

// names collects what is wrong with one path.
type names struct {
	path  string
	found []rule.Violation
}

// add files a violation, of each rule the first only: a path may have hundreds of elements.
func (n *names) add(id rule.ID, format string, args ...any) {
	if slices.ContainsFunc(n.found, func(v rule.Violation) bool { return v.Rule == id }) {
		return
	}
	n.found = append(n.found, violation(id, n.path, format, args...))
}

// checkPath applies every rule that judges one path by itself. The path of a counted file of a directory and of a
// member of an archive meet the same rules; what the digest leaves out is a fault of an archive alone.
func checkPath(path string) []rule.Violation {
	n := names{path: path}
	if path == "" {
		n.add("archive.path.empty", "the member has no name")
		return n.found
	}
	n.lengths()
	n.characters()
	n.whole()
	for element := range strings.SplitSeq(path, "/") {
		n.element(element)
	}
	n.file(path[strings.LastIndexByte(path, '/')+1:])
	return n.found
}

func (n *names) lengths() {
	if len(n.path) > limit.Path {
		n.add("archive.limit.path", "the path has %d bytes, at most %d are allowed", len(n.path), limit.Path)
	}
	for element := range strings.SplitSeq(n.path, "/") {
		if len(element) > limit.Component {
			n.add("archive.limit.component", "the element %.40q… has %d bytes, at most %d are allowed", element, len(element), limit.Component)
			return
		}
	}
}

// characters judges the characters of the whole path, naming the first of each sort.
func (n *names) characters() {
	if !utf8.ValidString(n.path) {
		n.add("archive.name.utf8", "the name %.200q is not UTF-8", n.path)
		return
	}
	first := func(is func(r rune) bool) (rune, bool) {
		i := strings.IndexFunc(n.path, is)
		if i < 0 {
			return 0, false
		}
		r, _ := utf8.DecodeRuneInString(n.path[i:])
		return r, true
	}
	if r, ok := first(steers); ok {
		n.add("archive.name.character", "the name holds the control or direction character %U", r)
	}
	if r, ok := first(invisible); ok {
		n.add("archive.name.invisible", "the name holds the invisible character %U", r)
	}
	if strings.ContainsRune(n.path, '\\') {
		n.add("archive.name.backslash", "the name holds a backslash, which some systems take for a separator")
	}
}

// steers reports whether r is a control character, ends a line or changes the direction of text.
func steers(r rune) bool {
	return unicode.IsControl(r) || r == 0x2028 || r == 0x2029 || unicode.Is(unicode.Bidi_Control, r)
}

// invisible reports whether r shows nothing, or next to nothing, and has no use that a name needs: the joiners of
// several scripts and of emoji (U+200C, U+200D) have one.
func invisible(r rune) bool {
	switch r {
	case 0x200c, 0x200d:
		return false
	case 0x034f, 0x115f, 0x1160, 0x3164, 0xffa0: // fillers that are no format characters
		return true
	}
	return unicode.Is(unicode.Cf, r) && !steers(r)
}

// whole judges the path as a way.
func (n *names) whole() {
	slashed := strings.ReplaceAll(n.path, `\`, "/")
	switch {
	case strings.HasPrefix(slashed, "/"):
		n.add("archive.path.absolute", "the path is absolute, expected one relative to the pack's root")
	case len(n.path) >= 2 && n.path[1] == ':' && isLetter(n.path[0]):
		n.add("archive.path.absolute", "the path begins with the drive %q", n.path[:2])
	case slashed != n.path && strings.Contains("/"+slashed+"/", "/../"):
		n.add("archive.path.parent", `the path has an element ".." where a backslash separates`)
	}
	switch {
	case n.path == "-":
		n.add("archive.name.dash", `the file is called "-", which commands take for their standard input`)
	case strings.HasPrefix(n.path, "-"):
		n.add("archive.name.option", `the path begins with "-", which commands take for an option`)
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// way judges an element as a step on a way. It reports whether it is a name.
func (n *names) way(element string) bool {
	switch element {
	case "":
		n.add("archive.path.element", `the path has an empty element: "//", or a "/" at its begin or end`)
	case ".":
		n.add("archive.path.element", `the path has an element "."; expected the plain relative path, without "./"`)
	case "..":
		n.add("archive.path.parent", `the path has an element ".."`)
	default:
		return true
	}
	return false
}

// element judges one element of the path.
func (n *names) element(element string) {
	if !n.way(element) {
		return
	}
	switch {
	case strings.HasPrefix(element, ".."):
		n.add("archive.name.dots", "the name %.100q begins with two dots", element)
	case strings.HasPrefix(element, ".wh."):
		n.add("archive.name.whiteout", "the name %.100q begins with \".wh.\"", element)
	}
	if strings.HasSuffix(element, ".") || strings.HasSuffix(element, " ") {
		n.add("archive.name.trailing", "the name %.100q ends in a dot or a space", element)
	}
	n.windows(element)
}

// windows judges what Windows can't store or takes for something else.
func (n *names) windows(element string) {
	if i := strings.IndexAny(element, `<>:"|?*`); i >= 0 {
		n.add("archive.name.windows", "the name %.100q holds %q", element, element[i])
		return
	}
	base, _, _ := strings.Cut(element, ".")
	if isDevice(strings.ToLower(strings.TrimRight(base, " "))) {
		n.add("archive.name.windows", "the name %.100q is a device on Windows", element)
	}
}

func isDevice(base string) bool {
	switch base {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	port, ok := strings.CutPrefix(base, "com")
	if !ok {
		port, ok = strings.CutPrefix(base, "lpt")
	}
	return ok && (len(port) == 1 && port[0] >= '1' && port[0] <= '9' || port == "¹" || port == "²" || port == "³")
}

// file judges the last element, the file's own name.
func (n *names) file(name string) {
	switch name {
	case ".py", ".pyc", ".pyo", ".pyd", ".so", ".sh":
		n.add("archive.name.bare", "the whole name of the file is the suffix %q", name)
	}
}

// checkExcluded is the rule of an archive that a directory has not.
func checkExcluded(path string) []rule.Violation {
	if !tree.IsExcluded(path) {
		return nil
	}
	return []rule.Violation{violation("archive.name.excluded", path, "the digest leaves this file out, so it can't be part of a pack")}
}
