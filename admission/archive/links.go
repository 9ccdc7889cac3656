package archive

import (
	"path"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// seen is what a checker keeps of a member.
type seen struct {
	kind  kind
	link  string
	size  int64
	index int
}

// links resolves the links of an archive.
type links struct {
	members map[string]seen
	sorted  []string // the members' paths
}

func newLinks(members map[string]seen) *links {
	l := &links{members: members}
	for path := range members {
		l.sorted = append(l.sorted, path)
	}
	slices.Sort(l.sorted)
	return l
}

// look is what lies at a path, for tree.ResolveLink: folders are those that members are in.
func (l *links) look(path string) (tree.Node, string) {
	if m, ok := l.members[path]; ok {
		switch m.kind {
		case symlink:
			return tree.LinkNode, m.link
		case other:
			return tree.SpecialNode, ""
		}
		return tree.FileNode, ""
	}
	prefix := path + "/"
	i, _ := slices.BinarySearch(l.sorted, prefix)
	if i < len(l.sorted) && strings.HasPrefix(l.sorted[i], prefix) {
		return tree.FolderNode, ""
	}
	return tree.NoNode, ""
}

// target finds the regular member whose bytes the link at path stands for. The violations may be warnings.
func (l *links) target(at string) (string, []rule.Violation) {
	m := l.members[at]
	if len(m.link) > limit.Path {
		return "", []rule.Violation{violation("archive.limit.path", at, "the link has a text of %d bytes, at most %d are allowed", len(m.link), limit.Path)}
	}
	if m.kind == hardlink {
		return l.hard(at, m)
	}
	to, kind := tree.ResolveLink(at, m.link, l.look)
	if v, bad := judgeLink(at, m.link, kind); bad {
		return "", []rule.Violation{v}
	}
	if m := l.members[to]; m.kind == hardlink { // another name of the same file
		return l.hard(to, m)
	}
	return to, nil
}

// hard finds the regular member that the hard link m at path at names.
func (l *links) hard(at string, m seen) (string, []rule.Violation) {
	target, ok := l.members[m.link]
	switch {
	case !ok && leaves(m.link):
		return "", []rule.Violation{violation("archive.link.outside", at, "it is a hard link to %.200q, outside the pack", m.link)}
	case !ok:
		return "", []rule.Violation{violation("archive.link.target", at, "it is a hard link to %.200q, which is not in the archive", m.link)}
	case target.kind != regular:
		return "", []rule.Violation{violation("archive.link.target", at, "it is a hard link to %.200q, which is no regular file", m.link)}
	case target.index > m.index:
		return m.link, []rule.Violation{violation("archive.link.order", at, "it is a hard link to %.200q, which comes later in the archive", m.link)}
	}
	return m.link, nil
}

// leaves reports whether a hard link's text names something outside the pack.
func leaves(to string) bool {
	slashed := strings.ReplaceAll(to, `\`, "/")
	clean := path.Clean(slashed)
	return strings.HasPrefix(slashed, "/") || clean == ".." || strings.HasPrefix(clean, "../")
}

// judgeLink is the violation of a symbolic link that leads to anything but a file of the pack.
func judgeLink(at, text string, kind tree.Kind) (rule.Violation, bool) {
	switch kind {
	case tree.Counted:
		return rule.Violation{}, false
	case tree.Outside:
		return violation("archive.link.outside", at, "it is a link to %.200q, outside the pack", text), true
	case tree.FolderLink:
		return violation("archive.link.target", at, "it is a link to %.200q, a folder; expected a file", text), true
	case tree.Special:
		return violation("archive.link.target", at, "it is a link to %.200q, which is no regular file", text), true
	}
	return violation("archive.link.target", at, "it is a link to %.200q, which leads to no file of the pack", text), true
}
