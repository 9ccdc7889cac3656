package archive

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// Small files are kept in memory up to these sums, of those at the pack's root, where its documents are, and of
// those below.
const (
	captureRoot  = 4 << 20
	captureBelow = 2 << 20
)

// Check reads an archive once and applies every rule. The report is the verdict: the Archive is nil when it
// refuses, and for nothing else but an error. An error says that the source could not be read, or gave other bytes
// than it promised; then there is no verdict.
//
// Reading goes on after a fault that leaves the rest readable, so that the report names every one, up to a limit.
// An archive whose members are not in path order, or that holds links, is read a second time.
func Check(src Source, opt Options) (*Archive, rule.Report, error) {
	c := &checker{
		src: src, opt: opt, report: rule.Report{Policy: opt.Policy}, hasher: tree.NewHasher(),
		members: make(map[string]seen), captured: make(map[string][]byte),
	}
	defer c.hasher.Close()
	if err := c.read(); err != nil {
		err = c.refused(err) // which adds to the report
		return nil, c.report, err
	}
	if c.judge(); !c.report.OK() {
		return nil, c.report, nil
	}
	a, err := c.finish()
	return a, c.report, err
}

// checker is one Check.
type checker struct {
	src      Source
	opt      Options
	report   rule.Report
	full     bool // the report names as many faults as it may
	hasher   *tree.Hasher
	members  map[string]seen
	clean    []string // the paths that no rule for one path refuses
	links    []string // the paths of links, in the order of the archive
	targets  map[string]string
	captured map[string][]byte
	root     int // bytes captured
	below    int
	total    int64 // bytes of regular members, then of links too
	sum      digest.Digest
}

// errFull ends the reading of an archive whose report is full.
var errFull = errors.New("report full")

// refused files a fault and passes on what is no verdict.
func (c *checker) refused(err error) error {
	if err == errFull {
		return nil
	}
	f, ok := errors.AsType[*fault](err)
	if !ok {
		return err
	}
	for _, v := range f.violations {
		c.report.Add(v)
	}
	return nil
}

// add files violations. It reports whether there is room for more; the last one then says that there may be more.
func (c *checker) add(violations ...rule.Violation) (goOn bool) {
	for _, v := range violations {
		c.report.Add(v)
	}
	if len(c.report.Violations) < limit.Faults {
		return true
	}
	if !c.full {
		c.full = true
		c.report.Add(rule.Violation{Rule: "archive.limit.faults", Message: fmt.Sprintf("there are %d faults; no more were looked for", len(c.report.Violations))})
	}
	return false
}

func (c *checker) read() error {
	var sum hash.Hash
	var w io.Writer
	if c.opt.Sum {
		sum = sha256.New()
		w = sum
	}
	s, err := openStream(c.src, c.opt.Plain, w)
	if err != nil {
		return err
	}
	defer s.Close()
	sc := newScanner(s)
	for {
		m, err := sc.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := c.member(m); err != nil {
			return err
		}
	}
	if sum != nil {
		c.sum = digest.FromHash(digest.SHA256, sum)
	}
	return nil
}

// member judges one member by itself and hashes it. Once the archive is refused nothing is hashed any more.
func (c *checker) member(m *member) error {
	faults := append(m.notes, checkPath(m.path)...)
	faults = append(faults, checkExcluded(m.path)...)
	before := len(c.report.Violations)
	if !c.add(faults...) {
		return errFull
	}
	_, twice := c.members[m.path]
	if len(c.report.Violations) == before {
		c.clean = append(c.clean, m.path)
	}
	if !twice {
		c.members[m.path] = seen{kind: m.kind, link: m.link, size: m.size, index: m.index}
	}
	switch {
	case twice:
		return nil
	case m.kind == symlink || m.kind == hardlink:
		c.links = append(c.links, m.path)
	case m.kind == regular && c.report.OK():
		c.total += m.size
		return c.hash(m)
	}
	return nil
}

// hash hashes a regular member and keeps its bytes when it is small.
func (c *checker) hash(m *member) error {
	budget, room := &c.root, captureRoot
	if strings.Contains(m.path, "/") {
		budget, room = &c.below, captureBelow
	}
	if m.size > limit.Document || *budget+int(m.size) > room {
		return c.hasher.Add(m.path, m.executable, m.body)
	}
	*budget += int(m.size)
	var content bytes.Buffer
	content.Grow(int(m.size))
	if err := c.hasher.Add(m.path, m.executable, io.TeeReader(m.body, &content)); err != nil {
		return err
	}
	c.captured[m.path] = content.Bytes()
	return nil
}

// judge applies the rules that need all members: those of links and of collisions.
func (c *checker) judge() {
	if !collide(c.clean, c.add) {
		return
	}
	l := newLinks(c.members)
	c.targets = make(map[string]string, len(c.links))
	for _, path := range c.links {
		target, found := l.target(path)
		if !c.add(found...) {
			return
		}
		c.targets[path] = target
		if c.total += c.members[target].size; c.total > limit.Unpacked {
			c.add(violation("archive.limit.unpacked", path, "with the bytes of its links the pack has at least %d, at most %d are allowed", c.total, limit.Unpacked))
			return
		}
	}
}

// finish makes the archive of what was read.
func (c *checker) finish() (*Archive, error) {
	a := &Archive{src: c.src, opt: c.opt, sum: c.sum, captured: c.captured, targets: c.targets}
	for path, target := range c.targets {
		text := ""
		if m := c.members[path]; m.kind == symlink {
			text = m.link
		}
		c.hasher.Link(path, target, text)
	}
	a.inOrder = c.hasher.InOrder()
	listing, err := c.hasher.Finish(a.open)
	if err != nil {
		a.Close()
		return nil, err
	}
	a.listing = listing
	return a, nil
}
