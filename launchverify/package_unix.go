//go:build unix

package launchverify

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// jobPackage is the admitted package that the job directory is made of, opened once: what is read of it later is hashed
// again, so that nobody can change it in between.
type jobPackage struct {
	file     *os.File
	source   archive.Source
	found    archive.JobPackage  // by the first reading
	unpacked archive.UnpackedJob // what was written
	shown    string              // where in the root the outputs are shown; "" where the package has something itself
}

func (s *stage) openPackage() (*jobPackage, error) {
	plan := s.plan.Package
	file, err := s.openArchive(string(plan.Path), plan.Cached)
	if err != nil {
		return nil, err
	}
	p := &jobPackage{file: file}
	if err := s.inspectPackage(p); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

// openArchive opens a regular file, with the job's rights unless it is the cache's.
func (s *stage) openArchive(path string, cached bool) (file *os.File, err error) {
	open := func() (err error) {
		file, err = os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		return err
	}
	if cached {
		err = open()
	} else {
		err = s.plan.User.identity().do(open)
	}
	if err != nil {
		return nil, refusal("launch.package.missing", s.subject(), "%v", err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, errors.Join(err, file.Close())
	case !info.Mode().IsRegular():
		return nil, errors.Join(refusal("launch.package.missing", s.subject(), "%q is no regular file", path), file.Close())
	}
	return file, nil
}

// inspectPackage compares the archive with its digest and judges what it holds, before any room was made for it.
func (s *stage) inspectPackage(p *jobPackage) error {
	plan := s.plan.Package
	info, err := p.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	p.source = archive.Source{Size: size, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(p.file, 0, size)), nil
	}}
	if size > limit.JobPackage {
		return refusal("launch.package.digest", s.subject(), "%q has %d bytes, no job package has more than %d", p.file.Name(), size, limit.JobPackage)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(p.file, 0, size)); err != nil {
		return fmt.Errorf("read the job package: %w", err)
	}
	if found := digest.FromHash(digest.SHA256, sum); found != plan.Digest {
		return refusal("launch.package.digest", s.subject(), "%q is %s, the receipt pins %s", p.file.Name(), found, plan.Digest)
	}
	policy, err := rule.Soften(s.plan.Softened...)
	if err != nil {
		return err
	}
	found, report, err := archive.CheckJob(p.source, policy)
	if err != nil {
		return err
	}
	p.found = found
	return s.packageRefusal(append(report.Violations, archive.CheckExperiment(found.Experiment, string(plan.Experiment))...))
}

// packageRefusal is the error of a package that gate 2 would not have admitted; nil for none.
func (s *stage) packageRefusal(found []rule.Violation) error {
	if len(found) == 0 {
		return nil
	}
	return refusal("launch.package.content", s.subject(), "%s (%d violations)", found[0], len(found))
}

func (p *jobPackage) close() {
	if p != nil {
		p.file.Close()
	}
}

// bytes is how much the package needs in the root at most, in whole pages.
func (p *jobPackage) bytes() int64 {
	if p == nil {
		return 0
	}
	const page = 4096
	return p.found.Bytes + 2*page*int64(p.found.Files)
}

// unpack writes the package into the root: the folders that a job may see, and nothing where pinned files lie.
func (s *stage) unpack(root *os.Root) error {
	p := s.pkg
	policy, err := rule.Soften(s.plan.Softened...)
	if err != nil {
		return err
	}
	var report rule.Report
	p.unpacked, report, err = archive.UnpackJob(p.source, root, policy, func(file string) bool {
		top, _, _ := strings.Cut(file, "/")
		return slices.Contains(s.plan.Binds, top) && !dialect.IsJobFolder(top)
	})
	if err != nil {
		return fmt.Errorf("build the job's root: %w", err)
	}
	if !report.OK() || p.unpacked.Digest != s.plan.Package.Digest {
		return refusal("launch.package.digest", s.subject(), "%q changed while it was read: it was %s, and now is %s", p.file.Name(), s.plan.Package.Digest, p.unpacked.Digest)
	}
	exp := path.Clean(string(s.plan.Package.Experiment))
	p.shown = path.Join(exp, "outputs")
	for file := range p.unpacked.Contents {
		if file == p.shown || strings.HasPrefix(file, p.shown+"/") {
			p.shown = ""
			break
		}
	}
	return nil
}

// verifyPackage is gate 3 on the job's copy of its package.
func (s *stage) verifyPackage(root *os.Root) error {
	if s.pkg == nil {
		return nil
	}
	wrong, err := s.pkg.verifyCopy(root, s.plan.Binds)
	if err == nil && wrong != "" {
		err = refusal("launch.digest.copy", s.subject(), "the job's copy of its package differs at %q", wrong)
	}
	return err
}

// verifyCopy compares what lies in the sealed root with what was in the package: all of it, and nothing else.
func (p *jobPackage) verifyCopy(root *os.Root, tops []string) (wrong string, err error) {
	missing := maps.Clone(p.unpacked.Contents)
	for _, top := range tops {
		err := fs.WalkDir(root.FS(), top, func(at string, d fs.DirEntry, err error) error {
			switch {
			case at == top && errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case at == p.shown:
				return skipShown(d)
			case d.IsDir():
				return nil
			}
			want, known := missing[at]
			delete(missing, at)
			found, err := lookAt(root, at, d)
			if err == nil && (!known || found != want) && wrong == "" {
				wrong = at
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	if wrong == "" && len(missing) > 0 {
		wrong = slices.Min(slices.Collect(maps.Keys(missing)))
	}
	return wrong, nil
}

// skipShown passes by the outputs, which are the job's to change.
func skipShown(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func lookAt(root *os.Root, at string, d fs.DirEntry) (archive.JobFile, error) {
	if d.Type()&fs.ModeSymlink != 0 {
		link, err := root.Readlink(at)
		return archive.JobFile{Link: link}, err
	}
	f, err := root.OpenFile(at, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return archive.JobFile{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return archive.JobFile{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return archive.JobFile{Size: n, SHA256: [sha256.Size]byte(sum.Sum(nil)), Executable: info.Mode()&0o111 != 0}, err
}

// specSource is the spec folder of a job directory that is made of a package: the spec alone.
func specSource(folder string, spec []byte) *source {
	return &source{
		into: folder, files: []sourceFile{{path: specName, size: int64(len(spec))}}, close: func() error { return nil },
		open: func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(spec)), nil },
	}
}
