package metastore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// engine is everything in which the engines differ, but for opening them.
type engine struct {
	name     string                   // the folder of its migrations
	goose    goose.Dialect            // the engine as goose knows it
	lock     string                   // statement, with its semicolon, that makes a transaction the only one that writes; "" when it is so anyway
	update   sql.TxOptions            // of transactions that write
	view     sql.TxOptions            // of those that read
	patience string                   // statement that frees a transaction of the limits on its time; "" when there are none
	catalog  catalog                  // its queries about its own tables
	longest  time.Duration            // how long a batch may take, from its begin to its commit; 0: as long as it wants
	classify func(error) errorClasses // what an error of the driver means
	unknown  func(error) bool         // whether a commit that gave the error may stand
}

// errorClasses is a set of what an error may mean to the store.
type errorClasses uint

const (
	busy       errorClasses = 1 << iota // another transaction is in the way: run again
	late                                // it took too long, waiting included
	away                                // the database can't be reached, or went away: run again (see own)
	constraint                          // a constraint holds the row back
	foreignKey                          // the row names something that does not exist
	diskFull                            // there is no room for it
	tooLong                             // a value is longer than an index takes
)

// is reports whether an error of the driver belongs to one of the classes.
func (e *engine) is(err error, classes errorClasses) bool {
	return err != nil && e.classify(err)&classes != 0
}

// When a client may try again.
const (
	retryBusy = time.Second
	retryAway = 5 * time.Second
)

// public gives what the store returns for an error: errors of the domain, of the context and of fn stay as they are,
// those of the driver get the code that a client should hear.
func (e *engine) public(err error) error {
	if err == nil {
		return nil
	}
	if lost, ok := errors.AsType[*lostCommit](err); ok {
		return &registry.Error{Code: registry.Unavailable, RetryAfter: retryAway, Err: lost,
			Message: "the metadata store went away while the change was committed, so it may stand or not: look before you try again"}
	}
	unavailable := func(after time.Duration, message string) error {
		return &registry.Error{Code: registry.Unavailable, Message: message, RetryAfter: after, Err: err}
	}
	if gone(err) {
		return unavailable(retryAway, "the metadata store can't be reached: try again")
	}
	if _, ok := errors.AsType[*registry.Error](err); ok {
		return err
	}
	switch classes := e.classify(err); {
	case classes&(busy|late) != 0:
		return unavailable(retryBusy, "the metadata store is busy: try again")
	case classes&diskFull != 0:
		return unavailable(0, "the disk of the metadata store is full")
	case classes&constraint != 0:
		return &registry.Error{Code: registry.Conflict, Message: "the change contradicts what is stored", Err: err}
	case classes&tooLong != 0:
		return &registry.Error{Code: registry.TooLarge, Message: "a text of the change is longer than the metadata store takes", Err: err}
	}
	return err
}

// awayError is an error of this store's own connections. It is made where the error comes from, since what a function
// returns may hold network errors of other places.
type awayError struct{ err error }

func (e *awayError) Error() string { return e.err.Error() }
func (e *awayError) Unwrap() error { return e.err }

// own marks an error of this store's connection when it says that the database is away.
func (e *engine) own(err error) error {
	if e.is(err, away) {
		return &awayError{err}
	}
	return err
}

// gone reports whether own marked the error.
func gone(err error) bool {
	_, ok := errors.AsType[*awayError](err)
	return ok
}

// lateError is the error of a batch that took longer than it may. It doesn't wrap the context's error, which would be
// taken for that of the caller.
type lateError struct{ err error }

func (e *lateError) Error() string { return "the transaction took too long: " + e.err.Error() }

// ended reports whether err is a context's end.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

var sqliteEngine = &engine{
	name:     "sqlite",
	goose:    goose.DialectSQLite3,
	view:     sql.TxOptions{ReadOnly: true},
	catalog:  sqliteCatalog,
	classify: classifySQLite,
	unknown:  func(error) bool { return false },
}

func classifySQLite(err error) errorClasses {
	failure, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return 0
	}
	const primary = 0xff // the rest of the code tells the kinds of it apart
	switch failure.Code() & primary {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return busy
	case sqlite3.SQLITE_FULL:
		return diskFull
	case sqlite3.SQLITE_CONSTRAINT:
		if failure.Code() == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY {
			return constraint | foreignKey
		}
		return constraint
	}
	return 0
}
