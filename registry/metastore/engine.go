package metastore

import (
	"context"
	"errors"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// engine is everything in which the engines differ, but for opening them.
type engine struct {
	name       string                   // the folder of its migrations
	goose      goose.Dialect            // the engine as goose knows it
	lockRow    string                   // suffix of a SELECT that locks its rows until the end of an Update
	lockLedger string                   // statement that lets one transaction at a time append to the ledger; "" when that is so anyway
	classify   func(error) errorClasses // what an error of the driver means
}

// errorClasses is a set of what an error may mean to the store.
type errorClasses uint

const (
	busy       errorClasses = 1 << iota // another transaction is in the way: run again
	constraint                          // a constraint holds the row back
	foreignKey                          // the row names something that does not exist
	diskFull                            // there is no room for it
)

// is reports whether an error of the driver belongs to the class.
func (e *engine) is(err error, class errorClasses) bool {
	return err != nil && e.classify(err)&class != 0
}

// public gives what the store returns for an error: errors of the domain, of the context and of fn stay as they are,
// those of the driver get the code that a client should hear.
func (e *engine) public(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, ok := errors.AsType[*registry.Error](err); ok {
		return err
	}
	switch classes := e.classify(err); {
	case classes&busy != 0:
		return &registry.Error{Code: registry.Unavailable, Message: "the metadata store is busy: try again", Err: err}
	case classes&diskFull != 0:
		return &registry.Error{Code: registry.Unavailable, Message: "the disk of the metadata store is full", Err: err}
	case classes&constraint != 0:
		return &registry.Error{Code: registry.Conflict, Message: "the change contradicts what is stored", Err: err}
	}
	return err
}

var sqliteEngine = &engine{name: "sqlite", goose: goose.DialectSQLite3, classify: classifySQLite}

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
