package archive

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// jobCaps are the limits of a job package.
var jobCaps = caps{limit.JobPackage, limit.JobUnpacked, limit.JobStream, limit.JobFiles}

// JobPackage is what a job package holds: an archive of an experiment, of the project's common code, and of its configs.
type JobPackage struct {
	Files int
	Bytes int64 // of its regular members
	// Experiment is the deepest folder that holds all members outside common and configs; "." when they have none in common,
	// "" when there are none.
	Experiment string
}

// jobHint stands in the place of the fixes of the rules of archives, which tell how a pack is made again.
const jobHint = "Make the package again: `sf submit EXPERIMENT` does."

// CheckJob reads a job package once. Its archive is judged as a pack's is, by the same reader, but for names that only a
// digest or another system would mind: a job runs where it was packed for. Links must lead to a file of the package. The
// report is the verdict; an error says that the source could not be read. Memory is that of the members' paths.
func CheckJob(src Source, policy rule.Policy) (JobPackage, rule.Report, error) {
	c := &jobChecker{report: rule.Report{Policy: policy}, members: make(map[string]seen)}
	err := c.read(src)
	if f, ok := errors.AsType[*fault](err); ok {
		c.add(f.violations...)
		err = nil
	}
	if err != nil && err != errFull {
		return JobPackage{}, c.report, err
	}
	if err == nil && c.report.OK() {
		c.judge()
	}
	return c.found, c.report, nil
}

type jobChecker struct {
	report  rule.Report
	found   JobPackage
	members map[string]seen
	links   []string
}

// add files violations with the fix for a job package. It reports whether there is room for more.
func (c *jobChecker) add(violations ...rule.Violation) (goOn bool) {
	for _, v := range violations {
		if v.Hint == "" && strings.HasPrefix(string(v.Rule), "archive.") {
			v.Hint = jobHint
		}
		c.report.Add(v)
	}
	if len(c.report.Violations) < limit.Faults {
		return true
	}
	c.report.Add(rule.Violation{Rule: "archive.limit.faults", Message: fmt.Sprintf("there are %d faults; no more were looked for", len(c.report.Violations)), Hint: jobHint})
	return false
}

func (c *jobChecker) read(src Source) error {
	s, err := openWithin(src, false, nil, jobCaps)
	if err != nil {
		return err
	}
	defer s.Close()
	sc := newScanner(s)
	for {
		m, err := sc.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !c.member(m) {
			return errFull
		}
	}
}

// member judges one member by itself. It reports whether there is room for more faults.
func (c *jobChecker) member(m *member) (goOn bool) {
	faults := append(m.notes, checkJobPath(m.path)...)
	if _, twice := c.members[m.path]; twice {
		faults = append(faults, violation("archive.duplicate.path", m.path, "the path comes twice"))
	}
	c.members[m.path] = seen{kind: m.kind, link: m.link, size: m.size, index: m.index}
	switch m.kind {
	case symlink, hardlink:
		c.links = append(c.links, m.path)
	case regular:
		c.found.Bytes += m.size
	}
	c.found.Files++
	if first, _, _ := strings.Cut(m.path, "/"); !slices.Contains(sharedFolders, first) || first == m.path {
		c.found.Experiment = commonFolder(c.found.Experiment, path.Dir(m.path))
	}
	return c.add(faults...)
}

// judge applies the rules that need all members.
func (c *jobChecker) judge() {
	for _, p := range slices.Sorted(maps.Keys(c.members)) {
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			if _, file := c.members[dir]; file && !c.add(violation("archive.duplicate.folder", p, "the path %.200q is a file and a folder", dir)) {
				return
			}
		}
	}
	l := newLinks(c.members)
	for _, at := range c.links {
		if _, found := l.target(at); !c.add(found...) {
			return
		}
	}
}

// The folders of a project that travel with every experiment, and the names at its top that the platform gives to its own.
var (
	sharedFolders = []string{"common", "configs"}
	reservedNames = []string{".starforge", ".tuneplane", "forge_plugins", "tuneplane_plugins"}
)

// checkJobPath applies the rules that judge one path of a job package by itself.
func checkJobPath(p string) []rule.Violation {
	n := names{path: p}
	if p == "" {
		n.add("archive.path.empty", "the member has no name")
		return n.found
	}
	n.lengths()
	n.characters()
	if strings.HasPrefix(p, "/") {
		n.add("archive.path.absolute", "the path is absolute, expected one relative to the project")
	}
	for element := range strings.SplitSeq(p, "/") {
		n.way(element)
	}
	first, _, _ := strings.Cut(p, "/")
	if slices.Contains(reservedNames, strings.ToLower(first)) {
		n.add("jobpackage.reserved", "%q at the project's top is the platform's own", first)
	}
	return n.found
}

// commonFolder is the deepest folder that holds both; "" stands for nothing yet.
func commonFolder(a, b string) string {
	if a == "" || a == b {
		return b
	}
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	n := 0
	for n < len(as) && n < len(bs) && as[n] == bs[n] {
		n++
	}
	if n == 0 {
		return "."
	}
	return strings.Join(as[:n], "/")
}

// CheckExperiment judges where the files of a package lie against the experiment that its spec names. experiment is
// JobPackage.Experiment.
func CheckExperiment(experiment, exp string) []rule.Violation {
	exp = path.Clean(exp)
	switch {
	case experiment == "":
		return []rule.Violation{{Rule: "jobpackage.experiment", Field: "spec.source.exp", Message: fmt.Sprintf("the package holds no file of the experiment %q", exp)}}
	case experiment != exp && !strings.HasPrefix(experiment, exp+"/"):
		found := fmt.Sprintf("in %q", experiment)
		if experiment == "." {
			found = "in several folders of the project's top"
		}
		return []rule.Violation{{Rule: "jobpackage.outside", Field: "spec.source.exp",
			Message: fmt.Sprintf("beside common and configs the package holds files %s, expected files below the experiment %q alone", found, exp)}}
	}
	return nil
}
