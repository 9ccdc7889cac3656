package metastore

import (
	"context"
	"database/sql"
	"sync"
	"sync/atomic"
)

// checkpointAfter is how many changes are committed before what they wrote is copied from the write-ahead log into the
// database: about five thousand pages of small pushes.
const checkpointAfter = 400

// checkpointer copies the write-ahead log into the database on a connection of its own, so that no commit waits for it. It
// never makes a writer or a reader wait, and nothing depends on it: when it fails, or changes come faster than it copies, the
// writer does the same once the log has checkpointEach pages. Commits are durable before and after it alike.
type checkpointer struct {
	db      *sql.DB
	changes atomic.Int64 // since the last one
	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	busy    atomic.Bool
}

// committed counts changes, and has the log copied when there are enough.
func (c *checkpointer) committed(changes int) {
	if c == nil || c.changes.Add(int64(changes)) < checkpointAfter || !c.busy.CompareAndSwap(false, true) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.running.Go(func() {
		defer c.busy.Store(false)
		c.changes.Store(0)
		// What fails here the writer does later, or answers for.
		_, _ = c.db.ExecContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)")
	})
}

// Close ends it. Nothing runs afterwards.
func (c *checkpointer) Close() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
	return c.db.Close()
}
