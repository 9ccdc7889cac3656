package metastore

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// What the test binary does instead of testing when it is started again as a child.
const (
	childEnv        = "GATEHOUSE_METASTORE_CHILD" // the folder that the child works in
	databaseEnv     = "GATEHOUSE_METASTORE_DATABASE"
	roundEnv        = "GATEHOUSE_METASTORE_ROUND"
	childRoutines   = 8
	childPublishes  = 12 // of each routine
	roundsOfKilling = 10
)

func TestMain(m *testing.M) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := childPublish(dir, os.Getenv(databaseEnv), os.Getenv(roundEnv)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// published is the version that a child publishes under the name.
func published(name string) registry.Version {
	return registry.Version{Repository: "a/x", Owner: "a", PackName: "x", Version: name, Key: name, Dialect: dialect.Forge,
		Manifest: digest.FromBytes([]byte(name)), Document: []byte(strings.Repeat("d", 3000)), CreatedAt: time.Unix(1, 0).UTC()}
}

// openAt opens the database at a PostgreSQL address or a path.
func openAt(ctx context.Context, at string) (*Store, error) {
	if strings.HasPrefix(at, "postgres://") {
		return OpenPostgres(ctx, at)
	}
	return OpenSQLite(ctx, at)
}

// childPublish publishes from many routines, each version with a job of its own rows, and prints what was acknowledged.
func childPublish(dir, at, round string) error {
	ctx := context.Background()
	s, err := openAt(ctx, at)
	if err != nil {
		return err
	}
	l, err := OpenLedger(filepath.Join(dir, "ledger.jsonl"))
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	failed := make(chan error, childRoutines)
	for i := range childRoutines {
		wg.Go(func() {
			for n := range childPublishes {
				if err := publishOne(ctx, s, l, fmt.Sprintf("%s.%d.%d", round, i, n)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	return <-failed
}

func publishOne(ctx context.Context, s *Store, l *LedgerFile, name string) error {
	err := s.Update(ctx, func(tx registry.Tx) error {
		if err := tx.EnsureRepository(registry.Repository{Name: "a/x", Owner: "a"}); err != nil {
			return err
		}
		if err := tx.InsertVersion(published(name)); err != nil {
			return err
		}
		return tx.PutSetting(name, "published")
	})
	if err != nil {
		return err
	}
	fmt.Printf("row %s\n", name)
	if err := copyLedger(ctx, s, l); err != nil {
		return err
	}
	fmt.Printf("ledger %s\n", name)
	return nil
}

// copyLedger appends to the file what the store has and the file lacks.
func copyLedger(ctx context.Context, s *Store, l *LedgerFile) error {
	var rows []registry.LedgerRow
	err := s.View(ctx, func(tx registry.Tx) (err error) {
		rows, err = tx.Ledger(l.LastSeq(), -1)
		return err
	})
	if err != nil {
		return err
	}
	return l.Append(rows)
}

// TestKill kills a publishing process at random points: every version is wholly there or wholly absent, what was
// acknowledged is there, and the ledger file is a part of the ledger that can be brought up to date.
func TestKill(t *testing.T) {
	everyEngine(t, true, func(t *testing.T, at string, _ func(context.Context, string) (*Store, error)) { killPublishers(t, at) })
}

func killPublishers(t *testing.T, at string) {
	dir := t.TempDir()
	acked, filed := map[string]bool{}, map[string]bool{}
	for round := range roundsOfKilling {
		for _, line := range runAndKill(t, dir, at, round, rand.N(2*childRoutines*childPublishes)) {
			kind, name, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch kind {
			case "row":
				acked[name] = true
			case "ledger":
				filed[name] = true
			}
		}
		checkAfterKill(t, dir, at, acked, filed)
	}
	t.Logf("%d publishes acknowledged over %d kills", len(acked), roundsOfKilling)
	if len(acked) == 0 {
		t.Error("no publish was acknowledged in any round")
	}
}

// runAndKill runs a child, kills it a moment after its line number `after`, and gives its whole lines.
func runAndKill(t *testing.T, dir, at string, round, after int) (lines []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir, databaseEnv+"="+at, fmt.Sprint(roundEnv, "=", round))
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for r := bufio.NewReader(stdout); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			break // the pipe ended with the child; an unfinished line acknowledges nothing
		}
		if lines = append(lines, line); len(lines) == after {
			time.Sleep(rand.N(3 * time.Millisecond)) // spreads the kills over the steps of a commit
			cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the child: %v", err)
	}
	return lines
}

// checkAfterKill opens the store as the next process would.
func checkAfterKill(t *testing.T, dir, at string, acked, filed map[string]bool) {
	t.Helper()
	s, err := openAt(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := openLedger(t, filepath.Join(dir, "ledger.jsonl"))
	inFile := map[string]bool{}
	for row, err := range l.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		inFile[row.Version] = true
	}
	for name := range filed {
		if !inFile[name] {
			t.Errorf("version %s was acknowledged by the ledger file and is not in it", name)
		}
	}
	if err := copyLedger(t.Context(), s, l); err != nil {
		t.Fatal(err)
	}
	if err := s.View(t.Context(), func(tx registry.Tx) error { return checkVersions(t, tx, l, acked) }); err != nil {
		t.Fatal(err)
	}
}

// checkVersions compares what the tables and the file hold of every version.
func checkVersions(t *testing.T, tx registry.Tx, l *LedgerFile, acked map[string]bool) error {
	t.Helper()
	versions, err := tx.Versions("a/x")
	if err != nil {
		return err
	}
	rows, err := tx.Ledger(0, -1)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, v := range versions {
		there[v.Version] = true
		if value, err := tx.Setting(v.Version); err != nil || value != "published" {
			t.Errorf("version %s is half there: got setting %q, error %v", v.Version, value, err)
		}
	}
	for name := range acked {
		if !there[name] {
			t.Errorf("version %s was acknowledged and is gone", name)
		}
	}
	if len(rows) != len(versions) {
		t.Errorf("the ledger has %d rows for %d versions", len(rows), len(versions))
	}
	wantRows(t, "ledger file brought up to date", l, rows, int64(len(rows)))
	return nil
}
