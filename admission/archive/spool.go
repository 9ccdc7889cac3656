package archive

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

// spool holds files in one temporary file that has no name, so that nothing is left behind however the process
// ends.
type spool struct {
	f     *os.File
	w     *bufio.Writer
	end   int64
	files map[string]section
}

type section struct{ begin, size int64 }

func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, "gatehouse-spool-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return &spool{f: f, w: bufio.NewWriterSize(f, 64<<10), files: make(map[string]section)}, nil
}

// add appends a file.
func (s *spool) add(path string, r io.Reader) error {
	n, err := io.Copy(s.w, r)
	if err != nil {
		return err
	}
	s.files[path] = section{s.end, n}
	s.end += n
	return nil
}

// open opens a file that was added; nothing may be added afterwards.
func (s *spool) open(path string) (io.ReadCloser, error) {
	if err := s.w.Flush(); err != nil {
		return nil, err
	}
	at, ok := s.files[path]
	if !ok {
		return nil, fmt.Errorf("%q: %w", path, errChanged)
	}
	return io.NopCloser(io.NewSectionReader(s.f, at.begin, at.size)), nil
}

func (s *spool) Close() error { return s.f.Close() }
