package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// recipeSync brings what was published onto this computer.
func (a app) recipeSync() *cobra.Command {
	var flags projectFlags
	var release releaseFlag
	var home string
	var prune bool
	cmd := &cobra.Command{
		Use: "sync [--home DIR] [--prune]", Short: "Fetch the server's catalogue and the packs that were published", Args: cobra.NoArgs,
		Long: `Ask the server which methods there are, keep its answer, and fetch the recipe, benchmark, playbook and prompt packs that every
client has: new ones and newer ones, each verified. Packs that the server no longer offers are named, and removed with --prune.
With --home DIR the packs of a real client are brought up to date instead: ~/.forge, ~/.tuneplane, or what FORGE_HOME or
TUNEPLANE_HOME names.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := a.chosenDialect(flags)
			if err != nil {
				return err
			}
			return a.syncPacks(cmd.Context(), d, release.of(d), home, prune)
		},
	}
	flags.add(cmd)
	release.add(cmd)
	cmd.Flags().StringVar(&home, "home", "", "the folder of a client whose packs are synced")
	cmd.Flags().BoolVar(&prune, "prune", false, "remove packs that the server no longer offers")
	return cmd
}

func (a app) syncPacks(ctx context.Context, d dialect.Dialect, release, home string, prune bool) error {
	c, _, err := a.env.client()
	if err != nil {
		return err
	}
	c = c.For(d, release)
	shelf, err := c.Shelf(ctx)
	if err != nil {
		return err
	}
	if home == "" {
		if _, unkept, err := a.serverCatalogue(ctx, d, release); err != nil || unkept != nil {
			return errors.Join(err, unkept)
		}
		if home, err = a.packHome(d); err != nil {
			return err
		}
	}
	if home, err = filepath.Abs(home); err != nil {
		return err
	}
	out, err := client.SyncPacks(ctx, shelf, client.SyncOptions{Home: home, Prune: prune, Fetch: c.OpenPack})
	if err != nil {
		return err
	}
	if err := a.showSynced(out, len(shelf), home); err != nil {
		return err
	}
	if n := len(out.Failed); n > 0 {
		return fmt.Errorf("%d of %d packs could not be synced: what was there of them before is there still", n, len(shelf))
	}
	return nil
}

func (a app) showSynced(out client.Synced, n int, home string) error {
	for _, f := range out.Failed {
		fmt.Fprintf(a.env.Err, "  %s %s: %s\n", a.env.paint(yellow, "failed:"), printable(f.Pack), printable(f.Reason))
	}
	if a.opt.json {
		return a.env.writeJSON(out)
	}
	for _, part := range []struct {
		what string
		list []string
	}{{"added", out.Added}, {"updated", out.Updated}, {"removed", out.Removed}, {"not offered any more (--prune removes them):", out.Left}} {
		if len(part.list) > 0 {
			fmt.Fprintf(a.env.Out, "%s %s\n", part.what, printable(strings.Join(part.list, ", ")))
		}
	}
	_, err := fmt.Fprintf(a.env.Out, "%d packs in %s\n", n-len(out.Failed), home)
	return err
}
