// Package metastore keeps the registry's metadata in SQL. It is the only package that imports database/sql.
//
// The queries are written once, in the subset that SQLite and PostgreSQL share ($1, ON CONFLICT, RETURNING, row values);
// what differs between engines is in engine.go and in the folders of migrations. An insert that may meet a unique
// constraint says ON CONFLICT DO NOTHING and looks whether a row came: the constraint decides, never a look before, and
// a transaction goes on after a conflict. After an error of the database itself a transaction can't commit any more,
// whatever its function returns.
//
// Times are kept in microseconds and come back in UTC.
package metastore

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// attempts is how often a transaction runs that fails for a reason outside it; firstPause, doubled each time, lies
// between.
const (
	attempts   = 4
	firstPause = 10 * time.Millisecond
)

// Store is a registry.MetaStore in a database.
type Store struct {
	engine  *engine
	readers *sql.DB
	writer  *writer
	lostAt  *atomic.Int64 // when a connection was last found to be lost, in nanoseconds; nil where none can be
}

var _ registry.MetaStore = (*Store)(nil)

// View implements registry.MetaStore. fn may run again, and must not call View or Update of the same store: it would
// wait for the connection that it holds.
func (s *Store) View(ctx context.Context, fn func(registry.Tx) error) error {
	return s.retry(ctx, func(int) error { return s.view(ctx, fn) })
}

func (s *Store) view(ctx context.Context, fn func(registry.Tx) error) error {
	sqlTx, err := s.readers.BeginTx(ctx, &s.engine.view)
	if err != nil {
		return s.engine.own(err)
	}
	defer sqlTx.Rollback()
	t := &tx{engine: s.engine, sql: sqlTx, ctx: ctx, statement: ctx}
	if err := fn(t); err != nil {
		return err
	}
	return t.broken
}

// Update implements registry.MetaStore. Updates run one after another, those of all replicas too; those of one Store that
// wait for each other are committed together, with one sync of the disk, and each still succeeds or fails by itself. fn
// must not call Update: it would wait for itself. When ctx ends, fn's next call on its Tx fails; a commit that has begun
// goes on.
//
// When the database goes away the error has the code Unavailable. Nothing of the change stands then, and it was tried
// again, with one exception: the answer to a commit can be lost, and the change may stand or not. fn is never run again
// after that, so a change is not made twice; the error's message says so, and a caller whose change is not idempotent looks
// at what is stored before it tries again.
func (s *Store) Update(ctx context.Context, fn func(registry.Tx) error) error {
	return s.retry(ctx, func(attempt int) error { return s.writer.run(ctx, fn, attempt > 0) })
}

// retry runs op until it succeeds or fails for a reason of its own. It is the only place that tries again.
func (s *Store) retry(ctx context.Context, op func(attempt int) error) error {
	for attempt := 0; ; attempt++ {
		err := op(attempt)
		if ended(err) && ctx.Err() != nil {
			return err
		}
		if gone(err) && s.lostAt != nil {
			s.lostAt.Store(time.Now().UnixNano()) // others of the pool will be lost too
		}
		if attempt+1 == attempts || !s.again(err) {
			return s.engine.public(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(firstPause << attempt):
		}
	}
}

// again reports whether a transaction that failed with err left nothing behind and may do better another time.
func (s *Store) again(err error) bool {
	if _, lost := errors.AsType[*lostCommit](err); lost {
		return false
	}
	_, together := errors.AsType[*batchError](err)
	return together || gone(err) || s.engine.is(err, busy)
}

// Generation implements registry.MetaStore. Of a database that replicas share it says nothing.
func (s *Store) Generation() (uint64, bool) {
	return s.writer.generation.Load(), s.engine == sqliteEngine
}

// AccessGeneration implements registry.MetaStore.
func (s *Store) AccessGeneration() (uint64, bool) {
	return s.writer.access.Load(), s.engine == sqliteEngine
}

// Rest gives back the memory of pages that the writer has read, for a store that nobody asks anything.
func (s *Store) Rest(ctx context.Context) error {
	if s.engine != sqliteEngine {
		return nil
	}
	return s.writer.rest(ctx, "PRAGMA shrink_memory")
}

// Close closes the database. Transactions that run must have ended.
func (s *Store) Close() error {
	return errors.Join(s.writer.checkpoints.Close(), s.readers.Close(), s.writer.db.Close())
}
