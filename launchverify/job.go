package launchverify

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// specName is the spec's name in its folder, in both dialects.
const specName = "jobspec.json"

// job is a job directory and the spec that was read from it, once.
type job struct {
	dir     string // absolute
	owner   int    // the uid that dir belongs to; -1 when that is not known
	dialect dialect.Dialect
	bytes   []byte
	spec    *jobspec.Spec // nil when the document is no object
	report  rule.Report   // of reading the spec
}

func (j *job) names() dialect.Names { return j.dialect.Names() }

func (j *job) subject() rule.Subject {
	s := rule.Subject{Dialect: j.dialect}
	if j.bytes != nil {
		s.Digest = digest.FromBytes(j.bytes).String()
	}
	if j.spec != nil {
		s.Name = j.spec.Metadata.Name
	}
	return s
}

// openJob finds the job directory and reads its spec as the job's user.
func openJob(path string, who identity, policy rule.Policy) (*job, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	folder := filepath.Dir(abs)
	d, ok := dialect.Detect(filepath.Base(folder), func(n dialect.Names) string { return n.SpecDir })
	if !ok || filepath.Base(abs) != specName {
		return nil, usagef("%.200q is no job spec's place: expected JOB/%s/%s or JOB/%s/%s", path,
			dialect.Forge.Names().SpecDir, specName, dialect.TunePlane.Names().SpecDir, specName)
	}
	j := &job{dir: filepath.Dir(folder), dialect: d}
	err = patiently(func() error {
		return who.do(func() (err error) {
			j.owner = ownerOf(j.dir)
			j.bytes, err = readRegular(abs, limit.Document)
			return err
		})
	})
	switch {
	case err == errSlow:
		return nil, refusal("launch.slow", rule.Subject{Dialect: d}, "%v: %q", err, abs)
	case errors.Is(err, fs.ErrNotExist):
		return nil, refusal("launch.spec.missing", j.subject(), "there is no %q", abs)
	case err != nil:
		return nil, refusal("launch.spec.file", j.subject(), "%v", err)
	}
	j.parse(j.bytes, policy)
	return j, nil
}

// parse takes text as the job's spec.
func (j *job) parse(text []byte, policy rule.Policy) {
	j.bytes = text
	j.spec, j.report = jobspec.Parse(text, jobspec.Options{Dialect: j.dialect, Policy: policy, File: filepath.Join(j.names().SpecDir, specName), Stored: true})
}

// readRegular reads a regular file of at most max bytes, once. A last element that is a symbolic link is refused, and
// no FIFO blocks.
func readRegular(path string, max int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%q is a symbolic link", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLimited(f, max)
}

// readLimited reads a regular file of at most max bytes.
func readLimited(f *os.File, max int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no regular file", f.Name())
	}
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		err = fmt.Errorf("%q has more than %d bytes", f.Name(), max)
	}
	return b, err
}
