package metastore

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

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

	// generation counts the batches that ended. It moves after the commit, or what may have been one, and before anybody is
	// told of it (see registry.MetaStore).
	generation atomic.Uint64
	access     atomic.Uint64 // likewise, of the batches that may have changed who may do what

	checkpoints *checkpointer // nil where the database has no such thing

	mu      sync.Mutex
	batch   *batch // open, or nil
	down    error  // why no batch could be opened, as long as it counts
	triedAt time.Time
}

// downCounts is how long a failure to reach the database, or its lock, stands for those that wait behind it: each would
// wait as long for itself, one after another.
const downCounts = 500 * time.Millisecond

// batch is a transaction that changes share.
type batch struct {
	tx     *sql.Tx
	ctx    context.Context // of all its statements
	end    context.CancelFunc
	size   int           // changes that ran
	kept   int           // those that succeeded
	used   bool          // whether the open savepoint holds one of these
	access bool          // whether one may have changed who may do what
	err    error         // why it can't commit, or the commit's error; final once done is closed
	lost   bool          // whether it may have been committed in spite of err
	done   chan struct{} // closed when it was committed or rolled back
}

// lostCommit says that the answer to the commit of a change was lost: the change stands or not.
type lostCommit struct{ err error }

func (e *lostCommit) Error() string { return "the answer to a commit was lost: " + e.err.Error() }
func (e *lostCommit) Unwrap() error { return e.err }

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
	case b.lost && err == nil:
		return &lostCommit{b.err}
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
	if w.down != nil && time.Since(w.triedAt) < downCounts {
		return w.down
	}
	b, err := w.open()
	w.batch, w.down, w.triedAt = b, nil, time.Now()
	if gone(err) || w.engine.is(err, late) {
		w.down = err
	}
	return err
}

// open begins the transaction of a batch and makes it the only one that writes.
func (w *writer) open() (*batch, error) {
	b := &batch{ctx: context.Background(), end: func() {}, done: make(chan struct{})}
	if w.engine.longest > 0 {
		b.ctx, b.end = context.WithTimeout(b.ctx, w.engine.longest)
	}
	var err error
	if b.tx, err = w.db.BeginTx(b.ctx, &w.engine.update); err != nil {
		b.end()
		return nil, w.engine.own(err)
	}
	if _, err := b.tx.ExecContext(b.ctx, w.engine.lock+"SAVEPOINT change"); err != nil {
		b.tx.Rollback()
		b.end()
		return nil, w.engine.own(err)
	}
	return b, nil
}

// finish commits the open batch, or rolls it back when it is broken or keeps nothing, and tells those who wait.
func (w *writer) finish() {
	b := w.batch
	if b == nil {
		return
	}
	w.batch = nil
	if b.kept > 0 {
		b.exec(w.engine, "RELEASE SAVEPOINT change") // it fails when a change ended the transaction
	}
	if b.err == nil {
		b.err = b.ctx.Err()
	}
	if b.err != nil || b.kept == 0 {
		b.tx.Rollback()
	} else if err := b.tx.Commit(); err != nil {
		b.err, b.lost = w.engine.own(err), w.engine.unknown(err)
	} else {
		w.checkpoints.committed(b.kept)
	}
	if b.err != nil && b.ctx.Err() != nil {
		b.err = &lateError{b.err}
	}
	b.end()
	w.generation.Add(1)
	if b.access || b.err != nil {
		w.access.Add(1)
	}
	close(b.done)
}

// change runs fn inside a savepoint, which the batch has always open, and takes back what it did when it fails, panics, or ends its goroutine.
func (b *batch) change(ctx context.Context, d *engine, fn func(registry.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if b.used {
		b.exec(d, "RELEASE SAVEPOINT change; SAVEPOINT change")
	}
	if b.err != nil {
		return b.err
	}
	b.used = false
	defer func() {
		if !b.used {
			b.exec(d, "ROLLBACK TO SAVEPOINT change") // which stays, for the next change
		}
	}()
	// A cancelled statement may take the whole transaction with it, so statements of a batch run to their end.
	t := &tx{engine: d, sql: b.tx, ctx: ctx, statement: b.ctx}
	defer func() { b.access = b.access || t.access }()
	err := fn(t)
	if err == nil {
		err = t.broken
	}
	if err == nil {
		b.used, b.kept = true, b.kept+1
	}
	return err
}

// exec runs a statement of the batch itself; when it fails the batch is broken.
func (b *batch) exec(d *engine, query string) {
	if b.err == nil {
		_, err := b.tx.ExecContext(b.ctx, query)
		b.err = d.own(err)
	}
}

// rest runs a statement that gives back memory, unless somebody writes.
func (w *writer) rest(ctx context.Context, statement string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.batch != nil { // it has the connection
		return nil
	}
	_, err := w.db.ExecContext(ctx, statement)
	return err
}
