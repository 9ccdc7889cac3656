package metastore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// ledgerRows makes the rows first to last.
func ledgerRows(first, last int) []registry.LedgerRow {
	var rows []registry.LedgerRow
	for n := first; n <= last; n++ {
		rows = append(rows, registry.LedgerRow{
			Seq: int64(n), Owner: "alice", Name: "Pack", Version: fmt.Sprint("1.", n), Dialect: dialect.Forge, Kind: "algorithm",
			Manifest: digest.FromBytes(fmt.Append(nil, "m", n)), Content: digest.FromBytes(fmt.Append(nil, "c", n)), Tree: digest.FromBytes(fmt.Append(nil, "t", n)),
			CreatedBy: "<root> & é", CreatedAt: time.Date(2026, 11, 29, 12, 0, n, 5000, time.UTC),
		})
	}
	return rows
}

func openLedger(t *testing.T, path string) *LedgerFile {
	t.Helper()
	l, err := OpenLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func appendRows(t *testing.T, l *LedgerFile, rows []registry.LedgerRow) {
	t.Helper()
	if err := l.Append(rows); err != nil {
		t.Fatalf("append: %v", err)
	}
}

func wantRows(t *testing.T, what string, l *LedgerFile, want []registry.LedgerRow, last int64) {
	t.Helper()
	var got []registry.LedgerRow
	for row, err := range l.Rows() {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got = append(got, row)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(digest.Digest{})); diff != "" {
		t.Errorf("%s: rows differ (-want +got):\n%s", what, diff)
	}
	if l.LastSeq() != last {
		t.Errorf("%s: last number: got %d, want %d", what, l.LastSeq(), last)
	}
}

func TestLedgerFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	l := openLedger(t, path)
	wantRows(t, "new file", l, nil, 0)
	appendRows(t, l, ledgerRows(1, 2))
	appendRows(t, l, nil)
	appendRows(t, l, ledgerRows(1, 3))                                 // two are there
	appendRows(t, l, append(ledgerRows(4, 5), ledgerRows(4, 4)[0]))    // one comes twice
	appendRows(t, l, []registry.LedgerRow{later(ledgerRows(2, 2), 9)}) // there, under another number
	wantRows(t, "file", l, ledgerRows(1, 5), 9)
	for range l.Rows() {
		break // ends the reading early without a fault
	}
	l.Close()
	wantRows(t, "file that was opened again", openLedger(t, path), ledgerRows(1, 5), 5)

	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 5 {
		t.Errorf("the file has %d lines, error %v, want 5", strings.Count(string(text), "\n"), err)
	}
	want := `{"seq":1,"owner":"alice","name":"Pack","version":"1.1","dialect":"forge","kind":"algorithm","manifest":"` +
		ledgerRows(1, 1)[0].Manifest.String() + `",`
	if !strings.HasPrefix(string(text), want) || !strings.Contains(string(text), `"<root> & é"`) {
		t.Errorf("the first line is not as documented: %.300s", text)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v, want 0600", info.Mode())
	}
}

// later gives the one row another number.
func later(rows []registry.LedgerRow, seq int64) registry.LedgerRow {
	rows[0].Seq = seq
	return rows[0]
}

// TestLedgerFileAfterCrash cuts the file at many places of its last line: the whole lines stay, and the row that was cut
// can be appended again.
func TestLedgerFileAfterCrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLedger(t, filepath.Join(dir, "whole"))
	appendRows(t, l, ledgerRows(1, 3))
	text, err := os.ReadFile(filepath.Join(dir, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	lastLine := strings.LastIndex(strings.TrimSuffix(string(text), "\n"), "\n") + 1
	path := filepath.Join(dir, "cut")
	withoutNewline := string(text[lastLine : len(text)-1])
	tails := map[string]string{"zeros": "\x00\x00\x00", "zeros and a newline": "\x00\x00\n", "half a line and a newline": "{\"seq\":3\n", "an empty object": "{}\n", "all but the newline": withoutNewline}
	for at := lastLine; at < len(text); at += 23 {
		tails[fmt.Sprint("cut at ", at)] = string(text[lastLine:at])
	}
	for name, tail := range tails {
		if err := os.WriteFile(path, []byte(string(text[:lastLine])+tail), 0o600); err != nil {
			t.Fatal(err)
		}
		l := openLedger(t, path)
		wantRows(t, name, l, ledgerRows(1, 2), 2)
		appendRows(t, l, ledgerRows(3, 3))
		wantRows(t, name+", then appended", l, ledgerRows(1, 3), 3)
		l.Close()
		if got, _ := os.ReadFile(path); string(got) != string(text) {
			t.Errorf("%s: the repaired file differs from the whole one", name)
		}
	}
}

func TestLedgerFileDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLedger(t, filepath.Join(dir, "whole"))
	appendRows(t, l, ledgerRows(1, 3))
	text, _ := os.ReadFile(filepath.Join(dir, "whole"))
	lines := strings.SplitAfter(string(text), "\n")
	twin := strings.Replace(lines[0], ledgerRows(1, 1)[0].Manifest.String(), ledgerRows(9, 9)[0].Manifest.String(), 1)
	for name, bad := range map[string]struct{ text, says string }{
		"a line in the middle":   {lines[0] + "{\"seq\":\n" + lines[2], "line 2"},
		"a line without number":  {"{}\n" + lines[0], "line 1"},
		"a bad digest":           {strings.Replace(lines[0], "sha256:", "md5:", 1) + lines[1], "line 1"},
		"a version twice":        {lines[0] + lines[1] + twin, "alice/Pack@1.1"},
		"a line that never ends": {lines[0] + strings.Repeat("x", maxLedgerLine+1) + "\n" + lines[1], "line 2"},
		"no newlines, very long": {strings.Repeat("x", maxLedgerLine+1), "line 1"},
	} {
		path := filepath.Join(dir, "bad")
		if err := os.WriteFile(path, []byte(bad.text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLedger(path)
		if err == nil { // its end is sound
			err = errors.Join(l.Append(ledgerRows(7, 7)), l.Close())
		}
		if err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%s: got error %v, want one that says %q", name, err, bad.says)
		}
		if got, _ := os.ReadFile(path); string(got) != bad.text {
			t.Errorf("%s: the damaged file was changed", name)
		}
	}
}

func TestLedgerFileRefusesOtherBytes(t *testing.T) {
	t.Parallel()
	l := openLedger(t, filepath.Join(t.TempDir(), "ledger.jsonl"))
	appendRows(t, l, ledgerRows(1, 2))
	other := ledgerRows(1, 1)[0]
	other.Seq, other.Manifest = 3, ledgerRows(9, 9)[0].Manifest
	if err := l.Append(append(ledgerRows(4, 4), other)); registry.CodeOf(err) != registry.Conflict {
		t.Errorf("a version with another manifest: got error %v, want a conflict", err)
	}
	wantRows(t, "after what was refused", l, ledgerRows(1, 2), 2)
}

func TestLedgerFileConcurrent(t *testing.T) {
	t.Parallel()
	l := openLedger(t, filepath.Join(t.TempDir(), "ledger.jsonl"))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 20 {
				if err := l.Append(ledgerRows(n+1, n+3)); err != nil {
					t.Errorf("append: %v", err)
				}
				l.LastSeq()
				for _, err := range l.Rows() {
					if err != nil {
						t.Errorf("read: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	wantRows(t, "after all", l, ledgerRows(1, 22), 22)
}
