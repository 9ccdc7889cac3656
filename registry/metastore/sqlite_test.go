package metastore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/metastore/metatest"
)

func TestSQLite(t *testing.T) {
	t.Parallel()
	metatest.Run(t, func(t *testing.T) registry.MetaStore {
		return openSQLite(t, filepath.Join(t.TempDir(), "gatehouse.db"))
	})
}

func openSQLite(t testing.TB, path string) *Store {
	t.Helper()
	s, err := OpenSQLite(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func put(key, value string) func(registry.Tx) error {
	return func(tx registry.Tx) error { return tx.PutSetting(key, value) }
}

func setting(t *testing.T, s *Store, key string) string {
	t.Helper()
	var value string
	err := s.View(context.Background(), func(tx registry.Tx) (err error) {
		value, err = tx.Setting(key)
		return err
	})
	if err != nil {
		t.Errorf("setting %q: %v", key, err)
	}
	return value
}

// raw runs a statement that the store itself never would.
func raw(query string) func(registry.Tx) error {
	return func(t registry.Tx) error {
		_, err := t.(*tx).exec(query)
		return err
	}
}

// TestSettingsOfConnections checks what durability and isolation hang on.
func TestSettingsOfConnections(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	s := openSQLite(t, path)
	pragmas := func(db *sql.DB) map[string]string {
		got := map[string]string{}
		for _, name := range []string{"journal_mode", "synchronous", "foreign_keys", "query_only", "busy_timeout", "journal_size_limit"} {
			var value string
			if err := db.QueryRow("PRAGMA " + name).Scan(&value); err != nil {
				t.Fatal(err)
			}
			got[name] = value
		}
		return got
	}
	want := map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "query_only": "0", "busy_timeout": "10000", "journal_size_limit": "67108864"}
	if diff := cmp.Diff(want, pragmas(s.writer.db)); diff != "" {
		t.Errorf("the writer's settings differ (-want +got):\n%s", diff)
	}
	want["query_only"] = "1"
	if diff := cmp.Diff(want, pragmas(s.readers)); diff != "" {
		t.Errorf("a reader's settings differ (-want +got):\n%s", diff)
	}
	if n := s.writer.db.Stats().MaxOpenConnections; n != 1 {
		t.Errorf("the writer has %d connections, want 1", n)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if info, err := os.Stat(path + suffix); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v, error %v, want 0600", "gatehouse.db"+suffix, info.Mode(), err)
		}
	}
}

func TestReopen(t *testing.T) {
	t.Parallel()
	// A path may hold what means something in a URL.
	path := filepath.Join(t.TempDir(), "a b?c%20#d&e=é", "gate:house.db")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"first", "second"} {
		s, err := OpenSQLite(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if value == "second" && setting(t, s, "key") != "first" {
			t.Error("what was committed is gone after a new start")
		}
		if err := s.Update(t.Context(), put("key", value)); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the database lies elsewhere: %v", err)
	}
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	noise := filepath.Join(dir, "noise.db")
	if err := os.WriteFile(noise, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{noise, dir, filepath.Join(dir, "none", "x.db")} {
		if s, err := OpenSQLite(t.Context(), path); err == nil {
			t.Errorf("OpenSQLite(%q) succeeded", path)
			s.Close()
		}
	}
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := openSQLite(t, filepath.Join(t.TempDir(), "gatehouse.db"))
	var pages int
	if err := s.writer.db.QueryRow(`PRAGMA page_count`).Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if err := s.writer.db.QueryRow(`PRAGMA max_page_count = 200`).Scan(&pages); err != nil || pages != 200 {
		t.Fatalf("limit of pages: got %d, error %v", pages, err)
	}
	if err := s.Update(t.Context(), put("before", "there")); err != nil {
		t.Fatal(err)
	}
	large := string(bytes.Repeat([]byte("x"), 2<<20))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.Update(context.Background(), put("large", large)); registry.CodeOf(err) != registry.Unavailable {
				t.Errorf("update without room: got error %v, want code Unavailable", err)
			}
		})
		wg.Go(func() {
			if err := s.Update(context.Background(), put("small", "there")); err != nil {
				t.Errorf("small update beside large ones: %v", err)
			}
		})
	}
	wg.Wait()
	for _, key := range []string{"before", "small"} {
		if got := setting(t, s, key); got != "there" {
			t.Errorf("setting %q: got %q", key, got)
		}
	}
	err := s.View(t.Context(), func(tx registry.Tx) error { _, err := tx.Setting("large"); return err })
	if !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("what found no room: got error %v, want ErrNotFound", err)
	}
}

// TestBusy checks what a lock of another process is turned into, and that it is waited for.
func TestBusy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "gatehouse.db")
	s := openSQLite(t, path)
	if _, err := s.writer.db.Exec(`PRAGMA busy_timeout = 0`); err != nil {
		t.Fatal(err)
	}
	other := openSQLite(t, path)
	err := other.Update(t.Context(), func(registry.Tx) error {
		err := s.Update(t.Context(), put("key", "value"))
		if registry.CodeOf(err) != registry.Unavailable || !sqliteEngine.is(err, busy) {
			t.Errorf("update while another process writes: got error %v, want code Unavailable", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), put("key", "value")); err != nil {
		t.Errorf("update after the other process: %v", err)
	}
}
