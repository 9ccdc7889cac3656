package metastore

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// migrations holds a folder per engine. A file that was released is never changed; the schema only goes forward.
//
//go:embed migrations
var migrations embed.FS

// migrate brings the schema up to date. Two processes may do so at once: each migration is one transaction, so the
// loser of a race fails without effect and then finds it done.
func migrate(ctx context.Context, db *sql.DB, d *engine) error {
	folder, err := fs.Sub(migrations, "migrations/"+d.name)
	if err != nil {
		return err
	}
	if whole, err := applied(ctx, db, folder); err != nil || whole {
		return err
	}
	provider, err := goose.NewProvider(d.goose, db, folder, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	for attempt := range attempts {
		if _, err = provider.Up(ctx); err == nil || ctx.Err() != nil {
			break
		}
		time.Sleep(firstPause << attempt)
	}
	if err != nil {
		return fmt.Errorf("migrate the schema: %w", err)
	}
	current, known, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the version of the schema: %w", err)
	}
	if current > known {
		return registry.Errorf(registry.Unsupported, "the metadata has schema %d, this program knows schema %d at most: run the newer program", current, known)
	}
	return nil
}

// applied reports whether the schema is the one that this program knows, which is so at nearly every start, by one query.
func applied(ctx context.Context, db *sql.DB, folder fs.FS) (bool, error) {
	files, err := fs.ReadDir(folder, ".")
	if err != nil {
		return false, err
	}
	var newest int64
	for _, f := range files {
		version, err := goose.NumericComponent(f.Name())
		if err != nil {
			return false, err
		}
		newest = max(newest, version)
	}
	var count, current int64
	err = db.QueryRowContext(ctx, `SELECT COUNT(DISTINCT version_id), COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE version_id > 0`).Scan(&count, &current)
	// When the query fails, there is no schema yet or the database is away: goose finds out which.
	return err == nil && count == int64(len(files)) && current == newest, nil
}
