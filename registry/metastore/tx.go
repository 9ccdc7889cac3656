package metastore

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// tx is a registry.Tx. Its methods are in one file per part of that interface.
type tx struct {
	engine    *engine
	sql       *sql.Tx
	ctx       context.Context // the caller's; looked at before every statement
	statement context.Context // what statements run with
	access    bool            // a statement may have changed who may do what
	broken    error           // the first error of the database itself
}

var _ registry.Tx = (*tx)(nil)

// fail remembers an error of the database. A missing row is none.
func (t *tx) fail(err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	err = t.engine.own(err)
	if t.broken == nil {
		t.broken = err
	}
	return err
}

// exec runs a statement and gives the number of rows that it made, changed or removed.
func (t *tx) exec(query string, args ...any) (int64, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	args, err := storable(args)
	if err != nil {
		return 0, err
	}
	result, err := t.sql.ExecContext(t.statement, query, args...)
	if err != nil {
		return 0, t.fail(err)
	}
	n, err := result.RowsAffected()
	t.access = t.access || (n != 0 || err != nil) && touchesAccess(query)
	return n, t.fail(err)
}

// insert runs an INSERT with ON CONFLICT DO NOTHING and answers taken when that kept the row out.
func (t *tx) insert(taken *registry.Error, query string, args ...any) error {
	n, err := t.exec(query, args...)
	if err == nil && n == 0 {
		return taken
	}
	return err
}

// change runs an UPDATE or DELETE and answers missing when there was no row for it.
func (t *tx) change(missing error, query string, args ...any) error {
	n, err := t.exec(query, args...)
	if err == nil && n == 0 {
		return missing
	}
	return err
}

// named gives missing for an error that says that a row names something that does not exist.
func (t *tx) named(err error, missing *registry.Error) error {
	if t.engine.is(err, foreignKey) {
		missing.Err = err
		return missing
	}
	return err
}

// get scans the one row that a query gives into dest. Errors: sql.ErrNoRows.
func (t *tx) get(query string, args []any, dest ...any) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	args, err := storable(args)
	if err != nil {
		return err
	}
	return t.fail(t.sql.QueryRowContext(t.statement, query, args...).Scan(dest...))
}

// row is what a scan function reads one entity from.
type row interface{ Scan(dest ...any) error }

// one reads the entity that a query gives, or answers missing.
func one[T any](t *tx, missing error, scan func(row) (T, error), query string, args ...any) (T, error) {
	var none T
	if err := t.ctx.Err(); err != nil {
		return none, err
	}
	args, err := storable(args)
	if err != nil {
		return none, missing // nothing is stored under such a text
	}
	v, err := scan(t.sql.QueryRowContext(t.statement, query, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return none, missing
	}
	return v, t.fail(err)
}

// all reads every entity that a query gives.
func all[T any](t *tx, scan func(row) (T, error), query string, args ...any) ([]T, error) {
	var list []T
	err := each(t, scan, func(v T) bool {
		list = append(list, v)
		return true
	}, query, args...)
	return list, err
}

// each yields every entity that a query gives, one in memory at a time, until yield gives false.
func each[T any](t *tx, scan func(row) (T, error), yield func(T) bool, query string, args ...any) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	args, err := storable(args)
	if err != nil {
		return err
	}
	rows, err := t.sql.QueryContext(t.statement, query, args...)
	if err != nil {
		return t.fail(err)
	}
	defer rows.Close()
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return t.fail(err)
		}
		if !yield(v) {
			return nil
		}
	}
	return t.fail(rows.Err())
}

// text scans a row of one text.
func text(r row) (s string, err error) {
	err = r.Scan(&s)
	return s, err
}

// atMost is what LIMIT takes: a negative limit means all rows.
func atMost(limit int) int64 {
	if limit < 0 {
		return math.MaxInt64
	}
	return int64(limit)
}

// conflict is the error of an insert that a unique constraint kept out.
func conflict(format string, args ...any) *registry.Error {
	return registry.Errorf(registry.Conflict, format, args...)
}
