package metastore

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// busyTimeout is how long a connection waits for another process, such as an administrator's command, to commit.
const busyTimeout = 10 * time.Second

// The page caches of a connection, in KiB (negative, as SQLite wants that unit), and how many pages of write-ahead log are
// gathered at most before a commit copies them into the database, where checkpointer did not.
const (
	writerCache    = -4 << 10
	readerCache    = -512
	checkpointEach = 12000
)

// readerRest is how long a connection that nobody reads from keeps its caches and statements.
const readerRest = 10 * time.Second

// walLimit is the size in bytes to which the write-ahead log is cut back after a large transaction.
const walLimit = 64 << 20

// OpenSQLite opens the database at path, makes it (mode 0600) when it is missing, and brings its schema up to date. A
// commit is synced to the disk before it is acknowledged (WAL, synchronous=FULL). Several processes may have it open.
// A schema that a newer version wrote is refused.
func OpenSQLite(ctx context.Context, path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := touchPrivate(path); err != nil {
		return nil, err
	}
	db, err := openSQLitePool(path, 1, url.Values{"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_txlock": {"immediate"},
		"_pragma": {pragma("cache_size", writerCache), pragma("wal_autocheckpoint", checkpointEach)}})
	if err != nil {
		return nil, err
	}
	if err := migrate(ctx, db, sqliteEngine); err != nil {
		return nil, errors.Join(sqliteEngine.public(err), db.Close())
	}
	readers, err := openSQLitePool(path, max(8, 2*runtime.GOMAXPROCS(0)), url.Values{"_query_only": {"1"}, "_pragma": {pragma("cache_size", readerCache)}})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	readers.SetConnMaxIdleTime(readerRest)
	copier, err := openSQLitePool(path, 1, url.Values{"_synchronous": {"FULL"}, "_pragma": {pragma("cache_size", readerCache)}})
	if err != nil {
		return nil, errors.Join(err, readers.Close(), db.Close())
	}
	copier.SetConnMaxIdleTime(readerRest)
	return &Store{engine: sqliteEngine, readers: readers, writer: &writer{db: db, engine: sqliteEngine, checkpoints: &checkpointer{db: copier}}}, nil
}

// touchPrivate makes the file when it is missing, so that it never has wider rights than 0600: it holds the hashes of
// passwords and tokens. SQLite gives its other files the rights of this one.
func touchPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func pragma(name string, value int) string { return name + "(" + strconv.Itoa(value) + ")" }

// openSQLitePool opens a pool of at most size connections, which stay open.
func openSQLitePool(path string, size int, params url.Values) (*sql.DB, error) {
	params.Set("_busy_timeout", strconv.FormatInt(busyTimeout.Milliseconds(), 10))
	params.Set("_foreign_keys", "1")
	params.Set("_dqs", "0")       // "x" is a name, never a string
	params.Set("_defensive", "1") // no statement can damage the file
	params.Set("_error_rc", "1")  // an error's text belongs to its code
	params["_pragma"] = append(params["_pragma"], pragma("journal_size_limit", walLimit),
		"temp_store(MEMORY)") // what savepoints take back never touches the disk
	name := filepath.ToSlash(path)
	if !strings.HasPrefix(name, "/") {
		name = "/" + name // a Windows drive
	}
	connector, err := sqlite.NewConnector("file://" + (&url.URL{Path: name}).EscapedPath() + "?" + params.Encode())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(preparing{connector})
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}
