package admission

import (
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/pep440"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// LaunchInput is everything that gate 3 decides on. Copies must be hashed in the state in which the job will read
// them: read-only, for good.
type LaunchInput struct {
	Policy    Policy
	Dialect   dialect.Dialect
	SpecFile  string // the spec's path in the job directory, for messages
	SpecBytes []byte // as the launcher will read them
	Receipt   *receipt.Receipt
	// CoreVersion is the client's that runs the job; "" takes the spec's provenance.core_version.
	CoreVersion string
	Plugins     []LaunchPack // in any order; none when the spec could not be read
	Recipes     []LaunchPack
}

// LaunchPack is one pack of a job: what it is pinned to, what lies in the job directory, and the copy that the job
// will read.
type LaunchPack struct {
	Pin receipt.Pin
	// Unpinned marks a recipe pack that only spec.recipe.digest covers; of its Pin only the id counts.
	Unpinned bool
	Injected Injected
	Copy     tree.Tree // nil for what the runtime supplies
}

// InjectedState says what stands where a pack should lie in the job directory.
type InjectedState uint8

// The states.
const (
	InjectedAbsent     InjectedState = iota // nothing, or no folder
	InjectedPresent                         // a folder, listed
	InjectedLink                            // a symbolic link
	InjectedUnreadable                      // a folder that can't be read, or beyond the limits
	InjectedUnseen                          // nobody looked: the job directory is made of our own copies
)

// Injected is a pack as it lies in the job directory.
type Injected struct {
	Folder  string // its path in the job directory, for messages
	State   InjectedState
	Detail  string        // what was found instead, or why it can't be read
	Listing *tree.Listing // when present
}

// CheckLaunch is gate 3. It is pure. Every pack is checked; that all of them pass before any of their code runs is up
// to the caller, who starts nothing when the decision does not allow.
func CheckLaunch(in LaunchInput) Decision {
	spec, report := jobspec.Parse(in.SpecBytes, jobspec.Options{Dialect: in.Dialect, Policy: in.Policy, File: in.SpecFile, Stored: true})
	report.Policy, report.Dialect = in.Policy, in.Dialect
	g := launchGate{in: in, spec: spec, report: report}
	g.receipt()
	if spec != nil {
		g.pins()
		g.packs()
	}
	subject := Subject{Dialect: in.Dialect, Digest: digest.FromBytes(in.SpecBytes).String()}
	if spec != nil {
		subject.Name = spec.Metadata.Name
	}
	return g.report.Decide(Launch, subject, nil)
}

type launchGate struct {
	in     LaunchInput
	spec   *jobspec.Spec
	report Report
}

func (g *launchGate) add(id RuleID, file, format string, args ...any) {
	g.report.Add(Violation{Rule: id, File: file, Message: fmt.Sprintf(format, args...)})
}

// receipt compares the spec with what was admitted.
func (g *launchGate) receipt() {
	r := g.in.Receipt
	if r == nil {
		return
	}
	if found := digest.FromBytes(g.in.SpecBytes); found != r.SpecBytes {
		g.add("launch.receipt.spec", g.in.SpecFile, "the spec's bytes are %s, the receipt of job %.100q is for %s", found, r.Job, r.SpecBytes)
	}
	if r.Dialect != g.in.Dialect {
		g.add("launch.receipt.spec", g.in.SpecFile, "the spec lies where a %s job has it, the receipt is for a %s job", g.in.Dialect, r.Dialect)
	}
}

// pins compares each entry of spec.plugins with what it is pinned to. Entries that the spec's own rules refuse are
// left to those.
func (g *launchGate) pins() {
	by := "the registry has"
	if g.in.Receipt != nil {
		by = "the receipt pins"
	}
	pinned := make(map[string]receipt.Pin, len(g.in.Plugins))
	for _, p := range g.in.Plugins {
		pinned[p.Pin.ID] = p.Pin
	}
	for i, ref := range g.spec.Plugins {
		content, err := digest.Parse(ref.Digest)
		if err != nil || ref.ID == "" || ref.Version == "" {
			continue
		}
		pin, ok := pinned[ref.ID]
		delete(pinned, ref.ID)
		field := fmt.Sprintf("spec.plugins[%d]", i)
		switch {
		case !ok && g.report.OK():
			g.addField("launch.digest.pin", field, "%.300q is pinned by nothing", ref.ID)
		case ok && (pin.Version != ref.Version || pin.Content != content):
			g.addField("launch.digest.pin", field, "the spec locks %.300s@%.200s %s, %s %s %s", ref.ID, ref.Version, content, by, pin, pin.Content)
		}
	}
	for _, p := range g.in.Plugins {
		if _, left := pinned[p.Pin.ID]; left && g.report.OK() {
			g.add("launch.digest.pin", g.in.SpecFile, "%s %s, the spec does not name it", by, p.Pin)
		}
	}
}

func (g *launchGate) addField(id RuleID, field, format string, args ...any) {
	g.report.Add(Violation{Rule: id, File: g.in.SpecFile, Field: field, Message: fmt.Sprintf(format, args...)})
}

// packs checks every pack, then what only shows between them.
func (g *launchGate) packs() {
	owners := make(map[string]string) // of import names
	for _, p := range g.in.Plugins {
		g.injected(p, "launch.plugin.missing")
		if p.Copy == nil {
			continue
		}
		if !g.digests(p) {
			continue // what is not the published pack needs no further words
		}
		read := g.manifest(p)
		if read == nil || !read.Kind.Executable() || read.Wheel != "" {
			continue
		}
		for _, name := range importNames(p.Copy.Listing()) {
			if other, taken := owners[name]; taken {
				g.add("launch.import.collision", p.Injected.Folder, "%s and %s both own the import name %.200q", other, p.Pin, name)
				continue
			}
			owners[name] = p.Pin.String()
		}
	}
	for _, p := range g.in.Recipes {
		g.recipe(p)
	}
}

// injected checks what lies in the job directory. What the runtime supplies need not be there.
func (g *launchGate) injected(p LaunchPack, missing RuleID) {
	in := p.Injected
	switch in.State {
	case InjectedAbsent:
		if !p.Pin.RuntimeSupplied {
			g.add(missing, in.Folder, "%s is to be run, and %s", p.Pin, orText(in.Detail, "nothing lies there"))
		}
	case InjectedLink:
		g.add("launch.plugin.link", in.Folder, "%s: %s", p.Pin, orText(in.Detail, "the folder is a symbolic link"))
	case InjectedUnreadable:
		g.add("launch.plugin.unreadable", in.Folder, "%s: %s", p.Pin, in.Detail)
	case InjectedPresent:
		if g.entries(in) && !p.Unpinned {
			g.compare(p)
		}
	}
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// entries refuses what no digest sees although Python would. It reports whether the digests say anything.
func (g *launchGate) entries(in Injected) bool {
	whole := true
	for _, e := range in.Listing.Entries {
		file := path.Join(in.Folder, e.Path)
		switch e.Kind {
		case tree.FolderLink:
			g.add("launch.plugin.link", file, "a link to a folder (%.200q): its files are in no digest", e.Link)
		case tree.Dangling:
			g.add("launch.plugin.link", file, "a link to nothing (%.200q)", e.Link)
		case tree.Outside:
			g.add("launch.plugin.link", file, "a link that leaves the pack (%.200q)", e.Link)
			whole = false
		case tree.Special:
			g.add("launch.plugin.special", file, "no regular file")
		}
	}
	return whole
}

// compare holds what was injected against the pin by both digests.
func (g *launchGate) compare(p LaunchPack) {
	found := p.Injected.Listing
	switch {
	case found.Content != p.Pin.Content:
		g.add("launch.digest.content", p.Injected.Folder, "%s: expected content %s, found %s%s",
			p.Pin, p.Pin.Content, orText(found.Content.String(), "none: a name is not UTF-8"), difference(p))
	case !p.Pin.Tree.IsZero() && found.Tree != p.Pin.Tree:
		g.add("launch.digest.tree", p.Injected.Folder, "%s: the content digest is right and the files are not those that were published: expected tree %s, found %s%s",
			p.Pin, p.Pin.Tree, found.Tree, difference(p))
	}
}

// maxDifferences bounds how many files a message names.
const maxDifferences = 5

// difference names the files that differ from our own copy.
func difference(p LaunchPack) string {
	if p.Copy == nil {
		return ""
	}
	var found []string
	want := make(map[string]tree.Entry)
	for e := range p.Copy.Listing().Counted {
		want[e.Path] = e
	}
	for e := range p.Injected.Listing.Counted {
		published, ok := want[e.Path]
		delete(want, e.Path)
		switch {
		case !ok:
			found = append(found, fmt.Sprintf("%.200q is extra", e.Path))
		case published.SHA256 != e.SHA256:
			found = append(found, fmt.Sprintf("%.200q differs", e.Path))
		}
	}
	for e := range p.Copy.Listing().Counted {
		if _, missing := want[e.Path]; missing {
			found = append(found, fmt.Sprintf("%.200q is missing", e.Path))
		}
	}
	if len(found) == 0 {
		return ""
	}
	text := strings.Join(found[:min(len(found), maxDifferences)], ", ")
	if more := len(found) - maxDifferences; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return " (" + text + ")"
}

// digests proves our own copy.
func (g *launchGate) digests(p LaunchPack) bool {
	found := p.Copy.Listing()
	if found.Content == p.Pin.Content && found.Tree == p.Pin.Tree {
		return true
	}
	g.add("launch.digest.copy", p.Injected.Folder, "%s: the copy for the job has content %s and tree %s, expected %s and %s",
		p.Pin, found.Content, found.Tree, p.Pin.Content, p.Pin.Tree)
	return false
}

// manifest checks plugin.yaml and the layout of our own copy, and that both say what the pin says. It is nil when
// there is no manifest to go on with.
func (g *launchGate) manifest(p LaunchPack) *pack.Manifest {
	read, report, err := pack.Check(p.Copy, pack.Options{Policy: g.in.Policy, Dialect: g.in.Dialect})
	if err != nil {
		g.add("launch.digest.copy", p.Injected.Folder, "%s: the copy for the job can't be read: %v", p.Pin, err)
		return nil
	}
	for _, list := range [][]Violation{report.Violations, report.Warnings} {
		for i := range list {
			list[i].File = path.Join(p.Injected.Folder, list[i].File)
		}
	}
	g.report.Merge(report)
	m := read.Manifest
	if m == nil {
		return nil
	}
	if m.Name != p.Pin.Leaf() || m.Version != p.Pin.Version {
		g.add("launch.identity", path.Join(p.Injected.Folder, pack.ManifestFile), "plugin.yaml says %.200q %.200q, pinned is %s", m.Name, m.Version, p.Pin)
	}
	if m.Kind != "" && string(m.Kind) != p.Pin.Kind {
		g.add("launch.kind", path.Join(p.Injected.Folder, pack.ManifestFile), "plugin.yaml says the pack is %s, it was published as %s", m.Kind, p.Pin.Kind)
	}
	g.core(p, m)
	return m
}

// core checks requires.core as the launcher will: pre-releases count. A range that is none is the manifest's own fault.
func (g *launchGate) core(p LaunchPack, m *pack.Manifest) {
	required, err := pep440.ParseSpecifierSet(m.Requires.Core)
	if err != nil || required.Empty() {
		return
	}
	core := orText(g.in.CoreVersion, g.spec.Provenance.CoreVersion)
	version, err := pep440.ParseVersion(core)
	file := path.Join(p.Injected.Folder, pack.ManifestFile)
	switch {
	case err != nil:
		g.add("launch.requires.core", file, "%s requires core %s, and the running client's version %.100q is none", p.Pin, m.Requires.Core, core)
	case !required.Contains(version, true):
		g.add("launch.requires.core", file, "%s requires core %s, this job runs with %s", p.Pin, m.Requires.Core, core)
	}
}

// recipe checks a recipe pack: by its pin, and by the digest that the spec locks when it is the spec's recipe.
func (g *launchGate) recipe(p LaunchPack) {
	g.injected(p, "launch.recipe.missing")
	if p.Copy == nil || (!p.Unpinned && !g.digests(p)) {
		return
	}
	if p.Unpinned {
		g.add("launch.recipe.unpinned", p.Injected.Folder, "%.300s: no receipt pins this recipe pack", p.Pin.ID)
	}
	read, _, err := pack.ReadRecipe(p.Copy, pack.RecipeOptions{Policy: g.in.Policy, Dialect: g.in.Dialect})
	switch {
	case err != nil:
		g.add("launch.digest.copy", p.Injected.Folder, "%.300s: the copy for the job can't be read: %v", p.Pin.ID, err)
	case read == nil || read.ID() != g.spec.Recipe.Name:
	case !lockedRecipe(read, g.spec.Recipe.Digest):
		g.add("launch.digest.recipe", p.Injected.Folder, "recipe %.200s: the spec locks %.100s, found %s", g.spec.Recipe.Name, g.spec.Recipe.Digest, read.Digest)
	}
}

// lockedRecipe reports whether locked is a digest of the recipe by either formula that clients have used: the older
// one covers the template as well (packs.md 5.1).
func lockedRecipe(r *pack.Recipe, locked string) bool {
	older := fmt.Sprintf(`{"manifest":"%s","template":"%s"}`, r.ManifestDigest, r.TemplateDigest)
	return locked == r.Digest.String() || (r.Dialect == dialect.Forge && locked == digest.FromBytes([]byte(older)).String())
}

// importNames lists what a plugin's root puts in front of sys.path, as the launcher sees it: top-level modules, and
// folders with an identifier's name that hold Python files at any depth.
func importNames(l *tree.Listing) []string {
	var names []string
	seen := make(map[string]bool)
	for e := range l.Counted {
		top, below, nested := strings.Cut(e.Path, "/")
		if nested && (tree.Suffix(path.Base(below)) != ".py" || !isIdentifier(top)) {
			continue
		}
		if !nested {
			if tree.Suffix(top) != ".py" {
				continue
			}
			top = strings.TrimSuffix(top, ".py")
		}
		if !seen[top] {
			seen[top] = true
			names = append(names, top)
		}
	}
	return names
}

// isIdentifier is Python's str.isidentifier for the names that packs have.
func isIdentifier(s string) bool {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return s != ""
}
