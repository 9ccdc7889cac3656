package archive

import (
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// JobFile is what UnpackJob wrote at a path.
type JobFile struct {
	Size       int64
	SHA256     [sha256.Size]byte
	Executable bool
	Link       string // the text of a symbolic link, which leads to a file of the package; "" for a regular file
}

// UnpackedJob is a job package that was written out.
type UnpackedJob struct {
	JobPackage
	Digest   digest.Digest      // sha256 of the archive's bytes
	Contents map[string]JobFile // by path; hard links are files
}

// UnpackJob writes a job package below root while it reads it once, and judges it as CheckJob does: one checker, the same
// report. Files get mode 0444 or, with an x bit, 0555; folders 0755; symbolic links stay links. What wanted does not want is
// judged and not written. Nothing that UnpackJob wrote may be used before the caller has compared the digest and found the
// report to be OK; an error, or a report that is not OK, leaves a part behind.
func UnpackJob(src Source, root *os.Root, policy rule.Policy, wanted func(path string) bool) (UnpackedJob, rule.Report, error) {
	sum := sha256.New()
	u := jobUnpacking{
		jobChecker: jobChecker{report: rule.Report{Policy: policy}, members: make(map[string]seen)},
		root:       root, wanted: wanted, contents: make(map[string]JobFile), folders: map[string]bool{".": true},
	}
	err := u.read(src, sum)
	if f, ok := errors.AsType[*fault](err); ok {
		u.add(f.violations...)
		err = nil
	}
	if err != nil && err != errFull {
		return UnpackedJob{}, u.report, err
	}
	if err == nil && u.report.OK() {
		u.judge()
	}
	if u.report.OK() {
		err = u.writeLinks()
	}
	out := UnpackedJob{JobPackage: u.found, Digest: digest.FromHash(digest.SHA256, sum), Contents: u.contents}
	if err == errFull {
		err = nil
	}
	return out, u.report, err
}

// jobUnpacking is one UnpackJob.
type jobUnpacking struct {
	jobChecker
	root     *os.Root
	wanted   func(path string) bool
	contents map[string]JobFile
	folders  map[string]bool // that were made
}

// read judges and writes the archive's files. sum gets all of its bytes.
func (u *jobUnpacking) read(src Source, sum io.Writer) error {
	s, err := openWithin(src, false, sum, jobCaps)
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
		if !u.member(m) {
			return errFull
		}
		// A package that will be refused is read on for the other faults, and no longer written.
		if m.kind == regular && u.report.OK() && u.wanted(m.path) && !u.clashes(m.path) {
			if err := u.write(m); err != nil {
				return err
			}
		}
	}
}

// clashes reports whether a file and a folder have one path, which the judgement at the end refuses.
func (u *jobUnpacking) clashes(p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if _, file := u.members[dir]; file {
			return true
		}
	}
	return u.folders[p]
}

func (u *jobUnpacking) write(m *member) error {
	if err := u.folder(path.Dir(m.path)); err != nil {
		return err
	}
	mode := fs.FileMode(0o444)
	if m.executable {
		mode = 0o555
	}
	f, err := u.root.OpenFile(m.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), m.body)
	if err := errors.Join(err, f.Chmod(mode), f.Close()); err != nil {
		return err
	}
	u.contents[m.path] = JobFile{Size: n, SHA256: [sha256.Size]byte(sum.Sum(nil)), Executable: m.executable}
	return nil
}

// folder makes dir and what is above it.
func (u *jobUnpacking) folder(dir string) error {
	if u.folders[dir] {
		return nil
	}
	if err := u.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	u.folders[dir] = true
	return nil
}

// writeLinks writes the links that are wanted, once all files are there and every link was judged. A link whose file is
// not wanted is left out with it.
func (u *jobUnpacking) writeLinks() error {
	l := newLinks(u.members)
	for _, at := range slices.Sorted(slices.Values(u.links)) {
		m := u.members[at]
		to, _ := l.target(at)
		if !u.wanted(at) || !u.wanted(to) {
			continue
		}
		if err := u.folder(path.Dir(at)); err != nil {
			return err
		}
		if m.kind == hardlink {
			if err := u.root.Link(to, at); err != nil {
				return err
			}
			u.contents[at] = u.contents[to]
			continue
		}
		if err := u.root.Symlink(m.link, at); err != nil {
			return err
		}
		u.contents[at] = JobFile{Link: m.link}
	}
	return nil
}
