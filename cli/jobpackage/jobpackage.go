// Package jobpackage finds the files of a project that travel with a job and packs them (recipes-and-locks.md 8).
//
// The contract:
//   - The files are those that the real client of the dialect would send: below the experiment, common/ and configs/, as git
//     lists them, or, in tuneplane without git, as a walk finds them; without PDF files; with line ends of scripts made
//     Unix's. Names that git quotes, which the clients lose without a word, are there.
//   - Stricter than the clients: a link that does not lead to a file of the package is refused, and nothing outside the
//     project's folder is ever read, whatever links there are.
//   - A name that looks like a secret's refuses the whole package. All that is wrong is said at once.
//   - One tree gives one archive, byte for byte: sorted, without times and owners.
//   - Memory is that of the paths. No file is opened that is not a regular one.
package jobpackage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// Project says whose files are wanted.
type Project struct {
	Root    string // the project's folder, absolute
	Dialect dialect.Dialect
	Exp     string // path of the experiment below Root, with slashes; a slash at the end does not count
	// MaxWalk is how many bytes may be packed when no git tells what belongs to the project; 0 is no bound.
	MaxWalk int64
}

// DefaultMaxWalk is tuneplane's bound.
const DefaultMaxWalk = 64 * limit.MiB

// Member is one file of a package.
type Member struct {
	Path       string // below the project's folder, with slashes
	Link       string // what the link says; "" for a regular file
	Size       int64  // as it was found; line ends may make it smaller
	Executable bool
	Untracked  bool // git does not track it, so no commit tells what it was
}

// List is what a package will hold, sorted by path.
type List struct {
	Members []Member
	ByGit   bool // git listed them
	root    string
	dialect dialect.Dialect
}

// Find lists the files of a package. The report refuses what can't be packed; an error says that the project can't be read.
func Find(ctx context.Context, p Project) (List, rule.Report, error) {
	f := &finder{project: p, report: rule.Report{Dialect: p.Dialect}, list: List{root: p.Root, dialect: p.Dialect}}
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return f.list, f.report, err
	}
	defer root.Close()
	f.root = root
	names, err := f.names(ctx)
	if err != nil {
		return f.list, f.report, err
	}
	names = slices.DeleteFunc(names, func(n listed) bool { return isDocument(n.path) })
	if len(names) > limit.JobFiles {
		f.bad("submit.package.size", fullest(names), "the package would hold %d files, expected at most %d; most of them lie here", len(names), limit.JobFiles)
		return f.list, f.report, nil
	}
	for _, n := range names {
		if looksSecret(n.path) {
			f.bad("submit.package.secret", n.path, "the name looks like that of a secret, expected none in a job package")
			continue
		}
		f.member(n)
		if len(f.report.Violations) >= maxFaults {
			break
		}
	}
	f.judge()
	return f.list, f.report, nil
}

// maxFaults is after how many faults the rest is not looked at.
const maxFaults = 100

// finder makes one list.
type finder struct {
	project Project
	root    *os.Root
	report  rule.Report
	list    List
}

// listed is a name that git or the walk gave.
type listed struct {
	path      string
	untracked bool
}

func (f *finder) bad(id rule.ID, file, format string, args ...any) {
	f.report.Add(rule.Violation{Rule: id, File: file, Message: fmt.Sprintf(format, args...)})
}

// folders are those whose files travel.
func (p Project) folders() []string {
	return []string{strings.TrimRight(p.Exp, "/"), "common", "configs"}
}

// names are the files that may travel, each once.
func (f *finder) names(ctx context.Context) ([]listed, error) {
	state, err := Inspect(ctx, f.project.Root)
	if err != nil {
		return nil, err
	}
	var names []listed
	switch {
	case state.Lists():
		f.list.ByGit = true
		names, err = gitNames(ctx, f.project)
	case f.project.Dialect == dialect.TunePlane:
		names, err = f.walk()
	default:
		return nil, fmt.Errorf("%s is in no git repository, and a package of this project is made of what git lists: run git init and commit once", f.project.Root)
	}
	slices.SortFunc(names, func(a, b listed) int { return cmp.Compare(a.path, b.path) })
	return slices.CompactFunc(names, func(a, b listed) bool { return a.path == b.path }), err
}

// member judges one name and adds it.
func (f *finder) member(n listed) {
	m := Member{Path: n.path, Untracked: n.untracked}
	info, err := f.root.Lstat(filepath.FromSlash(strings.TrimSuffix(n.path, "/")))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.bad("submit.package.file", n.path, "the file is gone, though git lists it")
		return
	case err != nil:
		f.bad("submit.package.file", n.path, "the file can't be reached below the project's folder: %s", cause(err))
		return
	case info.IsDir():
		f.bad("submit.package.file", n.path, "found a folder that git takes for one thing, such as a repository of its own, expected a file")
		return
	case info.Mode()&fs.ModeSymlink != 0 && !f.unixEnds(n.path):
		f.link(m)
		return
	case info.Mode()&fs.ModeSymlink != 0:
		if info, err = f.root.Stat(filepath.FromSlash(n.path)); err != nil || !info.Mode().IsRegular() {
			f.bad("submit.package.link", n.path, "the link leads to no file of the project, and a script is packed as what it leads to")
			return
		}
	}
	if !info.Mode().IsRegular() {
		f.bad("submit.package.file", n.path, "found %s, expected a regular file", kindOf(info.Mode()))
		return
	}
	m.Size, m.Executable = info.Size(), info.Mode()&0o100 != 0
	f.list.Members = append(f.list.Members, m)
}

// link takes a symbolic link as one; judge says whether it leads to a member.
func (f *finder) link(m Member) {
	target, err := f.root.Readlink(filepath.FromSlash(m.Path))
	if err != nil {
		f.bad("submit.package.file", m.Path, "the link can't be read: %s", cause(err))
		return
	}
	if info, err := f.root.Stat(filepath.FromSlash(m.Path)); err == nil && info.IsDir() {
		f.bad("submit.package.link", m.Path, "the link leads to a folder, expected one that leads to a file")
		return
	}
	m.Link = filepath.ToSlash(target)
	f.list.Members = append(f.list.Members, m)
}

// cause is an error of a path without its operation and path.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

// judge applies what needs the whole list.
func (f *finder) judge() {
	members := make(map[string]string, len(f.list.Members))
	var total int64
	for _, m := range f.list.Members {
		members[m.Path] = m.Link
		total += m.Size
	}
	for _, m := range f.list.Members {
		if m.Link != "" && !leadsToMember(members, m.Path) {
			f.bad("submit.package.link", m.Path, "the link to %.200q does not lead to a file of the package", m.Link)
		}
	}
	switch bound := f.project.MaxWalk; {
	case len(f.report.Violations) > 0:
	case len(members) == 0:
		f.bad("submit.package.empty", f.project.folders()[0], "no file below %s is to be packed", strings.Join(f.project.folders(), ", "))
	case total > limit.JobUnpacked:
		f.bad("submit.package.size", f.list.largestOf(1)[0].Path, "the files have %s, expected at most %s; the largest are %s", sizeText(total), sizeText(limit.JobUnpacked), f.list.largest())
	case !f.list.ByGit && bound > 0 && total > bound:
		f.bad("submit.package.size", f.list.largestOf(1)[0].Path, "the files have %s, expected at most %s where no git says what belongs to the project; the largest are %s", sizeText(total), sizeText(bound), f.list.largest())
	}
}

// maxLinks is how many links may follow each other.
const maxLinks = 40

// leadsToMember reports whether a link, by its text and over other links of the package, ends at a regular member.
func leadsToMember(members map[string]string, at string) bool {
	for range maxLinks {
		target := members[at]
		if path.IsAbs(target) {
			return false
		}
		at = path.Join(path.Dir(at), target)
		next, ok := members[at]
		if !ok || next == "" {
			return ok
		}
	}
	return false
}

// Bytes is the sum of the regular members' sizes.
func (l List) Bytes() int64 {
	var total int64
	for _, m := range l.Members {
		total += m.Size
	}
	return total
}

// Untracked are the members that git does not track.
func (l List) Untracked() []string {
	var paths []string
	for _, m := range l.Members {
		if m.Untracked {
			paths = append(paths, m.Path)
		}
	}
	return paths
}

// largestOf are the n largest members, or as many as there are.
func (l List) largestOf(n int) []Member {
	by := slices.Clone(l.Members)
	slices.SortFunc(by, func(a, b Member) int { return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Path, b.Path)) })
	return by[:min(len(by), n)]
}

// largest names the largest members.
func (l List) largest() string {
	var names []string
	for _, m := range l.largestOf(5) {
		names = append(names, fmt.Sprintf("%s (%s)", m.Path, sizeText(m.Size)))
	}
	return strings.Join(names, ", ")
}

// fullest is the folder that holds most of the files.
func fullest(names []listed) string {
	count := make(map[string]int)
	best := ""
	for _, n := range names {
		dir := path.Dir(n.path)
		if count[dir]++; best == "" || count[dir] > count[best] {
			best = dir
		}
	}
	return best
}

// sizeText is a size for a person.
func sizeText(n int64) string {
	if n < limit.MiB {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/limit.MiB)
}
