package metastore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// Connections of one Store.
const (
	poolParam       = "pool_max_conns" // the parameter of the address that says how many there are at most
	defaultPool     = 16
	largestPool     = 1000
	connectionLives = 30 * time.Minute // so that a new address of a database's name is found, and memory given back
	connectTimeout  = 5 * time.Second
	unansweredLimit = 20 * time.Second // of the network, after which the other end counts as gone
)

// What the database itself sees to, so that a replica that hangs holds the lock of all for a bounded time only. A waiting
// replica waits longer than the one that holds the lock may be silent.
const (
	statementLimit = 30 * time.Second
	silenceLimit   = 10 * time.Second // of a client inside a transaction
	lockLimit      = 15 * time.Second
	batchLimit     = 60 * time.Second
)

// oldestPostgres is the first major version that is supported.
const oldestPostgres = 13

// updateLock is the key of the advisory lock that every transaction holds that writes, of every replica. Advisory locks
// belong to a database, so only what else runs in the registry's own database could meet it.
const updateLock = 0x67617465686f7573 // "gatehous"

var postgresEngine = &engine{
	name:     "postgres",
	goose:    goose.DialectPostgres,
	lock:     fmt.Sprintf("SELECT pg_advisory_xact_lock(%d);", updateLock),
	update:   sql.TxOptions{Isolation: sql.LevelReadCommitted},
	view:     sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
	patience: "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL enable_seqscan = on",
	catalog:  postgresCatalog,
	longest:  batchLimit,
	classify: classifyPostgres,
	unknown:  commitUnknown,
}

// OpenPostgres opens the database at a postgres:// address, which pgx reads as libpq does, and brings its schema up to
// date; any number of processes may do so at once. The parameter pool_max_conns bounds the connections of this Store (16
// unless said; one of them writes). A database of another encoding than UTF8, older than version 13, or with the schema of
// a newer program is refused.
//
// Updates of all replicas run one after another, each batch of them in a READ COMMITTED transaction that first takes one
// advisory lock: what holds of SQLite's updates holds of these. Views are REPEATABLE READ READ ONLY. A commit is on the
// server's disk, whatever the database's own default says, when it is acknowledged.
func OpenPostgres(ctx context.Context, address string) (*Store, error) {
	config, size, err := postgresConfig(address)
	if err != nil {
		return nil, err
	}
	if err := preparePostgres(ctx, config); err != nil {
		return nil, fmt.Errorf("open the PostgreSQL database: %w", err)
	}
	lostAt := new(atomic.Int64)
	return &Store{
		engine:  postgresEngine,
		readers: openPostgresPool(config, size-1, lostAt),
		writer:  &writer{db: openPostgresPool(config, 1, lostAt), engine: postgresEngine},
		lostAt:  lostAt,
	}, nil
}

// postgresConfig reads the address, and the number of connections out of it.
func postgresConfig(address string) (*pgx.ConnConfig, int, error) {
	if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		return nil, 0, registry.Errorf(registry.Invalid, "the address of a PostgreSQL database begins with postgres://")
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, 0, &registry.Error{Code: registry.Invalid, Err: err, // the cause may hold the password
			Message: "the address of the PostgreSQL database can't be read: want postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full"}
	}
	size := defaultPool
	if text, ok := config.RuntimeParams[poolParam]; ok {
		delete(config.RuntimeParams, poolParam)
		if size, err = strconv.Atoi(text); err != nil || size < 2 || size > largestPool {
			return nil, 0, registry.Errorf(registry.Invalid, "%s of the PostgreSQL address is %.20q: want a number from 2 to %d", poolParam, text, largestPool)
		}
	}
	for name, value := range map[string]string{
		"application_name":                    "gatehouse",
		"statement_timeout":                   milliseconds(statementLimit),
		"lock_timeout":                        milliseconds(lockLimit),
		"idle_in_transaction_session_timeout": milliseconds(silenceLimit),
		"synchronous_commit":                  "on",
		// Every query is written for an index. A plan must not hang on statistics, which lag behind a table that grows.
		"enable_seqscan":    "off",
		"enable_bitmapscan": "off",
	} {
		if _, given := config.RuntimeParams[name]; !given {
			config.RuntimeParams[name] = value
		}
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTimeout {
		config.ConnectTimeout = connectTimeout
	}
	config.DialFunc = dialPostgres
	return config, size, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// dialPostgres connects so that a server which is gone without a word is noticed.
func dialPostgres(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: unansweredLimit / 2, Interval: unansweredLimit / 4, Count: 2},
		Control:         limitUnanswered,
	}
	return d.DialContext(ctx, network, address)
}

// openPostgresPool opens a pool of at most size connections. One that was last used before any was found to be lost is tried
// before it is used again. A connection to a server that has become a standby is given up, so that the next one
// finds the server that takes writes.
func openPostgresPool(config *pgx.ConnConfig, size int, lostAt *atomic.Int64) *sql.DB {
	db := stdlib.OpenDB(*config, stdlib.OptionShouldPing(func(_ context.Context, p stdlib.ShouldPingParams) bool {
		return time.Now().Add(-p.IdleDuration).UnixNano() <= lostAt.Load()
	}), stdlib.OptionResetSession(func(_ context.Context, c *pgx.Conn) error {
		if c.PgConn().ParameterStatus("in_hot_standby") == "on" {
			return driver.ErrBadConn
		}
		return nil
	}))
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxLifetime(connectionLives)
	return db
}

// preparePostgres checks that the database is one that the store can work with, and migrates it.
func preparePostgres(ctx context.Context, config *pgx.ConnConfig) error {
	patient := config.Copy()
	for _, limit := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"} {
		patient.RuntimeParams[limit] = "0" // a migration takes what it takes
	}
	db := openPostgresPool(patient, 2, new(atomic.Int64))
	defer db.Close()
	var encoding string
	var version int
	err := db.QueryRowContext(ctx, `SELECT current_setting('server_encoding'), current_setting('server_version_num')::int`).Scan(&encoding, &version)
	switch {
	case err != nil:
		return err
	case encoding != "UTF8":
		return registry.Errorf(registry.Unsupported, "the database's encoding is %q, want UTF8: make another with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", encoding)
	case version < oldestPostgres*10000:
		return registry.Errorf(registry.Unsupported, "the server is PostgreSQL %d, want %d or newer", version/10000, oldestPostgres)
	}
	// Of many processes that start at once one migrates, and no replica writes meanwhile. A transaction holds the lock,
	// not a session, so that it works through a pooler too.
	lock, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer lock.Rollback()
	if _, err := lock.ExecContext(ctx, postgresEngine.lock); err != nil {
		return err
	}
	return migrate(ctx, db, postgresEngine)
}

// classifyPostgres reads the SQLSTATE of an error that the server reported, and takes every failure of the connection
// for the database being away.
func classifyPostgres(err error) errorClasses {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok { // whatever the server said, and even when the time was up
		return away
	}
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classifyState(failure.Code)
	}
	if _, ok := errors.AsType[*lateError](err); ok {
		return late
	}
	if ended(err) {
		return 0
	}
	if _, ok := errors.AsType[net.Error](err); ok || pgconn.SafeToRetry(err) {
		return away
	}
	for _, gone := range []error{driver.ErrBadConn, sql.ErrConnDone, pgconn.ErrConnClosed, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, gone) {
			return away
		}
	}
	return 0
}

// classifyState reads a SQLSTATE.
func classifyState(state string) errorClasses {
	switch state {
	case "40001", "40P01": // serialization failure, deadlock
		return busy
	case "55P03", "57014": // lock_timeout, statement_timeout
		return late
	case "23503":
		return constraint | foreignKey
	case "53100":
		return diskFull
	case "54000":
		return tooLong
	case "25P03", "25P04", "25006": // silent for too long in a transaction, transaction_timeout, a standby takes no writes
		return away
	}
	switch state[:min(2, len(state))] {
	case "08", "53", "57", "58": // connection, resources (too many connections too), shutdown and start, the server's system
		return away
	case "23":
		return constraint
	}
	return 0
}

// commitUnknown: an ERROR says that the commit was refused; anything else, a FATAL too, may have come after it was
// durable, unless the driver knows that it sent nothing.
func commitUnknown(err error) bool {
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok {
		return failure.SeverityUnlocalized != "ERROR"
	}
	return !errors.Is(err, pgx.ErrTxCommitRollback) && !errors.Is(err, sql.ErrTxDone) && !pgconn.SafeToRetry(err)
}
