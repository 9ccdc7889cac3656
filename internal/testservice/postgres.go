package testservice

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

// superuser is the name of the server's only account. Everybody on this machine may sign in with its password.
const superuser = "gatehouse"

// PostgresServer is a PostgreSQL server with everything at its defaults: what it acknowledges is synced to the disk.
type PostgresServer struct {
	instance
	binaries string // the folder of initdb and postgres
	password string
	made     atomic.Int64 // databases
}

// shared is the one server of this process.
var shared = sync.OnceValues(StartPostgres)

// Postgres gives the address of a fresh, empty database, which is dropped when the test ends. Tests share one server.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return sharedPostgres(tb).Database(tb, "")
}

// PostgresOfProcess gives the address of a fresh, empty database that lasts as long as the process, to be copied.
func PostgresOfProcess(tb testing.TB) string {
	tb.Helper()
	s := sharedPostgres(tb)
	address, err := s.NewDatabase()
	if err != nil {
		tb.Fatalf("make a database: %v", err)
	}
	return address
}

// PostgresCopy gives the address of a fresh copy of the database at the address, which Postgres gave and which nobody may
// be connected to.
func PostgresCopy(tb testing.TB, of string) string {
	tb.Helper()
	u, err := url.Parse(of)
	if err != nil {
		tb.Fatal(err)
	}
	return sharedPostgres(tb).Database(tb, strings.TrimPrefix(u.Path, "/"))
}

func sharedPostgres(tb testing.TB) *PostgresServer {
	tb.Helper()
	s, err := shared()
	if err != nil {
		tb.Fatalf("start PostgreSQL: %v", err)
	}
	return s
}

// OwnPostgres starts a server for one test, which may stop and start it. It is gone when the test ends.
func OwnPostgres(tb testing.TB) *PostgresServer {
	tb.Helper()
	s, err := StartPostgres()
	if err != nil {
		tb.Fatalf("start PostgreSQL: %v", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("end PostgreSQL: %v", err)
		}
	})
	return s
}

// Database makes a database, as a copy of the template unless that is "", and gives its address. It is dropped when the
// test ends.
func (s *PostgresServer) Database(tb testing.TB, template string) string {
	tb.Helper()
	name := s.name()
	if err := s.create(name, template); err != nil {
		tb.Fatalf("make a database: %v", err)
	}
	tb.Cleanup(func() {
		// A server that the test stopped keeps it until its folder goes.
		if s.running != nil {
			if err := s.Exec(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
				tb.Errorf("drop the test's database: %v", err)
			}
		}
	})
	return s.address(name)
}

func (s *PostgresServer) name() string { return fmt.Sprintf("test_%d", s.made.Add(1)) }

// create makes a database that orders text by a locale other than bytes, where the server knows one: what relies on the
// order of bytes has to say so.
func (s *PostgresServer) create(name, template string) error {
	if template != "" {
		return s.Exec(context.Background(), `CREATE DATABASE `+name+` TEMPLATE `+pgx.Identifier{template}.Sanitize())
	}
	err := s.Exec(context.Background(), `CREATE DATABASE `+name+` TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'`)
	if err != nil {
		err = s.Exec(context.Background(), `CREATE DATABASE `+name+` TEMPLATE template0 ENCODING 'UTF8'`)
	}
	return err
}

// NewDatabase makes an empty database that lasts as long as the server, and gives its address.
func (s *PostgresServer) NewDatabase() (string, error) {
	name := s.name()
	return s.address(name), s.create(name, "")
}

// Exec runs a statement in the server's own database.
func (s *PostgresServer) Exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.address("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}

func (s *PostgresServer) address(database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(superuser, s.password), Host: "127.0.0.1:" + s.port, Path: "/" + database,
		RawQuery: "sslmode=disable"}
	return u.String()
}

// StartPostgres starts a server for a program that is no test. Close ends it, and so does the end of this process.
func StartPostgres() (*PostgresServer, error) {
	owner, err := unprivileged()
	if err != nil {
		return nil, err
	}
	s := &PostgresServer{password: "for-tests-only"}
	s.launch, s.ask = s.start, s.answers
	if s.binaries, err = postgresBinaries(); err != nil {
		return nil, err
	}
	if s.folder, err = newFolder("postgres", owner); err != nil {
		return nil, err
	}
	secret := filepath.Join(s.folder.path, "password")
	if err := os.WriteFile(secret, []byte(s.password+"\n"), 0o644); err != nil {
		return nil, err
	}
	if err := s.folder.output(filepath.Join(s.binaries, "initdb"), "--pgdata", s.data(), "--username", superuser, "--pwfile", secret,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync"); err != nil {
		return nil, err
	}
	return s, s.Start()
}

func (s *PostgresServer) data() string { return filepath.Join(s.folder.path, "data") }

func (s *PostgresServer) start() (*server, error) {
	return s.folder.start("QUIT", filepath.Join(s.binaries, "postgres"), []string{"-D", s.data(), "-p", s.port,
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=300", "-c", "log_min_messages=fatal"})
}

func (s *PostgresServer) answers(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.address("postgres"))
	if err == nil {
		err = conn.Close(ctx)
	}
	return err
}

// postgresBinaries finds the folder of the newest server that this machine has, else unpacks one.
func postgresBinaries() (string, error) {
	candidates, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	slices.SortFunc(candidates, func(a, b string) int { return majorOf(b) - majorOf(a) })
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			candidates = append([]string{path}, candidates...)
		}
	}
	for _, postgres := range candidates {
		folder := filepath.Dir(postgres)
		if _, err := os.Stat(filepath.Join(folder, "initdb")); err == nil {
			return folder, nil
		}
	}
	return unpackPostgres()
}

// majorOf reads the version out of /usr/lib/postgresql/15/bin/postgres.
func majorOf(path string) (n int) {
	fmt.Sscanf(filepath.Base(filepath.Dir(filepath.Dir(path))), "%d", &n)
	return n
}
