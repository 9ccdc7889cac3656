package metastore

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// TestDatabaseGoesAway stops the server inside an update and inside a view, and starts it again: meanwhile the answer is
// Unavailable with a time to try again, and the store goes on by itself.
func TestDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	server := testservice.OwnPostgres(t)
	s := openPostgres(t, server.Database(t, ""))
	if err := s.Update(t.Context(), put("before", "there")); err != nil {
		t.Fatal(err)
	}
	read := func(tx registry.Tx) error { _, err := tx.Setting("before"); return err }
	unavailable := func(what string, err error) {
		t.Helper()
		if registry.CodeOf(err) != registry.Unavailable || retryAfter(err) == 0 {
			t.Errorf("%s: got error %v, want code Unavailable and a time to try again", what, err)
		}
	}
	for _, test := range []struct {
		name string
		run  func(context.Context, func(registry.Tx) error) error
		step func(registry.Tx) error
	}{{"Update", s.Update, put("during", "there")}, {"View", s.View, read}} {
		runs := 0
		err := test.run(t.Context(), func(tx registry.Tx) error {
			runs++
			if err := test.step(tx); err != nil {
				return err
			}
			if err := server.Stop(); err != nil {
				t.Fatal(err)
			}
			return test.step(tx)
		})
		unavailable(test.name+" in the middle", err)
		if runs != 1 {
			t.Errorf("%s: the function ran %d times without a database", test.name, runs)
		}
		unavailable("Update while it is away", s.Update(t.Context(), put("during", "there")))
		unavailable("View while it is away", s.View(t.Context(), read))
		for i, err := range atOnce(s, 50) {
			unavailable(fmt.Sprint("update ", i, " of many while it is away"), err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error { return s.Update(t.Context(), put("after", "there")) })
		eventually(t, func() error { return s.View(t.Context(), read) })
		if got := setting(t, s, "before"); got != "there" {
			t.Errorf("setting %q: got %q", "before", got)
		}
		if err := s.View(t.Context(), func(tx registry.Tx) error { _, err := tx.Setting("during"); return err }); registry.CodeOf(err) != registry.NotFound {
			t.Errorf("what was not acknowledged: got error %v, want code NotFound", err)
		}
	}
}

// atOnce runs n updates at once.
func atOnce(s *Store, n int) []error {
	results := make([]error, n)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() { results[i] = s.Update(context.Background(), put("during", "there")) })
	}
	wg.Wait()
	return results
}

// TestLostConnections cuts every connection of a store while they are idle: nobody may notice.
func TestLostConnections(t *testing.T) {
	t.Parallel()
	address := freshPostgres(t)
	s, other := openPostgres(t, address+"&application_name=cut"), openPostgres(t, address)
	if err := s.Update(t.Context(), put("key", "value")); err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		var inside, wg sync.WaitGroup // views that are all inside at once have a connection each
		inside.Add(10)
		for range 10 {
			wg.Go(func() {
				err := s.View(context.Background(), func(tx registry.Tx) error {
					_, err := tx.Setting("key")
					inside.Done()
					inside.Wait()
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		var cut int64
		err := other.Update(t.Context(), func(r registry.Tx) error {
			return r.(*tx).get(`SELECT COUNT(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cut' AND datname = current_database()) AS cut`, nil, &cut)
		})
		if err != nil || cut < 10 {
			t.Fatalf("cut %d connections, error %v", cut, err)
		}
		for range 10 {
			if got := setting(t, s, "key"); got != "value" {
				t.Errorf("round %d: got setting %q", round, got)
			}
		}
		if err := s.Update(t.Context(), put("key", "value")); err != nil {
			t.Errorf("round %d: update: %v", round, err)
		}
	}
}

// eventually repeats what answers Unavailable.
func eventually(t *testing.T, op func() error) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := op()
		if err == nil {
			return
		}
		if registry.CodeOf(err) != registry.Unavailable || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// TestServerCrashes publishes from three replicas while the server crashes again and again: what was acknowledged is there,
// what was refused is not, and the ledger has no gaps.
func TestServerCrashes(t *testing.T) {
	t.Parallel()
	server := testservice.OwnPostgres(t)
	stores := replicas(t, 3, server.Database(t, ""))
	if err := stores[0].Update(t.Context(), repositoryOfPack); err != nil {
		t.Fatal(err)
	}
	const publishers, crashes = 12, 4
	var wg sync.WaitGroup
	var over atomic.Bool
	var answers sync.Map // version to error; nil is an acknowledgement
	var acknowledged atomic.Int64
	for i := range publishers {
		wg.Go(func() {
			for n := 0; !over.Load(); n++ {
				name := fmt.Sprint(i, ".", n)
				err := stores[i%len(stores)].Update(context.Background(), func(tx registry.Tx) error { return tx.InsertVersion(published(name)) })
				answers.Store(name, err)
				if err == nil {
					acknowledged.Add(1)
				}
			}
		})
	}
	for range crashes {
		for enough := acknowledged.Load() + 30; acknowledged.Load() < enough; time.Sleep(time.Millisecond) {
		}
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
	}
	over.Store(true)
	wg.Wait()
	there := map[string]bool{}
	for i, row := range ledgerOf(t, stores[0]) {
		there[row.Version] = true
		if row.Seq != int64(i+1) {
			t.Errorf("row %d of the ledger has the number %d", i+1, row.Seq)
		}
	}
	lost := 0
	answers.Range(func(name, answer any) bool {
		err, _ := answer.(error)
		switch maybe := err != nil && strings.Contains(err.Error(), "may stand or not"); {
		case maybe:
			lost++
		case (err == nil) != there[name.(string)]:
			t.Errorf("version %s: the answer was %v, it is there: %t", name, err, there[name.(string)])
		case err != nil && registry.CodeOf(err) != registry.Unavailable:
			t.Errorf("version %s: got error %v, want code Unavailable", name, err)
		}
		return true
	})
	t.Logf("%d publishes acknowledged over %d crashes, %d whose answer was lost", acknowledged.Load(), crashes, lost)
}

// cutter stands between a store and its server, and cuts the connection that carries a commit, before or after the server
// has done it.
type cutter struct {
	to     string
	before atomic.Bool // cut before the commit reaches the server
	after  atomic.Bool // cut after the server has answered it, before the store hears it
}

// commitMessage is the simple query that ends a transaction, as the protocol frames it.
var commitMessage = []byte("Q\x00\x00\x00\x0bcommit\x00")

func (c *cutter) serve(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		go c.carry(client)
	}
}

func (c *cutter) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer server.Close()
	var committing atomic.Bool
	go func() {
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil || committing.Load() && c.after.CompareAndSwap(true, false) {
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		commit := bytes.Contains(buffer[:n], commitMessage)
		committing.Store(commit)
		if commit && c.before.CompareAndSwap(true, false) {
			return
		}
		if _, err := server.Write(buffer[:n]); err != nil && err != io.EOF {
			return
		}
	}
}

// TestLostCommit cuts the connection at a commit: the store must not say that the change failed, must not make it again,
// and must say so to every change of the batch that would have stood.
func TestLostCommit(t *testing.T) {
	t.Parallel()
	address := freshPostgres(t)
	direct := openPostgres(t, address)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := &cutter{to: u.Host}
	go c.serve(l)
	u.Host = l.Addr().String()
	s := openPostgres(t, u.String())

	for _, test := range []struct {
		name   string
		cut    *atomic.Bool
		stands bool
	}{{"before", &c.before, false}, {"after", &c.after, true}} {
		test.cut.Store(true)
		var runs [3]atomic.Int64
		change := func(i int) func(registry.Tx) error {
			return func(tx registry.Tx) error {
				runs[i].Add(1)
				if i == 2 {
					return errOwn
				}
				return tx.InsertAudit(registry.AuditRow{Subject: fmt.Sprint(test.name, i)})
			}
		}
		results := gatherFirst(t, s, change(0), change(1), change(2))
		for i, err := range results[:2] {
			if registry.CodeOf(err) != registry.Unavailable || !strings.Contains(err.Error(), "may stand or not") || retryAfter(err) == 0 {
				t.Errorf("cut %s the commit, change %d: got error %v, want Unavailable that says what is not known", test.name, i, err)
			}
			if n := runs[i].Load(); n != 1 {
				t.Errorf("cut %s the commit: change %d ran %d times", test.name, i, n)
			}
		}
		if results[2] != errOwn {
			t.Errorf("cut %s the commit, a change that fails by itself: got error %v, want its own", test.name, results[2])
		}
		var rows []registry.AuditRow
		eventually(t, func() error {
			return direct.View(t.Context(), func(tx registry.Tx) (err error) { rows, err = tx.Audit(0, -1); return err })
		})
		found := 0
		for _, row := range rows {
			if strings.HasPrefix(row.Subject, test.name) {
				found++
			}
		}
		if want := map[bool]int{true: 2, false: 0}[test.stands]; found != want {
			t.Errorf("cut %s the commit: %d of 2 changes stand, want %d", test.name, found, want)
		}
		if err := s.Update(t.Context(), put("later", test.name)); err != nil {
			t.Errorf("the next update: %v", err)
		}
	}
}

// gatherFirst runs the changes in one batch: the first one waits until the others wait behind it.
func gatherFirst(t *testing.T, s *Store, first func(registry.Tx) error, others ...func(registry.Tx) error) []error {
	t.Helper()
	results := make([]error, 1+len(others))
	var wg sync.WaitGroup
	results[0] = s.Update(context.Background(), func(tx registry.Tx) error {
		for i, change := range others {
			wg.Go(func() { results[i+1] = s.Update(context.Background(), change) })
		}
		for s.writer.waiting.Load() < int64(len(others)) {
			time.Sleep(time.Millisecond)
		}
		return first(tx)
	})
	wg.Wait()
	return results
}
