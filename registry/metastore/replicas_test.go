package metastore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// replicas opens n stores on one database, as n servers do.
func replicas(t *testing.T, n int, address string) []*Store {
	t.Helper()
	list := make([]*Store, n)
	for i := range list {
		list[i] = openPostgres(t, address)
	}
	return list
}

func repositoryOfPack(tx registry.Tx) error {
	return tx.EnsureRepository(registry.Repository{Name: "a/x", Owner: "a"})
}

// TestOnePublishWinsOverReplicas publishes one version from many callers of three replicas, again and again.
func TestOnePublishWinsOverReplicas(t *testing.T) {
	t.Parallel()
	const rounds, publishers = 5, 64
	stores := replicas(t, 3, freshPostgres(t))
	if err := stores[0].Update(t.Context(), repositoryOfPack); err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		var wg sync.WaitGroup
		var winner atomic.Int64
		for i := range publishers {
			wg.Go(func() {
				v := published(fmt.Sprint(round))
				v.Manifest = digest.FromBytes(fmt.Append(nil, round, i))
				err := stores[i%len(stores)].Update(context.Background(), func(tx registry.Tx) error { return tx.InsertVersion(v) })
				switch registry.CodeOf(err) {
				case "":
					if was := winner.Swap(int64(i + 1)); was != 0 {
						t.Errorf("round %d: publishers %d and %d both won", round, was-1, i)
					}
				case registry.Conflict:
				default:
					t.Errorf("round %d, publisher %d: %v", round, i, err)
				}
			})
		}
		wg.Wait()
		rows := ledgerOf(t, stores[round%len(stores)])
		if len(rows) != round+1 {
			t.Fatalf("the ledger has %d rows after %d rounds", len(rows), round+1)
		}
		won := digest.FromBytes(fmt.Append(nil, round, winner.Load()-1))
		if row := rows[round]; row.Seq != int64(round+1) || row.Manifest != won {
			t.Errorf("round %d: ledger row %d has the manifest %s, want that of the winner, %s", round, row.Seq, row.Manifest, won)
		}
	}
}

func ledgerOf(t *testing.T, s *Store) (rows []registry.LedgerRow) {
	t.Helper()
	err := s.View(context.Background(), func(tx registry.Tx) (err error) {
		rows, err = tx.Ledger(0, -1)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestLedgerOfReplicas checks that versions which many replicas publish, in batches of their own, are numbered without
// gaps, and that who has read the ledger up to a number misses no row of a lower one.
func TestLedgerOfReplicas(t *testing.T) {
	t.Parallel()
	stores := replicas(t, 3, freshPostgres(t))
	if err := stores[0].Update(t.Context(), repositoryOfPack); err != nil {
		t.Fatal(err)
	}
	const publishers, each = 24, 8
	var wg sync.WaitGroup
	for i := range publishers {
		wg.Go(func() {
			for n := range each {
				err := stores[i%len(stores)].Update(context.Background(), func(tx registry.Tx) error {
					return tx.InsertVersion(published(fmt.Sprint(i, ".", n)))
				})
				if err != nil {
					t.Errorf("publisher %d: %v", i, err)
				}
			}
		})
	}
	seen := int64(0)
	for followed := 0; followed < publishers*each; {
		var rows []registry.LedgerRow
		err := stores[followed%len(stores)].View(t.Context(), func(tx registry.Tx) (err error) {
			rows, err = tx.Ledger(seen, 10)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if row.Seq != seen+1 {
				t.Fatalf("row %d follows row %d", row.Seq, seen)
			}
			seen = row.Seq
		}
		followed += len(rows)
	}
	wg.Wait()
}

// TestReplicaThatHangs checks that a replica which stops inside an update holds up the others for a bounded time, and that
// its own update runs again once it goes on.
func TestReplicaThatHangs(t *testing.T) {
	t.Parallel()
	stores := replicas(t, 2, freshPostgres(t)+"&idle_in_transaction_session_timeout=300")
	runs := 0
	err := stores[0].Update(t.Context(), func(tx registry.Tx) error {
		runs++
		if err := tx.PutSetting("first", fmt.Sprint(runs)); err != nil {
			return err
		}
		if runs == 1 { // the other replica can only go on once the database has ended this transaction
			if err := stores[1].Update(context.Background(), put("second", "there")); err != nil {
				t.Errorf("update beside a replica that hangs: %v", err)
			}
		}
		return tx.PutSetting("third", fmt.Sprint(runs))
	})
	if err != nil || runs != 2 {
		t.Errorf("the update that hung: got error %v after %d runs, want success in the second", err, runs)
	}
	for key, want := range map[string]string{"first": "2", "second": "there", "third": "2"} {
		if got := setting(t, stores[1], key); got != want {
			t.Errorf("setting %q: got %q, want %q", key, got, want)
		}
	}
}

// TestLockTimeout checks that a replica which doesn't get to write says so, to those that wait behind the first one too.
func TestLockTimeout(t *testing.T) {
	t.Parallel()
	stores := replicas(t, 2, freshPostgres(t)+"&lock_timeout=200")
	err := stores[0].Update(t.Context(), func(registry.Tx) error {
		for i, err := range atOnce(stores[1], 20) {
			if registry.CodeOf(err) != registry.Unavailable || retryAfter(err) == 0 {
				t.Errorf("update %d while another replica writes: got error %v, want code Unavailable and a time to try again", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// retryAfter is when the error says to try again.
func retryAfter(err error) time.Duration {
	if e, ok := err.(*registry.Error); ok {
		return e.RetryAfter
	}
	return 0
}

// TestPoolIsBounded counts the connections that a store makes under more callers than it may have.
func TestPoolIsBounded(t *testing.T) {
	t.Parallel()
	address := freshPostgres(t)
	s, watch := openPostgres(t, address+"&pool_max_conns=4&application_name=bounded"), openPostgres(t, address)
	var wg sync.WaitGroup
	var most int64
	for i := range 40 {
		wg.Go(func() {
			err := s.View(context.Background(), func(r registry.Tx) error {
				return r.(*tx).get(`SELECT COUNT(*) FROM pg_sleep(0.005)`, nil, new(int64))
			})
			if i%4 == 0 && err == nil {
				err = s.Update(context.Background(), put(fmt.Sprint(i), ""))
			}
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		var n int64
		err := watch.View(t.Context(), func(r registry.Tx) error {
			return r.(*tx).get(`SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'bounded' AND datname = current_database()`, nil, &n)
		})
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
	}
	if most < 2 || most > 4 {
		t.Errorf("the store had %d connections, want 2 to 4", most)
	}
}

// TestPostgresAddress checks which addresses are refused before anything is connected to, without a word of the password.
func TestPostgresAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"", "gatehouse.db", "mysql://u:secret@h/d", "host=h password=secret", "postgres://u:secret@h:port/d",
		"postgres://u:secret@h/d?pool_max_conns=1", "postgres://u:secret@h/d?pool_max_conns=x", "postgres://u:secret@h/d?pool_max_conns=1001",
		"postgres://u:secret@h/d?sslmode=never",
	} {
		s, err := OpenPostgres(t.Context(), address)
		if err == nil {
			s.Close()
		}
		if registry.CodeOf(err) != registry.Invalid || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("OpenPostgres(%q): got error %v, want code Invalid and no password", address, err)
		}
	}
}

// TestPostgresThatIsUnfit checks databases that the store can't work with.
func TestPostgresThatIsUnfit(t *testing.T) {
	t.Parallel()
	server := testservice.OwnPostgres(t)
	if err := server.Exec(t.Context(), `CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`); err != nil {
		t.Fatal(err)
	}
	latin := strings.Replace(server.Database(t, ""), "/test_1?", "/latin?", 1)
	if s, err := OpenPostgres(t.Context(), latin); err == nil || !strings.Contains(err.Error(), "UTF8") {
		t.Errorf("a database in LATIN1: got error %v, want one that names UTF8", err)
		if err == nil {
			s.Close()
		}
	}
	absent := strings.Replace(latin, "/latin?", "/absent?", 1)
	if s, err := OpenPostgres(t.Context(), absent); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("no such database: got error %v, want one that names it", err)
		if err == nil {
			s.Close()
		}
	}
}

// TestRoleWithoutTables opens a database that was migrated by its owner as a role that may make no tables.
func TestRoleWithoutTables(t *testing.T) {
	t.Parallel()
	address := freshPostgres(t)
	owner := openPostgres(t, address)
	role := fmt.Sprint("clerk_", time.Now().UnixNano()) // roles belong to the server, which other tests use
	for _, statement := range []string{
		`CREATE ROLE ` + role + ` LOGIN PASSWORD 'clerk'`,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ` + role,
	} {
		if err := owner.Update(t.Context(), raw(statement)); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "clerk")
	s := openPostgres(t, u.String())
	if err := s.Update(t.Context(), raw(`CREATE TABLE x (y int)`)); err == nil {
		t.Error("the role made a table")
	}
	if err := s.Update(t.Context(), func(tx registry.Tx) error {
		return errors.Join(repositoryOfPack(tx), tx.InsertVersion(published("1")), tx.PutSetting("key", "value"))
	}); err != nil {
		t.Errorf("update: %v", err)
	}
	if got := setting(t, owner, "key"); got != "value" {
		t.Errorf("setting: got %q", got)
	}
}

// TestSettingsOfPostgres checks what durability and isolation hang on, against a database whose own defaults are otherwise.
func TestSettingsOfPostgres(t *testing.T) {
	t.Parallel()
	address := freshPostgres(t)
	s := openPostgres(t, address)
	for _, name := range []string{"synchronous_commit = off", "default_transaction_isolation = 'serializable'", "default_transaction_read_only = off"} {
		if err := s.Update(t.Context(), raw(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET `+strings.ReplaceAll(name, "'", "''")+`', current_database()); END $$`)); err != nil {
			t.Fatal(err)
		}
	}
	s = openPostgres(t, address)
	settings := func(r registry.Tx) (got []string, err error) {
		for _, name := range []string{"transaction_isolation", "transaction_read_only", "synchronous_commit", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
			value, err := one(r.(*tx), registry.ErrNotFound, text, `SELECT current_setting($1)`, name)
			if err != nil {
				return nil, err
			}
			got = append(got, value)
		}
		return got, nil
	}
	for _, test := range []struct {
		name string
		run  func(context.Context, func(registry.Tx) error) error
		want []string
	}{
		{"Update", s.Update, []string{"read committed", "off", "on", "30s", "15s", "10s"}},
		{"View", s.View, []string{"repeatable read", "on", "on", "30s", "15s", "10s"}},
	} {
		var got []string
		err := test.run(t.Context(), func(r registry.Tx) (err error) {
			got, err = settings(r)
			return err
		})
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, error %v, want %q", test.name, got, err, test.want)
		}
	}
}
