package metastore

import (
	"context"
	"fmt"
	"sync/atomic"
)

// PingPostgres connects to the database at a postgres:// address and reads one row; it changes nothing.
func PingPostgres(ctx context.Context, address string) error {
	config, _, err := postgresConfig(address)
	if err != nil {
		return err
	}
	db := openPostgresPool(config, 1, new(atomic.Int64))
	defer db.Close()
	var one int
	if err := db.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
		return fmt.Errorf("ask the PostgreSQL database: %w", err)
	}
	return nil
}

// Pool is the state of a pool of connections.
type Pool struct {
	Name        string // readers or writer
	Open, InUse int
	Waits       int64   // how often a transaction waited for a connection
	WaitSeconds float64 // how long, all together
}

// Pools tells how busy the connections to the database are.
func (s *Store) Pools() []Pool {
	r, w := s.readers.Stats(), s.writer.db.Stats()
	return []Pool{
		{"readers", r.OpenConnections, r.InUse, r.WaitCount, r.WaitDuration.Seconds()},
		{"writer", w.OpenConnections, w.InUse, w.WaitCount, w.WaitDuration.Seconds()},
	}
}
