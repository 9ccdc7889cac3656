package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// kind is what a member is, to us.
type kind uint8

const (
	other kind = iota // refused; notes say why
	regular
	symlink
	hardlink
)

// member is one member of an archive. Its body must be read before the next member; what is left is skipped.
type member struct {
	index      int // from 1
	kind       kind
	path       string
	link       string
	size       int64
	executable bool
	notes      []rule.Violation // what is wrong with it and does not end the reading
	body       io.Reader
}

func (m *member) note(id rule.ID, format string, args ...any) {
	m.notes = append(m.notes, violation(id, m.path, format, args...))
}

// scanner reads the members of a tar stream, block by block. What it can't read past is a *fault.
type scanner struct {
	s        *stream
	index    int   // of the member last read
	unpacked int64 // bytes of members so far
	left     int64 // of the current body
	pad      int64 // after it
	block    block
	scratch  []byte
}

func newScanner(s *stream) *scanner { return &scanner{s: s, scratch: make([]byte, 32<<10)} }

// next reads up to the next member; io.EOF when the archive ended as it should, to the last byte.
func (sc *scanner) next() (*member, error) {
	var x extended
	for {
		h, err := sc.header(&x)
		if err != nil {
			return nil, err
		}
		at := describe(sc.index + 1)
		switch h.typeflag {
		case 'x', 'L', 'K':
			data, err := sc.data(h, at)
			if err != nil {
				return nil, err
			}
			if f := x.add(h, data, at); f != nil {
				return nil, f
			}
			continue
		case 'g', 'X':
			return nil, faultf("archive.header.extended", "%s has a header of type %q, which changes how readers see what follows", at, h.typeflag)
		}
		return sc.member(h, &x)
	}
}

// header reads the next header block, or the end of the archive.
func (sc *scanner) header(x *extended) (header, error) {
	if err := sc.skip(); err != nil {
		return header{}, err
	}
	n, err := io.ReadFull(sc.s, sc.block[:])
	at := describe(sc.index + 1)
	switch {
	case err == io.EOF && sc.s.n == 0:
		return header{}, faultf("archive.empty", "the archive is empty")
	case err == io.EOF:
		return header{}, faultf("archive.end.missing", "the archive stops after %d members without an end block", sc.index)
	case err == io.ErrUnexpectedEOF:
		return header{}, faultf("archive.end.truncated", "the archive is truncated: %s has %d bytes of a header", at, n)
	case err != nil:
		return header{}, err
	}
	if sc.block != zeroBlock {
		return parseHeader(&sc.block, at)
	}
	if !x.empty() {
		return header{}, faultf("archive.header.extended", "an extended header belongs to no member")
	}
	return header{}, sc.end()
}

// end reads what follows the first zero block. It returns io.EOF when that is a second one and nothing but zeros.
func (sc *scanner) end() error {
	if sc.index == 0 {
		return faultf("archive.empty", "the archive has no members")
	}
	begin := sc.s.n
	for {
		n, err := sc.s.Read(sc.scratch)
		switch after := sc.s.n - begin; {
		case !allZero(sc.scratch[:n]):
			return faultf("archive.end.data", "data follows the end of the archive, within %d bytes of its first end block", after)
		case after > limit.EndPadding+blockSize:
			return faultf("archive.limit.padding", "more than %d bytes of zeros follow the end of the archive", limit.EndPadding)
		case err == io.EOF && after < blockSize:
			return faultf("archive.end.missing", "the archive ends with one zero block, expected two")
		case err == io.EOF && after%blockSize != 0:
			return faultf("archive.end.truncated", "the archive is truncated: it ends within a block of zeros")
		case err == io.EOF:
			if err := sc.s.finish(); err != nil {
				return err
			}
			return io.EOF
		case err != nil:
			return err
		}
	}
}

// data reads the data of an extended header.
func (sc *scanner) data(h header, at string) ([]byte, error) {
	if h.size > limit.ExtendedHeader {
		return nil, faultf("archive.limit.header", "%s has an extended header of %d bytes, at most %d are allowed", at, h.size, limit.ExtendedHeader)
	}
	sc.begin(h.size)
	data := make([]byte, h.size)
	if _, err := io.ReadFull((*body)(sc), data); err != nil {
		return nil, err
	}
	return data, nil
}

func (sc *scanner) begin(size int64) { sc.left, sc.pad = size, -size&(blockSize-1) }

// member makes a member of its header and what stood before it.
func (sc *scanner) member(h header, x *extended) (*member, error) {
	sc.index++
	if sc.index > sc.s.caps.files {
		return nil, faultf("archive.limit.files", "the archive has more than %d members", sc.s.caps.files)
	}
	m := &member{index: sc.index, size: h.size, executable: h.executable, body: (*body)(sc)}
	if f := x.apply(h, m, describe(sc.index)); f != nil {
		return nil, at(f, m.path)
	}
	if f := sc.judgeType(h, m); f != nil {
		return nil, at(f, m.path)
	}
	sc.unpacked += h.size
	if sc.unpacked > sc.s.caps.unpacked {
		return nil, at(faultf("archive.limit.unpacked", "with its %d bytes the archive has %d, at most %d are allowed", h.size, sc.unpacked, sc.s.caps.unpacked), m.path)
	}
	if f := sc.s.over(h.size); f != nil {
		return nil, at(f, m.path)
	}
	sc.begin(h.size)
	return m, nil
}

// judgeType sets the kind. What readers disagree on how far it reaches ends the reading; the rest is noted.
func (sc *scanner) judgeType(h header, m *member) *fault {
	switch h.typeflag {
	case '0':
		m.kind = regular
		return nil
	case '1', '2':
		m.kind = hardlink
		if h.typeflag == '2' {
			m.kind = symlink
		}
		if h.size != 0 {
			return faultf("archive.header.size", "it is a link with %d bytes of data, which readers disagree on", h.size)
		}
		return nil
	case '5':
		m.note("archive.type.folder", "it is a folder; an archive names files only")
	case 'S':
		m.sparse(h.realSize)
	default:
		m.note("archive.type.member", "it is %s, expected a regular file", typeName(h.typeflag))
	}
	if h.size != 0 || h.typeflag == 'S' {
		return &fault{m.notes}
	}
	return nil
}

// at puts a fault at a path.
func at(f *fault, path string) *fault {
	for i := range f.violations {
		f.violations[i].File = Show(path)
	}
	return f
}

// skip passes over what is left of the current member.
func (sc *scanner) skip() error {
	for sc.left > 0 {
		if _, err := (*body)(sc).Read(sc.scratch); err != nil && err != io.EOF {
			return err
		}
	}
	if sc.pad == 0 {
		return nil
	}
	padding := sc.scratch[:sc.pad]
	sc.pad = 0
	if _, err := io.ReadFull(sc.s, padding); err != nil {
		return sc.truncated(err)
	}
	if !allZero(padding) {
		return faultf("archive.header.padding", "bytes are hidden after the end of %s, in the rest of its last block: %.40q", describe(sc.index), bytes.Trim(padding, "\x00"))
	}
	return nil
}

// truncated makes a fault of an archive's early end.
func (sc *scanner) truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return faultf("archive.end.truncated", "the archive is truncated: it ends within %s", describe(sc.index))
	}
	return err
}

// body reads the current member's data.
type body scanner

func (b *body) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.s.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err == io.EOF && b.left == 0 {
		err = nil
	}
	if err != nil {
		return n, (*scanner)(b).truncated(err)
	}
	return n, nil
}

var errChanged = errors.New("the archive changed between two readings")

// scan calls visit for every member of a source that has been checked before.
func scan(src Source, plain bool, visit func(m *member) error) error {
	s, err := openStream(src, plain, nil)
	if err != nil {
		return changed(err)
	}
	defer s.Close()
	sc := newScanner(s)
	for {
		m, err := sc.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return changed(err)
		}
		if err := visit(m); err != nil {
			return changed(err)
		}
	}
}

// changed is what a fault means in an archive that had none.
func changed(err error) error {
	if f, ok := errors.AsType[*fault](err); ok {
		return fmt.Errorf("%w: %w", errChanged, f)
	}
	return err
}
