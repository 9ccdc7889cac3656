package metastore

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// maxBatch is how many changes are committed together at most: what the first of them waits for the others.
const maxBatch = 64

// writer runs read-write transactions on one connection. Changes that come while another commits gather in a batch:
// each runs in its caller's goroutine, one at a time, inside a savepoint of the batch's transaction; the last one that
// nobody waits behind commits for all; all wait for that commit. So n callers at once need far fewer than n syncs of the
// disk, and none returns before its change is on it.
type writer struct {
	db      *sql.DB
	engine  *engine
	waiting atomic.Int64 // callers that want mu and will look after the batch once they have it

	mu    sync.Mutex
	batch *batch // open, or nil
}

// batch is a transaction that changes share.
type batch struct {
	tx   *sql.Tx
	size int
	err  error         // why it can't commit, or the commit's error; final once done is closed
	done chan struct{} // closed when it was committed or rolled back
}

// batchError says that a batch failed though the change itself may be faultless: it is to be run again, alone.
type batchError struct{ err error }

func (e *batchError) Error() string { return "commit together with other changes: " + e.err.Error() }
func (e *batchError) Unwrap() error { return e.err }

// run runs fn as part of a batch, or in one of its own, and returns after the commit. What fn saw of the batch's earlier
// changes is only true when these are committed, so a failed fn waits too.
func (w *writer) run(ctx context.Context, fn func(registry.Tx) error, alone bool) error {
	b, err := w.join(ctx, fn, alone)
	if b == nil {
		return err
	}
	<-b.done
	switch {
	case b.err == nil, b.size == 1 && err != nil:
		return err
	case b.size == 1:
		return b.err
	}
	return &batchError{b.err}
}

// join runs fn inside the open batch and commits that unless somebody waits who will. It does so even when fn panics.
func (w *writer) join(ctx context.Context, fn func(registry.Tx) error, alone bool) (*batch, error) {
	w.waiting.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting.Add(-1)
	if alone {
		w.finish()
	}
	if err := w.begin(); err != nil {
		return nil, err
	}
	b := w.batch
	defer func() {
		if alone || b.err != nil || b.size >= maxBatch || w.waiting.Load() == 0 {
			w.finish()
		}
	}()
	b.size++
	return b, b.change(ctx, w.engine, fn)
}

// begin opens a batch when none is open.
func (w *writer) begin() error {
	if w.batch != nil {
		return nil
	}
	tx, err := w.db.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	w.batch = &batch{tx: tx, done: make(chan struct{})}
	return nil
}

// finish commits the open batch, or rolls it back when it is broken, and tells those who wait.
func (w *writer) finish() {
	b := w.batch
	if b == nil {
		return
	}
	w.batch = nil
	if b.err == nil {
		b.err = b.tx.Commit()
	} else {
		b.tx.Rollback()
	}
	close(b.done)
}

// change runs fn inside a savepoint and takes back what it did when it fails, panics, or ends its goroutine.
func (b *batch) change(ctx context.Context, d *engine, fn func(registry.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b.exec("SAVEPOINT change")
	if b.err != nil {
		return b.err
	}
	kept := false
	defer func() {
		if !kept {
			b.exec("ROLLBACK TO SAVEPOINT change")
		}
		b.exec("RELEASE SAVEPOINT change")
	}()
	// A cancelled statement may take the whole transaction with it, so statements of a batch run to their end.
	t := &tx{engine: d, sql: b.tx, ctx: ctx, statement: context.WithoutCancel(ctx), writable: true}
	err := fn(t)
	if err == nil {
		err = t.broken
	}
	kept = err == nil
	return err
}

// exec runs a statement of the batch itself; when it fails the batch is broken.
func (b *batch) exec(query string) {
	if b.err == nil {
		_, b.err = b.tx.Exec(query)
	}
}
