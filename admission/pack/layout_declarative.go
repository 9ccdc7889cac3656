package pack

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// executableSuffixes are the file-name suffixes, in lower case, that a declarative pack may not hold (packs.md 4.1).
var executableSuffixes = map[string]bool{
	".py": true, ".pyc": true, ".pyo": true, ".pyd": true, ".so": true, ".dylib": true, ".dll": true,
	".sh": true, ".bash": true, ".zsh": true, ".fish": true, ".ps1": true, ".bat": true, ".cmd": true,
	".exe": true, ".pl": true, ".rb": true, ".lua": true, ".js": true, ".mjs": true, ".cjs": true, ".ts": true,
}

// declarative checks that a pack the platform only reads holds nothing it could execute (packs.md 4.1, 13.3, 13.9).
func (l *layout) declarative() {
	exempt := l.exemption()
	var offenders, links, binaries, marked []string
	for _, e := range l.tree.Listing().Entries {
		if e.Kind == tree.Folder || inExcludedFolder(e.Path) {
			continue
		}
		if e.Link != "" && e.Path != templateDir {
			links = append(links, e.Path)
		}
		if !l.isFile(e) || exempt(e) {
			continue
		}
		switch {
		case executableSuffixes[pyvalue.Lower(tree.Suffix(path.Base(e.Path)))]:
			offenders = append(offenders, e.Path)
		case formatOf(e.Head) != "":
			binaries = append(binaries, e.Path)
		case e.Executable:
			marked = append(marked, e.Path)
		}
	}
	l.addEach("layout.declarative", packageField, offenders, func(file string) string {
		return fmt.Sprintf("%.200q is executable by its suffix; a %s pack is only read, so it holds no code outside %s/", file, l.m.Kind, templateDir)
	})
	l.templateFolder()
	l.addEach("layout.declarative.link", packageField, links, func(file string) string {
		return fmt.Sprintf("%.200q is a link to %.200q; a %s pack holds no links", file, l.nodes.entries[file].Link, l.m.Kind)
	})
	l.addEach("layout.declarative.magic", packageField, binaries, func(file string) string {
		return fmt.Sprintf("%.200q begins as %s; a %s pack is only read, so it holds no code outside %s/", file, formatOf(l.nodes.entries[file].Head), l.m.Kind, templateDir)
	})
	if len(marked) > 0 {
		l.add("layout.declarative.mode", packageField, marked[0], "marked as executable: %s", quoteList(marked))
	}
}

// isFile reports whether the clients take an entry for a file: what a link leads to counts, and what the digest leaves
// out does too.
func (l *layout) isFile(e tree.Entry) bool {
	switch e.Kind {
	case tree.Counted, tree.Outside:
		return true
	case tree.Excluded:
		_, ok := l.nodes.file(e.Path)
		return ok
	}
	return false
}

// templateFolder checks that template is a folder where there is one: through a link, or instead of a folder,
// it would exempt what it should not.
func (l *layout) templateFolder() {
	e, ok := l.nodes.entries[templateDir]
	if !ok || e.Kind == tree.Folder {
		return
	}
	what := "a file"
	if e.Link != "" {
		what = fmt.Sprintf("a link to %.200q", e.Link)
	}
	l.add("layout.template", packageField, templateDir, "%s is %s; it must be a folder", templateDir, what)
}

// exemption is the clients' test whether a file may be executable: it resolves into what template resolves to.
func (l *layout) exemption() func(tree.Entry) bool {
	root, ok := l.nodes.folder(templateDir)
	if !ok {
		root = templateDir
	}
	return func(e tree.Entry) bool {
		at := e.Path
		if e.Link != "" {
			target, kind := tree.ResolveLink(e.Path, e.Link, l.nodes.look)
			if kind != tree.Counted {
				return false
			}
			at = target
		}
		return root == "" || at == root || strings.HasPrefix(at, root+"/")
	}
}

// formatOf names the executable format that a file's first bytes are of, "" for none.
func formatOf(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("#!")):
		return "a script (#!)"
	case bytes.HasPrefix(head, []byte("\x7fELF")):
		return "an ELF binary"
	case bytes.HasPrefix(head, []byte("MZ")) && bytes.IndexByte(head, 0) >= 0:
		return "a PE binary"
	case len(head) >= 4 && machO[string(head[:4])]:
		return "a Mach-O binary"
	}
	return ""
}

// machO are the magic numbers of Mach-O files and of archives of them, in both byte orders.
var machO = map[string]bool{
	"\xfe\xed\xfa\xce": true, "\xce\xfa\xed\xfe": true, "\xfe\xed\xfa\xcf": true, "\xcf\xfa\xed\xfe": true,
	"\xca\xfe\xba\xbe": true, "\xbe\xba\xfe\xca": true, "\xca\xfe\xba\xbf": true, "\xbf\xba\xfe\xca": true,
}
