package pack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// templateDir is the one folder of a declarative pack that may hold executable files.
const templateDir = "template"

// packageField is the field under which the clients report what is wrong with the files of a pack.
const packageField = "package"

// layout carries one check of a pack's files against its manifest (packs.md 4).
type layout struct {
	m     *Manifest
	tree  tree.Tree
	nodes nodes
	found layoutFacts
	err   error // the first that kept a file from being read
	filer
}

// layoutFacts is what the layout check read on its way.
type layoutFacts struct {
	icon        string       // data URI, or the icon's text
	integration *Integration // of a framework integration
}

// checkLayout checks the files of a pack in the order of the clients: icon, integration and wheel in tuneplane,
// then the rules of declarative or of executable packs. A manifest without a kind gets only what holds for all.
//
// An error means that the bytes of the pack could not be read.
func checkLayout(t tree.Tree, m *Manifest, policy rule.Policy) (layoutFacts, rule.Report, error) {
	l := &layout{m: m, tree: t, nodes: newNodes(t.Listing())}
	l.report.Policy = policy
	l.digests()
	l.icon()
	if m.Kind == KindFrameworkIntegration {
		l.integration()
	}
	if m.Dialect == dialect.TunePlane && m.Wheel != "" && m.Kind.TakesEntrypoint() {
		l.wheel()
	}
	switch {
	case m.Kind.Declarative():
		l.declarative()
	case m.Kind.Executable():
		l.reserved()
		l.entrypoint()
	}
	return l.found, l.report, l.err
}

func (l *layout) add(id rule.ID, field, file, format string, args ...any) (refused bool) {
	return l.file(rule.Violation{Rule: id, Field: field, File: file, Message: fmt.Sprintf(format, args...)})
}

// read reads a file of at most max bytes. It reports false when that failed, which ends the check with an error.
func (l *layout) read(path string, max int64) ([]byte, bool) {
	data, err := tree.ReadFile(l.tree, path, max)
	if err != nil && l.err == nil {
		l.err = fmt.Errorf("read %q: %w", path, err)
	}
	return data, err == nil
}

// addEach files one violation for each of the files.
func (l *layout) addEach(id rule.ID, field string, files []string, message func(file string) string) {
	for _, file := range files {
		l.add(id, field, file, "%s", message(file))
	}
}

// digests refuses files that have no digest: what can't be named can't be pinned.
func (l *layout) digests() {
	if listing := l.tree.Listing(); !listing.Tree.IsZero() && !listing.Content.IsZero() {
		return
	}
	for _, e := range l.tree.Listing().Entries {
		if e.Kind == tree.Outside {
			l.add("digest.none", "", e.Path, "the pack has no digest: %.200q is a link to %.200q, outside the pack", e.Path, e.Link)
			return
		}
	}
	l.add("digest.none", "", "", "the pack has no digest: a file's name is not UTF-8")
}

// nodes answers what lies at a path of a listing.
type nodes struct {
	entries map[string]tree.Entry
	folders map[string]bool
}

func newNodes(listing *tree.Listing) nodes {
	n := nodes{entries: make(map[string]tree.Entry, len(listing.Entries)), folders: make(map[string]bool)}
	for _, e := range listing.Entries {
		n.entries[e.Path] = e
		if e.Kind == tree.Folder {
			n.folders[e.Path] = true
		}
		for dir := parent(e.Path); dir != "" && !n.folders[dir]; dir = parent(dir) {
			n.folders[dir] = true
		}
	}
	return n
}

// parent is the folder of a path, "" for the root.
func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

// look is what tree.ResolveLink asks.
func (n nodes) look(path string) (tree.Node, string) {
	e, ok := n.entries[path]
	switch {
	case n.folders[path]:
		return tree.FolderNode, ""
	case !ok:
		return tree.NoNode, ""
	case e.Link != "":
		return tree.LinkNode, e.Link
	case e.Kind == tree.Special:
		return tree.SpecialNode, ""
	}
	return tree.FileNode, ""
}

// file finds the file that a path leads to, links followed. The entry's path is where it lies.
func (n nodes) file(path string) (tree.Entry, bool) {
	target, kind := tree.ResolveLink("", path, n.look)
	if kind != tree.Counted {
		return tree.Entry{}, false
	}
	return n.entries[target], true
}

// folder finds the folder that a path leads to, links followed; "" is the root.
func (n nodes) folder(path string) (string, bool) {
	const probe = "\x00" // no name holds it, so a file of that name is found exactly where path is a folder
	target, kind := tree.ResolveLink("", path+"/"+probe, func(p string) (tree.Node, string) {
		if strings.HasSuffix(p, probe) {
			return tree.FileNode, ""
		}
		return n.look(p)
	})
	return parent(target), kind == tree.Counted
}

// counted reports whether a path is itself a file of the pack, not reached through a link to a folder.
func (n nodes) counted(path string) bool {
	return n.entries[path].Path != "" && n.entries[path].Kind == tree.Counted
}

// topLevel lists what lies directly below the root, sorted.
func (n nodes) topLevel() []string {
	var top []string
	for p := range n.entries {
		if !strings.Contains(p, "/") {
			top = append(top, p)
		}
	}
	for p := range n.folders {
		if _, ok := n.entries[p]; !ok && !strings.Contains(p, "/") {
			top = append(top, p)
		}
	}
	slices.Sort(top)
	return top
}

// inExcludedFolder reports whether a path lies below a folder that the digest leaves out.
func inExcludedFolder(path string) bool {
	for dir := parent(path); dir != ""; dir = parent(dir) {
		if tree.IsExcludedFolder(dir[strings.LastIndexByte(dir, '/')+1:]) {
			return true
		}
	}
	return false
}
