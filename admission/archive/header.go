package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

const blockSize = 512

type block [blockSize]byte

// The fields of a tar header.
func (b *block) name() []byte     { return b[0:100] }
func (b *block) mode() []byte     { return b[100:108] }
func (b *block) size() []byte     { return b[124:136] }
func (b *block) checksum() []byte { return b[148:156] }
func (b *block) typeflag() byte   { return b[156] }
func (b *block) link() []byte     { return b[157:257] }
func (b *block) magic() []byte    { return b[257:265] }
func (b *block) prefix() []byte   { return b[345:500] } // of the POSIX format; dates and sparse maps of GNU's

var (
	posixMagic = []byte("ustar\x0000")
	gnuMagic   = []byte("ustar  \x00")
	zeroBlock  block
)

// header is a tar header as it stands, before what extended headers change.
type header struct {
	gnu        bool // else POSIX
	name       string
	link       string
	size       int64
	realSize   int64 // of a GNU sparse file
	typeflag   byte
	executable bool
}

// parseHeader reads a header block strictly: whatever two readers could take for two things is a fault. at says
// which member it is, for messages.
func parseHeader(b *block, at string) (header, error) {
	if f := verifyChecksum(b, at); f != nil {
		return header{}, f
	}
	h := header{typeflag: b.typeflag()}
	switch {
	case bytes.Equal(b.magic(), gnuMagic):
		h.gnu = true
	case !bytes.Equal(b.magic(), posixMagic):
		return h, faultf("archive.header.magic", "%s has the magic %q, expected %q (POSIX) or %q (GNU)", at, b.magic(), posixMagic, gnuMagic)
	}
	if f := h.texts(b, at); f != nil {
		return h, f
	}
	if f := h.numbers(b, at); f != nil {
		return h, f
	}
	return h, nil
}

// texts reads name and link. Their prefix is where readers part: Python joins it under the GNU magic too, where
// others keep dates, and star cuts it short and marks that at the end of the block.
func (h *header) texts(b *block, at string) *fault {
	var nameOK, linkOK bool
	h.name, nameOK = text(b.name())
	h.link, linkOK = text(b.link())
	prefix, prefixOK := text(b.prefix())
	switch {
	case !nameOK || !linkOK || !prefixOK && !h.gnu:
		return faultf("archive.header.field", "%s has bytes after the end of its name, link or prefix", at)
	case h.gnu && h.typeflag == 'S': // no name of that header comes to anything
		return nil
	case h.gnu && !allZero(b.prefix()):
		return faultf("archive.header.field", "%s has a prefix, dates or a sparse map in a GNU header, which readers take for different things", at)
	case !h.gnu && !allZero(b[500:512]):
		return faultf("archive.header.field", "%s has bytes after the last field of its header", at)
	}
	if prefix != "" {
		h.name = prefix + "/" + h.name
	}
	return nil
}

// numbers reads the size and the mode and makes sure that every other number is one.
func (h *header) numbers(b *block, at string) *fault {
	mode, ok := octal(b.mode())
	if !ok {
		return faultf("archive.header.number", "%s has the mode %q, expected octal digits", at, b.mode())
	}
	h.executable = mode&0o111 != 0
	for _, field := range []struct {
		name  string
		bytes []byte
	}{{"uid", b[108:116]}, {"gid", b[116:124]}, {"mtime", b[136:148]}, {"major device number", b[329:337]}, {"minor device number", b[337:345]}} {
		if _, ok := octal(field.bytes); !ok && field.bytes[0]&0x80 == 0 { // GNU writes large ids and odd times in base 256
			return faultf("archive.header.number", "%s has the %s %q, expected octal digits", at, field.name, field.bytes)
		}
	}
	if h.gnu && h.typeflag == 'S' {
		size := b[483:495]
		if h.realSize, ok = base256(size); !ok {
			h.realSize, _ = octal(size)
		}
	}
	return h.readSize(b, at)
}

func (h *header) readSize(b *block, at string) *fault {
	field := b.size()
	if field[0]&0x80 == 0 {
		size, ok := octal(field)
		if !ok || !hasDigit(field) {
			return faultf("archive.header.number", "%s has the size %q, expected octal digits", at, field)
		}
		h.size = size
		return nil
	}
	// Only what has no place in eleven octal digits may be in base 256, and that is above every limit.
	size, ok := base256(field)
	switch {
	case !ok:
		return faultf("archive.header.number", "%s has a negative size", at)
	case size < 1<<33:
		return faultf("archive.header.number", "%s has the size %d in base 256, which octal digits can hold", at, size)
	}
	h.size = size
	return nil
}

// base256 reads twelve bytes as GNU writes large numbers; what is beyond 2^62 reads as 2^62. A negative number
// and one in octal are not ok.
func base256(field []byte) (n int64, ok bool) {
	if field[0]&0xc0 != 0x80 {
		return 0, false
	}
	high, low := binary.BigEndian.Uint32(field[:4])&0x3fffffff, binary.BigEndian.Uint64(field[4:])
	if high != 0 || low > 1<<62 {
		return 1 << 62, true
	}
	return int64(low), true
}

// verifyChecksum compares the checksum with the sum of the header's bytes, the checksum's own taken as blanks.
func verifyChecksum(b *block, at string) *fault {
	want, ok := octal(b.checksum())
	if !ok || !hasDigit(b.checksum()) {
		return faultf("archive.header.checksum", "%s has the checksum %q, expected octal digits: it is no tar header", at, b.checksum())
	}
	sum := int64(8 * ' ')
	for i, c := range b {
		if i < 148 || i >= 156 {
			sum += int64(c)
		}
	}
	if sum != want {
		return faultf("archive.header.checksum", "%s has the checksum %d, its bytes add up to %d", at, want, sum)
	}
	return nil
}

// text is a field's text, up to the first NUL; ok when only NULs follow.
func text(field []byte) (s string, ok bool) {
	before, after, _ := bytes.Cut(field, []byte{0})
	return string(before), allZero(after)
}

// octal reads blanks, octal digits, and then blanks or NULs to the end. A field without digits is 0.
func octal(field []byte) (n int64, ok bool) {
	field = bytes.TrimLeft(field, " ")
	digits := bytes.TrimRight(field, " \x00")
	for _, c := range digits {
		if c < '0' || c > '7' {
			return 0, false
		}
		n = n<<3 | int64(c-'0')
	}
	return n, true
}

func hasDigit(field []byte) bool { return bytes.ContainsAny(field, "01234567") }

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// describe is a member as messages name it.
func describe(index int) string { return fmt.Sprintf("member %d", index) }

// typeName says what a typeflag stands for.
func typeName(flag byte) string {
	switch flag {
	case 0:
		return "an old-style file (type NUL)"
	case '3':
		return "a character device"
	case '4':
		return "a block device"
	case '6':
		return "a FIFO"
	case '7':
		return "a contiguous file (type 7)"
	}
	return fmt.Sprintf("of type %q", flag)
}

// violation is a violation at a member's path, whose text comes from outside.
func violation(id rule.ID, path, format string, args ...any) rule.Violation {
	return rule.Violation{Rule: id, File: Show(path), Message: fmt.Sprintf(format, args...)}
}
