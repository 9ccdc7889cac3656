package metastore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// What one update of a copy writes at most.
const (
	copyRows  = 256
	copyBytes = 4 << 20
)

// copyPasses is how often a copy goes over all tables at most. The second pass mends what triggers of the target made of
// the first one's rows, and the third finds nothing to do, unless somebody else writes to the target.
const copyPasses = 6

// Copy makes the target hold what the source holds, row by row, in either direction between the engines. It reads one
// moment of the source, which may go on serving; the target must have no other writer. Rows that differ are changed, rows
// that the source lacks are removed, and rows that are the same are left alone, so that a second run costs little more than
// reading, and a run that was cut off goes on where it was. The ledger only grows: rows of the target's that the source
// lacks stay, and one that says otherwise than the source's is an error. Whether a store is read-only is not copied.
//
// The last pass over all tables reads both stores once more and must find every row of the source in the target, equal in
// every column, and no other: Copy returns nil only then. It is told by progress, which may be nil, how many rows of a
// table a pass has compared so far, and at each table's end how many there are. Errors: Conflict when the ledgers disagree
// or the target changes meanwhile; Invalid when the source holds text that the target can't.
func Copy(ctx context.Context, from, to *Store, progress func(table string, rows int)) error {
	if from == to {
		return registry.Errorf(registry.Invalid, "a store can't be copied to itself")
	}
	if progress == nil {
		progress = func(string, int) {}
	}
	tables, err := commonTables(ctx, from, to)
	if err != nil {
		return err
	}
	c := &copier{to: to, progress: progress}
	return from.patientView(ctx, func(source *tx) error {
		for range copyPasses {
			before := c.written
			if err := c.pass(ctx, source, tables); err != nil {
				return err
			}
			if c.written == before {
				return nil
			}
		}
		return registry.Errorf(registry.Conflict, "the target is still not the same after %d passes: stop what else writes to it", copyPasses)
	})
}

// patientView is a View without the limits on time that the database sets for requests.
func (s *Store) patientView(ctx context.Context, fn func(*tx) error) error {
	return s.View(ctx, func(r registry.Tx) error {
		t := r.(*tx)
		if s.engine.patience != "" {
			if _, err := t.exec(s.engine.patience); err != nil {
				return err
			}
		}
		return fn(t)
	})
}

// copier is a copy that runs.
type copier struct {
	to       *Store
	progress func(string, int)
	written  int // rows that were added, changed or removed
}

// pass removes what the source lacks, from the tables that name others to those that are named, and then adds and changes
// rows the other way round.
func (c *copier) pass(ctx context.Context, source *tx, tables []*table) error {
	for i := range tables {
		if err := c.remove(ctx, source, tables[len(tables)-1-i]); err != nil {
			return fmt.Errorf("table %s: %w", tables[len(tables)-1-i].name, err)
		}
	}
	for _, t := range tables {
		if err := c.add(ctx, source, t); err != nil {
			return fmt.Errorf("table %s: %w", t.name, err)
		}
	}
	return nil
}

// remove deletes the target's rows whose keys the source lacks.
func (c *copier) remove(ctx context.Context, source *tx, t *table) error {
	if t.grows {
		return nil
	}
	w := &rowWriter{to: c.to, write: t.deleteRows}
	err := c.to.patientView(ctx, func(target *tx) error {
		return merge(source.rows(t.selectKeys()), target.rows(t.selectKeys()), compareRows, func(ours, theirs []any) error {
			if ours == nil {
				return w.add(ctx, theirs)
			}
			return nil
		})
	})
	if err == nil {
		err = w.flush(ctx)
	}
	c.written += w.written
	return err
}

// add writes the source's rows that the target lacks, or has otherwise.
func (c *copier) add(ctx context.Context, source *tx, t *table) error {
	w, seen := &rowWriter{to: c.to, write: t.upsertRows}, 0
	err := c.to.patientView(ctx, func(target *tx) error {
		return merge(source.rows(t.selectRows()), target.rows(t.selectRows()), t.compareKeys, func(ours, theirs []any) error {
			if ours == nil {
				return nil // only in a table that grows: remove has seen to the others
			}
			if seen++; seen%copyRows == 0 {
				c.progress(t.name, seen)
			}
			switch {
			case theirs == nil:
			case compareRows(ours, theirs) == 0:
				return nil
			case t.grows:
				return conflict("row %v of the %s differs between the stores, and such rows are never changed: these are not two states of one registry", t.keyOf(ours), t.name)
			}
			return w.add(ctx, ours)
		})
	})
	if err == nil {
		err = w.flush(ctx)
	}
	c.written += w.written
	c.progress(t.name, seen)
	return err
}

// rowWriter gathers rows and writes them in updates of a bounded size.
type rowWriter struct {
	to      *Store
	write   func(*tx, [][]any) error
	rows    [][]any
	size    int
	written int
}

func (w *rowWriter) add(ctx context.Context, row []any) error {
	w.rows = append(w.rows, row)
	for _, v := range row {
		switch v := v.(type) {
		case string:
			w.size += len(v)
		case []byte:
			w.size += len(v)
		}
	}
	if len(w.rows) < copyRows && w.size < copyBytes {
		return nil
	}
	return w.flush(ctx)
}

// flush writes what was gathered. The writes are such that it does no harm to make them twice, so it does when it is not
// known whether they were made.
func (w *rowWriter) flush(ctx context.Context) error {
	if len(w.rows) == 0 {
		return nil
	}
	for attempt := 0; ; attempt++ {
		err := w.to.Update(ctx, func(r registry.Tx) error { return w.write(r.(*tx), w.rows) })
		if _, lost := errors.AsType[*lostCommit](err); lost && attempt < attempts {
			continue
		}
		if err != nil {
			return err
		}
		w.written += len(w.rows)
		w.rows, w.size = nil, 0
		return nil
	}
}

// rows yields the rows of a query, and at its end an error when there is one.
func (t *tx) rows(query string, columns int) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		wanted := true
		err := each(t, func(r row) ([]any, error) {
			values := make([]any, columns)
			dest := make([]any, columns)
			for i := range values {
				dest[i] = &values[i]
			}
			err := r.Scan(dest...)
			for i, v := range values {
				if b, ok := v.([]byte); ok && b == nil {
					values[i] = []byte{} // SQLite's driver gives nil for no bytes, and no []byte for NULL
				}
			}
			return values, err
		}, func(values []any) bool {
			wanted = yield(values, nil)
			return wanted
		}, query)
		if err != nil && wanted {
			yield(nil, err)
		}
	}
}

// merge walks two lists that are sorted by compare and calls visit for each row: with nil in the place of a row that one
// of them lacks.
func merge(ours, theirs iter.Seq2[[]any, error], compare func(a, b []any) int, visit func(ours, theirs []any) error) error {
	nextOurs, stopOurs := iter.Pull2(ours)
	defer stopOurs()
	nextTheirs, stopTheirs := iter.Pull2(theirs)
	defer stopTheirs()
	a, errA, moreA := nextOurs()
	b, errB, moreB := nextTheirs()
	for moreA || moreB {
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		order := 0
		switch {
		case !moreB:
			order = -1
		case !moreA:
			order = 1
		default:
			order = compare(a, b)
		}
		left, right := a, b
		if order < 0 {
			right = nil
		}
		if order > 0 {
			left = nil
		}
		if err := visit(left, right); err != nil {
			return err
		}
		if order <= 0 {
			a, errA, moreA = nextOurs()
		}
		if order >= 0 {
			b, errB, moreB = nextTheirs()
		}
	}
	return nil
}

// compareRows orders rows as both engines order them: numbers by value, text and bytes bytewise, no value first.
func compareRows(a, b []any) int {
	for i := range a {
		if order := compareValues(a[i], b[i]); order != 0 {
			return order
		}
	}
	return 0
}

func compareValues(a, b any) int {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			return cmp.Compare(a, b)
		}
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b)
		}
	case []byte:
		if b, ok := b.([]byte); ok {
			return bytes.Compare(a, b)
		}
	case nil:
		if b == nil {
			return 0
		}
	}
	return cmp.Compare(fmt.Sprintf("%T", a), fmt.Sprintf("%T", b))
}
