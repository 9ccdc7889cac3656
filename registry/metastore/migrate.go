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
