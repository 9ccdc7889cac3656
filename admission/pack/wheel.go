package pack

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pep440"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// maxWheelDocument is how large METADATA, WHEEL and entry_points.txt of a wheel may be, in bytes.
const maxWheelDocument = limit.Document

// wheel checks the provider wheel that a tuneplane manifest names (packs.md 4.4).
func (l *layout) wheel() {
	file := l.m.Wheel
	e, ok := l.nodes.file(file)
	if !ok || e.Kind != tree.Counted {
		l.add("layout.wheel", "", file, "the provider wheel %.200q is not a file of the pack", file)
		return
	}
	src, done, err := openReaderAt(l.tree, e)
	if err != nil {
		l.err = fmt.Errorf("read %q: %w", e.Path, err)
		return
	}
	defer done()
	w, err := inspectWheel(file, src, e.Size, l.m.Kind.facts().wheelGroup, l.m.Provider)
	if err != nil {
		id := rule.ID("layout.wheel")
		if errors.Is(err, errZipAmbiguous) || errors.Is(err, errZipLimit) {
			id = "layout.wheel.form"
		}
		l.add(id, "", file, "the provider wheel %.200q: %v", file, err)
		return
	}
	l.wheelNames(file, w)
}

// inspectWheel reads the wheel's directory and the few documents that say what it provides; the error is the first
// rule that is broken. Memory is bounded by maxZipDirectory and maxWheelDocument.
func inspectWheel(file string, src io.ReaderAt, size int64, group, provider string) (wheel, error) {
	name, err := parseWheelName(file)
	if err != nil {
		return wheel{}, err
	}
	if err := checkZipForm(src, size); err != nil {
		return wheel{}, err
	}
	z, err := zip.NewReader(src, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return wheel{}, fmt.Errorf("%w: %w", errNoZip, err)
	}
	w := wheel{name: name, files: z.File}
	return w, w.check(group, provider)
}

// wheelNames checks that importing from the wheel shadows nothing.
func (l *layout) wheelNames(file string, w wheel) {
	var reserved, shadowing []string
	for _, module := range w.importNames() {
		if reservedFor(l.m.Dialect, module) {
			reserved = append(reserved, module)
		}
	}
	for _, module := range w.topModules() {
		if shadows(module) && !slices.Contains(reserved, module) {
			shadowing = append(shadowing, module)
		}
	}
	if len(reserved) > 0 {
		l.add("layout.wheel.reserved", "", file, "the provider wheel %.200q holds reserved modules: %s", file, quoteList(reserved))
	}
	if len(shadowing) > 0 {
		l.add("layout.wheel.shadow", "", file, "the provider wheel %.200q holds reserved modules: %s", file, quoteList(shadowing))
	}
}

// wheelName is what the name of a wheel file says.
type wheelName struct {
	project string // normalised
	version string // normalised
}

// parseWheelName reads name-version[-build]-python-abi-platform.whl as Python's packaging does and refuses wheels
// for one platform.
func parseWheelName(file string) (wheelName, error) {
	stem, ok := strings.CutSuffix(file, ".whl")
	parts := strings.Split(stem, "-")
	if !ok || len(parts) != 5 && len(parts) != 6 {
		return wheelName{}, errors.New("its name must be name-version-python-abi-platform.whl")
	}
	project := parts[0]
	if project == "" || strings.Contains(project, "__") || strings.ContainsFunc(project, notWheelNameRune) {
		return wheelName{}, fmt.Errorf("%.100q in its name is no project name", project)
	}
	version, err := pep440.ParseVersion(parts[1])
	if err != nil {
		return wheelName{}, fmt.Errorf("%.100q in its name is no PEP 440 version", parts[1])
	}
	if len(parts) == 6 && (parts[2] == "" || parts[2][0] < '0' || parts[2][0] > '9') {
		return wheelName{}, fmt.Errorf("%.100q in its name is no build number", parts[2])
	}
	tags := parts[len(parts)-3:]
	for i, allowed := range []func(string) bool{isIdentifierText, isWord("none"), isWord("any")} {
		for tag := range strings.SplitSeq(strings.ToLower(tags[i]), ".") {
			if !allowed(tag) {
				return wheelName{}, fmt.Errorf("its tags are %.100q; only pure Python wheels (none-any) are supported", strings.Join(tags, "-"))
			}
		}
	}
	return wheelName{project: normalProject(project), version: version.String()}, nil
}

func isWord(want string) func(string) bool { return func(s string) bool { return s == want } }

func notWheelNameRune(r rune) bool { return !isWordRune(r) && r != '.' }

// isWordRune is Python's \w.
func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }

// isIdentifierText is Python's str.isidentifier.
func isIdentifierText(s string) bool {
	for i, r := range s {
		if !isWordRune(r) && !unicode.In(r, unicode.Mn, unicode.Mc) || i == 0 && (unicode.IsNumber(r) || unicode.In(r, unicode.Mn, unicode.Mc)) {
			return false
		}
	}
	return s != "" && utf8.ValidString(s)
}

// normalProject is a project name in lower case with runs of "-", "_" and "." as one "-".
func normalProject(s string) string {
	parts := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	out := strings.Join(parts, "-")
	if s != "" && strings.ContainsRune("-_.", rune(s[0])) {
		out = "-" + out
	}
	if len(s) > 1 && strings.ContainsRune("-_.", rune(s[len(s)-1])) {
		out += "-"
	}
	return out
}

// wheel is an open wheel.
type wheel struct {
	name  wheelName
	files []*zip.File
}

// check applies the client's rules in its order; the error is the first that is broken.
func (w wheel) check(group, provider string) error {
	if err := w.members(); err != nil {
		return err
	}
	if err := w.purelib(); err != nil {
		return err
	}
	info, err := w.distribution()
	if err != nil {
		return err
	}
	if err := w.metadata(info); err != nil {
		return err
	}
	return w.provider(info, group, provider)
}

func (w wheel) members() error {
	seen := make(map[string]bool, len(w.files))
	var total uint64
	for _, f := range w.files {
		if seen[f.Name] {
			return fmt.Errorf("it holds %.200q twice", f.Name)
		}
		seen[f.Name] = true
		if total += min(f.UncompressedSize64, 2*limit.Unpacked); total > limit.Unpacked {
			return fmt.Errorf("it unpacks to more than %d MiB", limit.Unpacked/limit.MiB)
		}
	}
	for _, f := range w.files {
		if strings.HasPrefix(f.Name, "/") || strings.Contains(f.Name, `\`) || slices.Contains(strings.Split(f.Name, "/"), "..") {
			return fmt.Errorf("its member %.200q does not stay inside it", f.Name)
		}
		if strings.HasSuffix(firstElement(f.Name), ".data") {
			return fmt.Errorf("its member %.200q needs an installer", f.Name)
		}
	}
	return nil
}

// firstElement is the first element of a member's name that is neither empty nor ".", as Python's paths have it.
func firstElement(name string) string {
	for element := range strings.SplitSeq(name, "/") {
		if element != "" && element != "." {
			return element
		}
	}
	return ""
}

// purelib wants exactly one WHEEL document that says Root-Is-Purelib: true.
func (w wheel) purelib() error {
	var found []*zip.File
	for _, f := range w.files {
		if strings.HasSuffix(f.Name, ".dist-info/WHEEL") {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		return fmt.Errorf("it holds %d WHEEL documents; expected one", len(found))
	}
	text, err := readMember(found[0])
	if err != nil {
		return err
	}
	if !strings.Contains(text, "Root-Is-Purelib: true") {
		return errors.New("its WHEEL document does not say Root-Is-Purelib: true")
	}
	return nil
}

// distribution finds the one *.dist-info folder in the wheel's root.
func (w wheel) distribution() (string, error) {
	var found []string
	for _, f := range w.files {
		top, _, _ := strings.Cut(f.Name, "/")
		low := strings.ToLower(top)
		if strings.HasSuffix(low, ".dist-info") || strings.HasSuffix(low, ".egg-info") {
			found = append(found, top)
		}
	}
	found = distinct(found)
	if len(found) != 1 {
		return "", fmt.Errorf("it holds %d distributions; expected one", len(found))
	}
	return found[0], nil
}

// distinct sorts names and drops repetitions.
func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// metadata compares the name and version in METADATA with those of the file's name.
func (w wheel) metadata(info string) error {
	text, err := w.document(info + "/METADATA")
	if err != nil {
		return err
	}
	headers := parseHeaders(text)
	if normalProject(headers["name"]) != w.name.project || headers["version"] != w.name.version {
		return fmt.Errorf("its METADATA says %.100q %.100q, its name %.100q %.100q", headers["name"], headers["version"], w.name.project, w.name.version)
	}
	return nil
}

// provider finds the entry point that the manifest names and the module it leads to.
func (w wheel) provider(info, group, name string) error {
	text, err := w.document(info + "/entry_points.txt")
	if err != nil {
		return err
	}
	values, err := entryPoints(text, group, name)
	if err != nil {
		return err
	}
	if len(values) != 1 {
		return fmt.Errorf("it has %d entry points %.100q in the group %s; expected one", len(values), name, group)
	}
	module, extras, ok := parseEntryPoint(values[0])
	switch {
	case !ok:
		return fmt.Errorf("its entry point %.100q is not module:callable", values[0])
	case extras:
		return fmt.Errorf("its entry point %.100q has extras, which are not supported", values[0])
	}
	top, _, _ := strings.Cut(module, ".")
	if !slices.Contains(w.importNames(), top) {
		return fmt.Errorf("the module %.100q of its entry point is not in it", module)
	}
	return nil
}

// document reads a text member; an absent one is empty.
func (w wheel) document(name string) (string, error) {
	for _, f := range w.files {
		if f.Name == name {
			return readMember(f)
		}
	}
	return "", nil
}

// importNames are the top-level modules of the wheel as the client lists them: of its .py files.
func (w wheel) importNames() []string {
	var names []string
	for _, f := range w.files {
		name := strings.TrimSuffix(firstElement(f.Name), ".py")
		if strings.HasSuffix(f.Name, ".py") && isIdentifierText(name) {
			names = append(names, name)
		}
	}
	return distinct(names)
}

// topModules are all names under which Python could import something from the wheel's root.
func (w wheel) topModules() []string {
	var names []string
	for _, f := range w.files {
		top := firstElement(f.Name)
		if module := moduleName(top); module != "" && !strings.Contains(f.Name, "/") {
			top = module
		}
		names = append(names, top)
	}
	return distinct(names)
}

// readMember reads a small UTF-8 text of a zip, at most maxWheelDocument bytes, whatever its header claims.
func readMember(f *zip.File) (string, error) {
	r, err := f.Open()
	if err != nil {
		return "", fmt.Errorf("its member %.200q can't be read: %w", f.Name, err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxWheelDocument+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("its member %.200q can't be read: %w", f.Name, err)
	case len(data) > maxWheelDocument:
		return "", fmt.Errorf("its member %.200q has more than %d bytes", f.Name, maxWheelDocument)
	case !utf8.Valid(data):
		return "", fmt.Errorf("its member %.200q is not UTF-8", f.Name)
	}
	return string(data), nil
}
