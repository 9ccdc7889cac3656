package metastore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// gather runs changes that all wait while a first one holds the writer, so that they meet in batches.
func gather(t *testing.T, s *Store, changes []func(registry.Tx) error) []error {
	t.Helper()
	results := make([]error, len(changes))
	var wg sync.WaitGroup
	var once sync.Once // the first change runs again when another one breaks its batch
	err := s.Update(context.Background(), func(registry.Tx) error {
		once.Do(func() {
			for i, change := range changes {
				wg.Go(func() { results[i] = s.Update(context.Background(), change) })
			}
			for s.writer.waiting.Load() < int64(len(changes)) {
				runtime.Gosched()
			}
		})
		return nil
	})
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestChangesShareCommits(t *testing.T) {
	opened(t, func(t *testing.T, s *Store) {
		transactions := map[*sql.Tx]int{}
		changes := make([]func(registry.Tx) error, 3*maxBatch)
		for i := range changes {
			changes[i] = func(r registry.Tx) error {
				transactions[r.(*tx).sql]++ // changes run one at a time
				return r.PutSetting(fmt.Sprint("key", i), "value")
			}
		}
		for i, err := range gather(t, s, changes) {
			if err != nil {
				t.Errorf("change %d: %v", i, err)
			}
			if got := setting(t, s, fmt.Sprint("key", i)); got != "value" {
				t.Errorf("change %d: got setting %q", i, got)
			}
		}
		if len(transactions) > 4 { // the first, which gather runs, shares one of them
			t.Errorf("%d changes that waited together needed %d transactions, want 4 at most", len(changes), len(transactions))
		}
		for _, size := range transactions {
			if size > maxBatch {
				t.Errorf("a batch has %d changes, want %d at most", size, maxBatch)
			}
		}
	})
}

// TestBrokenBatch checks that a change which ends the shared transaction takes no other with it.
func TestBrokenBatch(t *testing.T) {
	opened(t, func(t *testing.T, s *Store) {
		changes := make([]func(registry.Tx) error, 40)
		runs := make([]int, len(changes))
		for i := range changes {
			changes[i] = func(r registry.Tx) error {
				runs[i]++
				if err := r.PutSetting(fmt.Sprint("key", i), "value"); err != nil {
					return err
				}
				switch {
				case i%10 == 3:
					return raw(`ROLLBACK`)(r)
				case i%10 == 6:
					return errOwn
				}
				return nil
			}
		}
		again := 0
		for i, err := range gather(t, s, changes) {
			again += runs[i] - 1
			switch {
			case i%10 == 3:
				if err == nil {
					t.Errorf("change %d ended its transaction and succeeded", i)
				}
			case i%10 == 6:
				if !errors.Is(err, errOwn) {
					t.Errorf("change %d: got error %v, want its own", i, err)
				}
			case err != nil:
				t.Errorf("change %d: %v", i, err)
			case setting(t, s, fmt.Sprint("key", i)) != "value":
				t.Errorf("change %d was acknowledged and is not there", i)
			}
		}
		if again == 0 {
			t.Error("no change ran again, so none shared a transaction with one that broke it")
		}
		for i := range changes {
			err := s.View(context.Background(), func(r registry.Tx) error { _, err := r.Setting(fmt.Sprint("key", i)); return err })
			if failed := i%10 == 3 || i%10 == 6; failed != errors.Is(err, registry.ErrNotFound) {
				t.Errorf("change %d, which failed %t: its setting gives error %v", i, failed, err)
			}
		}
	})
}

var errOwn = errors.New("the function's own error")

func TestRetry(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	s, other := openSQLite(t, path), openSQLite(t, path)
	if _, err := s.writer.db.Exec(`PRAGMA busy_timeout = 0`); err != nil {
		t.Fatal(err)
	}
	var locked error
	if err := other.Update(t.Context(), func(registry.Tx) error {
		_, locked = s.writer.db.Exec(`BEGIN IMMEDIATE`)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name     string
		failures []error
		runs     int
		code     registry.Code
	}{
		{"success", nil, 1, ""},
		{"busy, then success", []error{locked, locked}, 3, ""},
		{"always busy", []error{locked, locked, locked, locked, locked}, attempts, registry.Unavailable},
		{"a broken batch, then success", []error{&batchError{errOwn}}, 2, ""},
		{"its own error", []error{errOwn}, 1, registry.Internal},
		{"busy, then its own error", []error{locked, errOwn}, 2, registry.Internal},
	} {
		synctest.Test(t, func(t *testing.T) {
			runs := 0
			err := s.retry(context.Background(), func(attempt int) error {
				if attempt != runs {
					t.Errorf("%s: run %d is told that it is run %d", test.name, runs, attempt)
				}
				runs++
				if runs <= len(test.failures) {
					return test.failures[runs-1]
				}
				return nil
			})
			if runs != test.runs || registry.CodeOf(err) != test.code {
				t.Errorf("%s: got %d runs and error %v, want %d and code %q", test.name, runs, err, test.runs, test.code)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	err := s.retry(ctx, func(int) error { cancel(); return locked })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("busy, then cancelled: got error %v, want context.Canceled", err)
	}
}
