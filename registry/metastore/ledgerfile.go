package metastore

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
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
// A LedgerFile is safe for concurrent use, by one process.
type LedgerFile struct {
	mu    sync.Mutex
	file  *os.File
	size  int64 // of the whole lines
	last  int64 // the greatest number that the file has, or was asked to take and had
	taken taken
}

var _ registry.LedgerFile = (*LedgerFile)(nil)

// OpenLedger opens the ledger file at path and makes it (mode 0600) when it is missing.
func OpenLedger(path string) (*LedgerFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	l := &LedgerFile{file: file, taken: taken{}}
	if err := l.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("ledger file %q: %w", path, err), file.Close())
	}
	return l, nil
}

// load reads the file, cuts off what a crash left of a last line, and makes the file's own entry durable.
func (l *LedgerFile) load() error {
	for line, err := range readLedger(l.file) {
		if err != nil {
			return err
		}
		if _, err := l.taken.has(line.row); err != nil {
			return err
		}
		l.taken.add(line.row)
		l.last, l.size = max(l.last, line.row.Seq), line.end
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

// Append implements registry.LedgerFile. All rows are written or, after an error, none.
func (l *LedgerFile) Append(rows []registry.LedgerRow) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	fresh, last := taken{}, l.last
	for _, row := range rows {
		there, err := l.taken.has(row)
		if !there && err == nil {
			there, err = fresh.has(row)
		}
		if !there && err == nil {
			fresh.add(row)
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
	maps.Copy(l.taken, fresh)
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

// taken says which manifest every version of the file has; keys are owner/name@version.
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
