package pack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// Sizes of the fixed parts of a zip, and how large its directory may be.
const (
	zipEndSize       = 22
	zipHeaderSize    = 46
	maxZipDirectory  = 4 * limit.MiB
	zipEndSignature  = 0x06054b50
	zipFileSignature = 0x02014b50
)

// Errors of checkZipForm.
var (
	errNoZip        = errors.New("it is no zip file")
	errZipAmbiguous = errors.New("two readers could see two zips in it")
	errZipLimit     = errors.New("its directory is too large")
)

// checkZipForm reads a zip's end and walks its directory without keeping it. It wants what wheel builders write: the end record as
// the last bytes without a comment, the directory right before it, as many members as the end record says.
// So no two readers can differ about the members, and archive/zip, which believes the directory, stays within bounds.
func checkZipForm(src io.ReaderAt, size int64) error {
	if size < zipEndSize {
		return errNoZip
	}
	var end [zipEndSize]byte
	if _, err := src.ReadAt(end[:], size-zipEndSize); err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(end[:]) != zipEndSignature {
		if !hasZipEnd(src, size) {
			return errNoZip
		}
		return fmt.Errorf("%w: bytes follow its end record", errZipAmbiguous)
	}
	count := int(binary.LittleEndian.Uint16(end[10:]))
	length := int64(binary.LittleEndian.Uint32(end[12:]))
	offset := int64(binary.LittleEndian.Uint32(end[16:]))
	switch {
	case count > limit.WheelMembers || length > maxZipDirectory:
		return fmt.Errorf("%w: %d members and %d bytes; at most %d and %d are allowed", errZipLimit, count, length, limit.WheelMembers, maxZipDirectory)
	case offset+length != size-zipEndSize || binary.LittleEndian.Uint16(end[20:]) != 0:
		return fmt.Errorf("%w: its directory does not end where its end record begins", errZipAmbiguous)
	}
	return walkZipDirectory(io.NewSectionReader(src, offset, length), count)
}

// hasZipEnd reports whether an end record lies where one with a comment could.
func hasZipEnd(src io.ReaderAt, size int64) bool {
	tail := make([]byte, min(size, zipEndSize+1<<16))
	if _, err := src.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	for i := len(tail) - 4; i >= 0; i-- {
		if binary.LittleEndian.Uint32(tail[i:]) == zipEndSignature {
			return true
		}
	}
	return false
}

// walkZipDirectory counts the headers that fill the directory exactly.
func walkZipDirectory(directory *io.SectionReader, count int) error {
	var header [zipHeaderSize]byte
	at := int64(0)
	for n := 0; at < directory.Size(); n++ {
		if _, err := directory.ReadAt(header[:], at); err != nil || binary.LittleEndian.Uint32(header[:]) != zipFileSignature {
			return fmt.Errorf("%w: its directory has no header at byte %d", errZipAmbiguous, at)
		}
		if n == count {
			return fmt.Errorf("%w: its directory has more members than its end record says", errZipAmbiguous)
		}
		at += zipHeaderSize
		for _, field := range []int{28, 30, 32} { // lengths of name, extra field and comment
			at += int64(binary.LittleEndian.Uint16(header[field:]))
		}
		if at == directory.Size() && n+1 != count {
			return fmt.Errorf("%w: its directory has %d members, its end record says %d", errZipAmbiguous, n+1, count)
		}
	}
	if at > directory.Size() {
		return fmt.Errorf("%w: its last header is cut short", errZipAmbiguous)
	}
	return nil
}

// openReaderAt opens a counted file for reading at any offset. A tree whose files can't do that has it copied to
// a temporary file, which done removes; at most limit.Unpacked bytes are copied.
func openReaderAt(t tree.Tree, e tree.Entry) (src io.ReaderAt, done func(), err error) {
	f, err := t.Open(e.Path)
	if err != nil {
		return nil, nil, err
	}
	if at, ok := f.(io.ReaderAt); ok {
		return at, func() { f.Close() }, nil
	}
	defer f.Close()
	spool, err := os.CreateTemp("", "gatehouse-wheel-*")
	if err != nil {
		return nil, nil, err
	}
	done = func() { spool.Close() }
	if err := os.Remove(spool.Name()); err != nil { // the open file lives on until done
		done = func() { spool.Close(); os.Remove(spool.Name()) }
	}
	if _, err := io.Copy(spool, io.LimitReader(f, limit.Unpacked)); err != nil {
		done()
		return nil, nil, err
	}
	return spool, done, nil
}
