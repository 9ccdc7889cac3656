package testservice

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// childEnv makes the test binary start a server, print its folder, and wait to be killed.
const childEnv = "GATEHOUSE_TESTSERVICE_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	s, err := StartPostgres()
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Stdout.WriteString(s.folder.path + " " + s.address("postgres") + "\n")
	time.Sleep(time.Hour) // not select: with no other goroutine left the runtime would end the process as dead-locked
}

// ask runs a query of one text.
func ask(t *testing.T, address, query string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var answer string
	if err := conn.QueryRow(t.Context(), query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	first := Postgres(t)
	if got := ask(t, first, `SELECT current_database()`); !strings.HasPrefix(got, "test_") {
		t.Errorf("the database is %q", got)
	}
	conn, err := pgx.Connect(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `CREATE TABLE x (y text)`); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "server_encoding": "UTF8"} {
		if got := ask(t, first, `SELECT current_setting('`+setting+`')`); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	tables := `SELECT COUNT(*)::text FROM pg_class WHERE relname = 'x'`
	if got := ask(t, PostgresCopy(t, first), tables); got != "1" {
		t.Errorf("a copy has %s tables x, want 1", got)
	}
	if got := ask(t, Postgres(t), tables); got != "0" {
		t.Errorf("a fresh database has %s tables x, want 0", got)
	}
}

func TestStopAndStart(t *testing.T) {
	t.Parallel()
	s := OwnPostgres(t)
	address := s.Database(t, "")
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `CREATE TABLE kept (x int)`); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.Connect(t.Context(), address); err == nil {
		t.Error("a server that was stopped takes connections")
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("a connection outlived the server")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, address, `SELECT COUNT(*)::text FROM kept`); got != "0" {
		t.Errorf("after a new start: got %q", got)
	}
}

// TestKilledProcess checks that a server is gone, and its folder with it, once the process that started it is killed.
func TestKilledProcess(t *testing.T) {
	t.Parallel()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"=1")
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 1000)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	folder, address, _ := strings.Cut(strings.TrimSpace(string(line[:n])), " ")
	if got := ask(t, address, `SELECT 'runs'`); got != "runs" {
		t.Errorf("the server answers %q", got)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(folder); os.IsNotExist(err) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%s is still there", filepath.Base(folder))
		}
	}
	if _, err := pgx.Connect(t.Context(), address); err == nil {
		t.Error("the server outlived the process that started it")
	}
}
