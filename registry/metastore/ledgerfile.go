package metastore

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// maxLedgerLine bounds a line of a ledger file in bytes.
const maxLedgerLine = 64 << 10

// LedgerFile is a registry.LedgerFile: one JSON object a line, UTF-8, in the order of publishing, nothing else. The file
// only grows. A last line that can't be read is what a crash left of an append that was never acknowledged: it is cut off
// when the file is opened, and the store has its row still. Any other line that can't be read is an error that names it.
//
// A file that ends well is opened by its last line, however long it is: only the first Append reads it all, and finds what is
// damaged further up. A LedgerFile is safe for concurrent use, by one process.
type LedgerFile struct {
	mu    sync.Mutex
	file  *os.File
	size  int64              // of the whole lines
	end   registry.LedgerRow // the last line; Seq is 0 when there is none
	last  int64              // the greatest number that the file is known to have, or was asked to take and had
	taken map[uint64]uint64  // nil until the file was read whole: the versions' hashes, and their manifests'
	seed  maphash.Seed
}

var _ registry.LedgerFile = (*LedgerFile)(nil)

// OpenLedger opens the ledger file at path and makes it (mode 0600) when it is missing.
func OpenLedger(path string) (*LedgerFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	l := &LedgerFile{file: file, seed: maphash.MakeSeed()}
	if err := l.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("ledger file %q: %w", path, err), file.Close())
	}
	return l, nil
}

// open finds the end of the file, cuts off what a crash left of a last line, and makes the file's own entry durable.
func (l *LedgerFile) open() error {
	well, err := l.endsWell()
	if err == nil && well && l.size > 0 {
		return nil // rows were appended, so an earlier open made the entry durable, and Append the rows
	}
	if err == nil && !well {
		err = l.load()
	}
	if err != nil {
		return err
	}
	if err := l.file.Truncate(l.size); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(l.file.Name()))
	if err != nil {
		return err
	}
	return errors.Join(l.file.Sync(), folder.Sync(), folder.Close())
}

// endsWell reads the last line, and reports whether that is a whole row.
func (l *LedgerFile) endsWell() (bool, error) {
	info, err := l.file.Stat()
	if err != nil || info.Size() == 0 {
		return err == nil, err
	}
	tail := make([]byte, min(info.Size(), maxLedgerLine+1))
	if _, err := l.file.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return false, err
	}
	text, ended := bytes.CutSuffix(tail, []byte("\n"))
	start := bytes.LastIndexByte(text, '\n') + 1
	if !ended || start == 0 && int64(len(tail)) < info.Size() {
		return false, nil
	}
	row, err := parseLedgerRow(text[start:])
	if err != nil {
		return false, nil
	}
	l.end, l.last, l.size = row, row.Seq, info.Size()
	return true, nil
}

// load reads the whole file. An error leaves everything as it was.
func (l *LedgerFile) load() error {
	taken, end, last, size := l.taken, l.end, l.last, l.size
	l.taken, l.size = map[uint64]uint64{}, 0
	for line, err := range readLedger(io.NewSectionReader(l.file, 0, math.MaxInt64)) {
		if err == nil {
			_, err = l.has(line.row)
		}
		if err != nil {
			l.taken, l.end, l.last, l.size = taken, end, last, size
			return err
		}
		l.add(line.row)
		l.end, l.last, l.size = line.row, max(l.last, line.row.Seq), line.end
	}
	return nil
}

// ledgerLine is a line of the file and where it ends.
type ledgerLine struct {
	row registry.LedgerRow
	end int64
}

// readLedger reads the lines of r. It ends without an error before a last line that can't be read.
func readLedger(r io.Reader) iter.Seq2[ledgerLine, error] {
	return func(yield func(ledgerLine, error) bool) {
		in, end := bufio.NewReaderSize(r, maxLedgerLine), int64(0)
		for number := 1; ; number++ {
			text, err := in.ReadSlice('\n')
			if err == io.EOF {
				return
			}
			line := ledgerLine{end: end + int64(len(text))}
			if err == nil {
				line.row, err = parseLedgerRow(text)
				if _, next := in.Peek(1); err != nil && next == io.EOF {
					return
				}
			}
			if err != nil {
				err = fmt.Errorf("line %d can't be read: %w", number, err)
			}
			if !yield(line, err) || err != nil {
				return
			}
			end = line.end
		}
	}
}

func parseLedgerRow(text []byte) (row registry.LedgerRow, err error) {
	if err = json.Unmarshal(text, &row); err == nil && (row.Seq <= 0 || row.Manifest.IsZero()) {
		err = errors.New("it has no number or no manifest")
	}
	return row, err
}

// LastSeq implements registry.LedgerFile.
func (l *LedgerFile) LastSeq() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Last implements registry.LedgerFile.
func (l *LedgerFile) Last() (registry.LedgerRow, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end, l.end.Seq > 0
}

// Append implements registry.LedgerFile. All rows are written or, after an error, none.
func (l *LedgerFile) Append(rows []registry.LedgerRow) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken == nil && len(rows) > 0 {
		if err := l.load(); err != nil {
			return fmt.Errorf("ledger file %q: %w", l.file.Name(), err)
		}
	}
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	var added []registry.LedgerRow
	fresh, last := taken{}, l.last
	for _, row := range rows {
		there, err := l.has(row)
		if !there && err == nil {
			there, err = fresh.has(row)
		}
		if !there && err == nil {
			fresh.add(row)
			added = append(added, row)
			err = lines.Encode(row)
		}
		if err != nil {
			return err
		}
		last = max(last, row.Seq)
	}
	if err := l.write(text.Bytes()); err != nil {
		return err
	}
	for _, row := range added {
		l.add(row)
		l.end = row
	}
	l.last = last
	return nil
}

// write appends whole lines and syncs them; when that fails it cuts the file back.
func (l *LedgerFile) write(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := l.file.Write(lines)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return errors.Join(err, l.file.Truncate(l.size))
	}
	l.size += int64(len(lines))
	return nil
}

// add and has keep hashes of what the file has: a hundred thousand versions are a few MiB. Where hashes disagree, the file
// itself says what it has.
func (l *LedgerFile) add(row registry.LedgerRow) {
	l.taken[maphash.String(l.seed, ledgerKey(row))] = maphash.String(l.seed, row.Manifest.String())
}

func (l *LedgerFile) has(row registry.LedgerRow) (bool, error) {
	manifest, there := l.taken[maphash.String(l.seed, ledgerKey(row))]
	if !there || manifest == maphash.String(l.seed, row.Manifest.String()) {
		return there, nil
	}
	for line, err := range readLedger(io.NewSectionReader(l.file, 0, math.MaxInt64)) {
		if err != nil {
			return false, err
		}
		if ledgerKey(line.row) == ledgerKey(row) {
			return taken{ledgerKey(row): line.row.Manifest}.has(row)
		}
	}
	return false, nil // two versions of one hash
}

// taken says which manifest versions have; keys are owner/name@version.
type taken map[string]digest.Digest

func ledgerKey(row registry.LedgerRow) string { return row.Owner + "/" + row.Name + "@" + row.Version }

func (t taken) add(row registry.LedgerRow) { t[ledgerKey(row)] = row.Manifest }

// has reports whether the row's version is there, and fails with Conflict when it is with another manifest: one of the
// two was published though the other was.
func (t taken) has(row registry.LedgerRow) (bool, error) {
	found, there := t[ledgerKey(row)]
	if there && found != row.Manifest {
		return true, conflict("the ledger has version %.200q with the manifest %s, not %s", ledgerKey(row), found, row.Manifest)
	}
	return there, nil
}

// Rows implements registry.LedgerFile. Rows that are appended meanwhile are left out.
func (l *LedgerFile) Rows() iter.Seq2[registry.LedgerRow, error] {
	return func(yield func(registry.LedgerRow, error) bool) {
		l.mu.Lock()
		size := l.size
		l.mu.Unlock()
		for line, err := range readLedger(io.NewSectionReader(l.file, 0, size)) {
			if !yield(line.row, err) {
				return
			}
		}
	}
}

// Close closes the file.
func (l *LedgerFile) Close() error { return l.file.Close() }
