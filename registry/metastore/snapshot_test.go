package metastore_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
)

// A snapshot is one moment of a store that goes on writing: of what two settings hold at any commit it holds both.
func TestSnapshotWhileWriting(t *testing.T) {
	dir := t.TempDir()
	s, err := metastore.OpenSQLite(t.Context(), filepath.Join(dir, "live.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			err := s.Update(t.Context(), func(tx registry.Tx) error {
				if err := tx.PutSetting("a", fmt.Sprint(i)); err != nil {
					return err
				}
				return tx.PutSetting("b", fmt.Sprint(i))
			})
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 5 {
		path := filepath.Join(dir, fmt.Sprintf("%d.db", i))
		if err := s.Snapshot(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the snapshot: %v, %v; want mode 0600", info.Mode(), err)
		}
		if err := s.Snapshot(t.Context(), path); registry.CodeOf(err) != registry.Conflict {
			t.Errorf("a second snapshot to one file: %v, want Conflict", err)
		}
		copied, err := metastore.OpenSQLite(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		err = copied.View(t.Context(), func(tx registry.Tx) error {
			a, errA := tx.Setting("a")
			b, errB := tx.Setting("b")
			if a != b || (errA == nil) != (errB == nil) {
				t.Errorf("the snapshot has a = %s (%v) and b = %s (%v)", a, errA, b, errB)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if err := copied.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	writing.Wait()
	if err := s.Snapshot(t.Context(), filepath.Join(dir, "absent", "x.db")); err == nil {
		t.Error("a snapshot into an absent folder: no error")
	}
}
