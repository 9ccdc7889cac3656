package metastore

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// What was committed long enough ago lies in the database itself, not only in its log, while the store stays open.
func TestLogIsCopiedBesideTheWriter(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	s := openSQLite(t, path)
	for n := range checkpointAfter {
		if err := s.Update(t.Context(), put(fmt.Sprintf("key-%d", n), "value")); err != nil {
			t.Fatal(err)
		}
	}
	s.writer.checkpoints.running.Wait()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "alone.db")
	if err := os.WriteFile(alone, b, 0o600); err != nil {
		t.Fatal(err)
	}
	other := openSQLite(t, alone)
	for _, n := range []int{0, checkpointAfter / 2, checkpointAfter - 1} {
		if got := setting(t, other, fmt.Sprintf("key-%d", n)); got != "value" {
			t.Errorf("key-%d is %q in the database without its log", n, got)
		}
	}
}

// A store that is closed while its log is copied is closed.
func TestCloseWaitsForTheCopy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	s, err := OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range checkpointAfter {
		if err := s.Update(t.Context(), put(fmt.Sprintf("key-%d", n), "value")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.writer.checkpoints.committed(2 * checkpointAfter) // a commit that was on its way
	if _, err := os.Stat(path + "-wal"); !os.IsNotExist(err) {
		t.Errorf("the log is still there: %v", err)
	}
	if got := setting(t, openSQLite(t, path), fmt.Sprintf("key-%d", checkpointAfter-1)); got != "value" {
		t.Errorf("the last change is %q", got)
	}
}

// A store that rests goes on, whoever writes meanwhile.
func TestRestBesideWrites(t *testing.T) {
	t.Parallel()
	s := openSQLite(t, filepath.Join(t.TempDir(), "gatehouse.db"))
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for n := range 50 {
				if err := s.Update(t.Context(), put(fmt.Sprintf("key-%d", worker), fmt.Sprint(n))); err != nil {
					t.Error(err)
				}
				if err := s.Rest(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for worker := range 4 {
		if got := setting(t, s, fmt.Sprintf("key-%d", worker)); got != "49" {
			t.Errorf("worker %d wrote 49 last, the store has %q", worker, got)
		}
	}
}
