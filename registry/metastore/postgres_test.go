package metastore

import (
	"sync"
	"testing"

	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/metastore/metatest"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	metatest.Run(t, func(t *testing.T) registry.MetaStore { return openPostgres(t, freshPostgres(t)) })
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
