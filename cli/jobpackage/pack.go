package jobpackage

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
)

// maxScript is how many bytes a file whose line ends are changed may have: it is read whole.
const maxScript = 16 << 20

// Pack writes the archive of a list: gzip tar with a member for each file, sorted, without times, owners and modes but for an
// x bit. A file that changed since it was listed is an error. progress is told the bytes of members as they are packed; it
// may be nil.
func (l List) Pack(w io.Writer, progress func(n int64)) error {
	root, err := os.OpenRoot(l.root)
	if err != nil {
		return err
	}
	defer root.Close()
	zw, err := archive.NewCompressor(w) // a checkpoint of zeros is no bomb
	if err != nil {
		return err
	}
	tw := tar.NewWriter(zw)
	for _, m := range l.Members {
		if err := l.add(tw, root, m); err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
		if progress != nil {
			progress(m.Size)
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return zw.Close()
}

func (l List) add(tw *tar.Writer, root *os.Root, m Member) error {
	h := tar.Header{Typeflag: tar.TypeReg, Name: m.Path, Mode: 0o644, Format: tar.FormatPAX}
	if m.Link != "" {
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, m.Link, 0o777
		return tw.WriteHeader(&h)
	}
	if m.Executable {
		h.Mode = 0o755
	}
	// A pipe that took the file's place must not block.
	f, err := root.OpenFile(filepath.FromSlash(m.Path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != m.Size {
		return fmt.Errorf("the file changed while the package was made")
	}
	var body io.Reader = f
	if h.Size = m.Size; unixEnds(l.dialect, m.Path) {
		if m.Size > maxScript {
			return fmt.Errorf("has %d bytes, expected at most %d of a file whose line ends are made Unix's", m.Size, maxScript)
		}
		text, err := io.ReadAll(io.LimitReader(f, m.Size))
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		body, h.Size = bytes.NewReader(text), int64(len(text))
	}
	if err := tw.WriteHeader(&h); err != nil {
		return err
	}
	if n, err := io.Copy(tw, io.LimitReader(body, h.Size)); err != nil || n != h.Size {
		return fmt.Errorf("the file changed while the package was made (%d of %d bytes were read): %w", n, h.Size, orShort(err))
	}
	return nil
}

func orShort(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}
