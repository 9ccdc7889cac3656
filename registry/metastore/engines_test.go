package metastore

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// everyEngine runs a test on each engine. at is one database: empty at first, without a schema when bare is set; open opens
// one more store on it, as another process would.
func everyEngine(t *testing.T, bare bool, test func(t *testing.T, at string, open func(context.Context, string) (*Store, error))) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "gatehouse.db"), OpenSQLite)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		if bare {
			test(t, testservice.Postgres(t), OpenPostgres)
		} else {
			test(t, freshPostgres(t), OpenPostgres)
		}
	})
}

// opened is everyEngine for tests of one store.
func opened(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Helper()
	everyEngine(t, false, func(t *testing.T, at string, open func(context.Context, string) (*Store, error)) {
		s, err := open(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		test(t, s)
	})
}

func TestNewerSchema(t *testing.T) {
	everyEngine(t, false, func(t *testing.T, at string, open func(context.Context, string) (*Store, error)) {
		s, err := open(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Update(t.Context(), raw(`INSERT INTO goose_db_version (version_id, is_applied) SELECT 9999, is_applied FROM goose_db_version LIMIT 1`)); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t.Context(), at); registry.CodeOf(err) != registry.Unsupported {
			t.Errorf("schema 9999: got error %v, want code Unsupported", err)
		}
	})
}

// TestManyProcesses opens one database many times at once, as replicas and an administrator's command do, from the first
// migration on.
func TestManyProcesses(t *testing.T) {
	everyEngine(t, true, func(t *testing.T, at string, open func(context.Context, string) (*Store, error)) {
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				s, err := open(context.Background(), at)
				if err != nil {
					t.Errorf("open %d: %v", i, err)
					return
				}
				defer s.Close()
				for n := range 5 {
					if err := s.Update(context.Background(), func(tx registry.Tx) error { return tx.InsertAudit(registry.AuditRow{}) }); err != nil {
						t.Errorf("update %d of store %d: %v", n, i, err)
					}
				}
			})
		}
		wg.Wait()
		s, err := open(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var rows []registry.AuditRow
		err = s.View(t.Context(), func(tx registry.Tx) (err error) {
			rows, err = tx.Audit(0, -1)
			return err
		})
		if err != nil || len(rows) != 30 {
			t.Errorf("got %d rows, error %v, want 30", len(rows), err)
		}
		for i, row := range rows {
			if row.Seq != int64(i+1) {
				t.Errorf("audit row %d has the number %d", i+1, row.Seq)
			}
		}
	})
}

// TestLedgerIsForever checks that the database itself refuses to change or remove a row of the ledger.
func TestLedgerIsForever(t *testing.T) {
	opened(t, func(t *testing.T, s *Store) {
		l := registry.LedgerRow{Owner: "a", Name: "x", Version: "1", Dialect: dialect.Forge}
		err := s.Update(t.Context(), func(tx registry.Tx) error {
			_, err := tx.MergeLedger("a/x", "1", l)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		statements := []string{`DELETE FROM ledger`, `UPDATE ledger SET manifest = 'sha256:0'`, `UPDATE ledger SET version = '2'`}
		if s.engine == postgresEngine {
			statements = append(statements, `TRUNCATE ledger CASCADE`)
		}
		for _, query := range statements {
			if err := s.Update(t.Context(), raw(query)); registry.CodeOf(err) != registry.Conflict {
				t.Errorf("%s: got error %v, want code Conflict", query, err)
			}
		}
	})
}

// TestCancelledQuery checks that a query which runs for ever ends with its context, and that its connection, and the
// statement that the connection keeps, work on.
func TestCancelledQuery(t *testing.T) {
	opened(t, func(t *testing.T, s *Store) {
		s.readers.SetMaxOpenConns(1)
		count := func(ctx context.Context, to int64) (n int64, err error) {
			err = s.View(ctx, func(r registry.Tx) error {
				return r.(*tx).get(`WITH RECURSIVE n(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2) SELECT COUNT(*) FROM n`, []any{1, to}, &n)
			})
			return n, err
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if _, err := count(ctx, 1<<50); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("endless query: got error %v, want context.DeadlineExceeded", err)
			}
			cancel()
			if n, err := count(t.Context(), 1000); err != nil || n != 1000 {
				t.Errorf("the same query, bounded: got %d, error %v, want 1000", n, err)
			}
		}
	})
}
