package metastore

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/metastore/metatest"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var spare []string
	metatest.Run(t, func(sub *testing.T) registry.MetaStore {
		mu.Lock()
		defer mu.Unlock()
		var address string
		if last := len(spare) - 1; last >= 0 {
			address, spare = spare[last], spare[:last]
		} else {
			address = freshPostgres(t)
		}
		s := openPostgres(sub, address)
		sub.Cleanup(func() {
			if err := empty(s); err != nil {
				sub.Errorf("empty the database: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			spare = append(spare, address)
		})
		return s
	})
}

// empty removes every row of a store, the ledger's too. It is faster than another database, and enough after a test that
// knows registry.MetaStore only.
func empty(s *Store) error {
	tables, err := s.tables(context.Background())
	if err != nil {
		return err
	}
	var names []string
	for _, t := range tables {
		names = append(names, t.name)
	}
	return s.Update(context.Background(), raw(`SET LOCAL session_replication_role = replica; TRUNCATE `+strings.Join(names, ", ")))
}

// migrated is the address of a database with our schema and no rows. Nobody is connected to it.
var migrated struct {
	sync.Mutex
	address string
}

// freshPostgres gives the address of a database of its own, already migrated: a copy is faster than the migrations. The
// test that comes first makes the model; the test that made it may end before others copy it, so it belongs to none.
func freshPostgres(t testing.TB) string {
	t.Helper()
	migrated.Lock()
	defer migrated.Unlock()
	if migrated.address == "" {
		address := testservice.PostgresOfProcess(t)
		s, err := OpenPostgres(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		migrated.address = address
	}
	return testservice.PostgresCopy(t, migrated.address)
}

func openPostgres(t testing.TB, address string) *Store {
	t.Helper()
	s, err := OpenPostgres(t.Context(), address)
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
