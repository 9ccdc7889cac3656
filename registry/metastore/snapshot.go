package metastore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Snapshot writes the whole database, as it is at one moment, to a new file (mode 0600) that is durable when Snapshot
// returns. Others go on reading and writing meanwhile, in this process and in others. What fails leaves no file. Errors:
// Conflict when the file is there; Unsupported for an engine that keeps its database elsewhere.
func (s *Store) Snapshot(ctx context.Context, path string) error {
	if s.engine != sqliteEngine {
		return registry.Errorf(registry.Unsupported, "a database of %s is saved with its own tools", s.engine.name)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // SQLite fills an empty file, and keeps its rights
	if errors.Is(err, fs.ErrExist) {
		return registry.Errorf(registry.Conflict, "%s is there already", path)
	}
	if err != nil {
		return err
	}
	err = s.vacuumInto(ctx, path)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = durable.SyncFolder(filepath.Dir(path))
	}
	if err != nil {
		return errors.Join(s.engine.public(err), os.Remove(path))
	}
	return nil
}

// vacuumInto runs on a reader's connection, which for once may write: another file than its own.
func (s *Store) vacuumInto(ctx context.Context, path string) (err error) {
	conn, err := s.readers.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, `PRAGMA query_only = 0`); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, `VACUUM INTO $1`, path)
	_, again := conn.ExecContext(context.WithoutCancel(ctx), `PRAGMA query_only = 1`)
	return errors.Join(err, again)
}
