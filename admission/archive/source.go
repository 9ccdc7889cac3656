package archive

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// Source is an archive's bytes, which can be read as often as needed: a stored blob, a file, memory. Each Open
// starts at the beginning and must give the same Size bytes; a Source that does not is an error, not a verdict.
type Source struct {
	Size int64
	Open func() (io.ReadCloser, error)
}

// FromBytes is the archive b.
func FromBytes(b []byte) Source {
	return Source{int64(len(b)), func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }}
}

// FromFile is the archive in a regular file.
func FromFile(path string) (Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Source{}, err
	}
	return fromFile(path, info, os.OpenFile)
}

// FromRoot is the archive in a regular file below root, which must stay open.
func FromRoot(root *os.Root, name string) (Source, error) {
	info, err := root.Stat(name)
	if err != nil {
		return Source{}, err
	}
	return fromFile(name, info, root.OpenFile)
}

func fromFile(name string, info fs.FileInfo, open func(string, int, fs.FileMode) (*os.File, error)) (Source, error) {
	if !info.Mode().IsRegular() {
		return Source{}, fmt.Errorf("%q is not a regular file", name)
	}
	return Source{info.Size(), func() (io.ReadCloser, error) {
		return open(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	}}, nil
}

// counter counts what comes from a source, remembers the error that ended it and, when asked, hashes it. It
// gives one byte more than the source promised, and no more.
type counter struct {
	r    io.Reader
	n    int64
	size int64
	err  error // never io.EOF
	sum  io.Writer
}

func (c *counter) Read(p []byte) (int, error) {
	p = p[:min(int64(len(p)), c.size+1-c.n)]
	if len(p) == 0 {
		return 0, io.EOF
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	if c.sum != nil {
		c.sum.Write(p[:n])
	}
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// check fails when the source did not give the bytes that it promised.
func (c *counter) check() error {
	switch {
	case c.err != nil:
		return fmt.Errorf("read archive: %w", c.err)
	case c.n > c.size:
		return fmt.Errorf("read archive: %w", &digest.MismatchError{WantSize: c.size, GotSize: c.n})
	}
	return nil
}
