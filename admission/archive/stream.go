package archive

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// fault is what ends the reading of an archive: one violation or more.
type fault struct{ violations []rule.Violation }

func (f *fault) Error() string { return f.violations[0].String() }

func faultf(id rule.ID, format string, args ...any) *fault {
	return &fault{[]rule.Violation{{Rule: id, Message: fmt.Sprintf(format, args...)}}}
}

// stream is the tar stream in a source: what one gzip member holds, or the source itself. Its Read returns a
// *fault for what is wrong with the compression or above a limit, and any other error but io.EOF for a source
// that can't be read.
type stream struct {
	src   io.Closer
	count *counter
	in    *bufio.Reader
	tar   io.Reader
	gzip  bool
	caps  caps
	n     int64 // bytes of the tar stream so far
}

// caps are the limits of an archive that packs and job packages have in common, but not their size.
type caps struct {
	compressed int64 // bytes of the archive
	unpacked   int64 // of its members together
	stream     int64 // of the archive uncompressed: members, headers and padding
	files      int   // members
}

// packCaps are the limits of a pack's archive.
var packCaps = caps{limit.Compressed, limit.Unpacked, limit.Stream, limit.Files}

// openStream opens a source. plain admits a tar file that is not compressed.
func openStream(src Source, plain bool, sum io.Writer) (*stream, error) {
	return openWithin(src, plain, sum, packCaps)
}

// openWithin is openStream under other limits.
func openWithin(src Source, plain bool, sum io.Writer, within caps) (*stream, error) {
	r, err := src.Open()
	if err != nil {
		return nil, err
	}
	s := &stream{src: r, count: &counter{r: r, size: src.Size, sum: sum}, caps: within}
	s.in = bufio.NewReaderSize(s.count, 64<<10)
	if err := s.start(plain); err != nil {
		r.Close()
		return nil, err
	}
	return s, nil
}

var gzipMagic = []byte{0x1f, 0x8b, 8}

func (s *stream) start(plain bool) error {
	head, err := s.in.Peek(4)
	if len(head) == 0 {
		if s.count.err != nil {
			return s.count.check()
		}
		return faultf("archive.empty", "the archive has no bytes")
	}
	switch {
	case plain && !bytes.HasPrefix(head, gzipMagic[:2]):
		s.tar = s.in
		return s.limit("archive.limit.unpacked", s.caps.stream)
	case !bytes.HasPrefix(head, gzipMagic[:min(len(head), 3)]):
		return faultf("archive.gzip.header", "the archive begins with %x, not with the gzip header 1f8b08%s", head, whatIs(head))
	case err != nil:
		return s.broken(io.ErrUnexpectedEOF)
	case head[3]&0xe0 != 0:
		return faultf("archive.gzip.header", "the gzip header sets reserved flags (%#02x)", head[3])
	}
	if err := s.limit("archive.limit.compressed", s.caps.compressed); err != nil {
		return err
	}
	zr, err := gzip.NewReader(s.in)
	if err != nil {
		return s.broken(err)
	}
	zr.Multistream(false)
	s.tar, s.gzip = zr, true
	return nil
}

func whatIs(head []byte) string {
	for magic, name := range map[string]string{
		"PK": "a zip file", "\x28\xb5\x2f\xfd": "zstd", "BZh": "bzip2", "\xfd7zX": "xz",
	} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return ": it is " + name
		}
	}
	return ""
}

// limit applies a limit on the source's size.
func (s *stream) limit(id rule.ID, most int64) error {
	if s.count.size <= most {
		return nil
	}
	return faultf(id, "the archive has %d bytes, at most %d are allowed", s.count.size, most)
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.tar.Read(p)
	s.n += int64(n)
	if f := s.over(0); f != nil {
		return 0, f
	}
	if err != nil && err != io.EOF {
		return n, s.broken(err)
	}
	return n, err
}

// over is a fault when the stream, with the ahead bytes that a header announces, passes a limit. The ratio is to
// the whole archive, so that the verdict does not hang on the order of the members.
func (s *stream) over(ahead int64) *fault {
	n := s.n + ahead
	if n > s.caps.stream {
		return faultf("archive.limit.unpacked", "the archive unpacks to at least %d bytes with its headers, at most %d are allowed", n, s.caps.stream)
	}
	if s.gzip {
		return overRatio(n, s.count.size)
	}
	return nil
}

// overRatio is a fault when the compressed bytes of an archive unpack to too many.
func overRatio(unpacked, compressed int64) *fault {
	if unpacked <= limit.BombFrom || unpacked <= limit.BombRatio*compressed {
		return nil
	}
	return faultf("archive.limit.ratio", "%d bytes unpack to at least %d; beyond %d at most %d times as many are allowed",
		compressed, unpacked, limit.BombFrom, limit.BombRatio)
}

// broken tells an error of the source from damage in what it holds.
func (s *stream) broken(err error) error {
	if fault, ok := errors.AsType[*fault](err); ok {
		return fault
	}
	if err := s.count.check(); err != nil {
		return err
	}
	switch {
	case !s.gzip && s.tar != nil:
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return faultf("archive.gzip.truncated", "the archive is truncated: it ends after %d bytes, within the gzip stream", s.count.n)
	case errors.Is(err, gzip.ErrHeader):
		return faultf("archive.gzip.header", "the gzip header is malformed")
	case errors.Is(err, gzip.ErrChecksum):
		return faultf("archive.gzip.corrupt", "the gzip checksum or length differs from what the stream unpacks to")
	}
	return faultf("archive.gzip.corrupt", "the gzip stream is damaged: %v", err)
}

// finish makes sure that nothing follows the stream, whose end has been read.
func (s *stream) finish() error {
	rest, err := s.in.Peek(2)
	if err := s.count.check(); err != nil {
		return err
	}
	switch {
	case len(rest) == 0 && errors.Is(err, io.EOF):
		if s.count.n < s.count.size {
			return fmt.Errorf("read archive: it has %d bytes, expected %d: %w", s.count.n, s.count.size, io.ErrUnexpectedEOF)
		}
		return nil
	case bytes.Equal(rest, gzipMagic[:2]):
		return faultf("archive.gzip.trailing", "a second gzip stream follows the first")
	}
	return faultf("archive.gzip.trailing", "the gzip stream ends before the archive does: bytes follow it")
}

func (s *stream) Close() error { return s.src.Close() }
