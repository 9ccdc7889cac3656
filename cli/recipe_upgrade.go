package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/lock"
)

// upgradeFlags say how far an upgrade may go.
type upgradeFlags struct {
	version string
	accept  bool
}

func (f *upgradeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.version, "framework-version", "", "move to this framework version (default: the locked one)")
	cmd.Flags().BoolVar(&f.accept, "accept-runtime-change", false, "take the default framework version where the locked one is gone")
}

func (f upgradeFlags) upgrade() lock.Upgrade {
	return lock.Upgrade{FrameworkVersion: f.version, AcceptRuntimeChange: f.accept}
}

// recipeUpgrade brings recipe locks to the catalogue.
func (a app) recipeUpgrade() *cobra.Command {
	var flags experimentFlags
	var up upgradeFlags
	var dry bool
	cmd := &cobra.Command{
		Use:   "upgrade {EXPERIMENT | --all} [--framework-version VERSION] [--accept-runtime-change] [--dry-run]",
		Short: "Bring recipe locks to the catalogue", Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeExperiments,
		Long: `Write the recipe lock of an experiment anew, as the catalogue has the recipe now; the framework version stays unless another
is named. With --all every lock that is not current is written, or none: one that can't be upgraded stops all, and so does a
write that fails. A lock that can't be read, or whose recipe excludes this client release, is not upgraded. The bytes are
those that the real client writes.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if (len(args) == 0) != flags.all {
				return usagef("name an experiment, or say --all")
			}
			p, c, err := flags.open(a)
			if err != nil {
				return err
			}
			if flags.all {
				items, err := p.UpgradeAll(c, up.upgrade(), dry)
				if err != nil {
					return err
				}
				return a.printUpgraded(items, dry)
			}
			e, err := p.Experiment(args[0])
			if err != nil {
				return err
			}
			plan, err := e.PlanUpgrade(c, "", up.upgrade())
			if err != nil {
				return err
			}
			if !dry {
				if err := e.WriteRecipeLock(plan.Text); err != nil {
					return err
				}
			}
			return a.printUpgraded([]lock.Inspection{plan.Inspection}, dry)
		},
	}
	flags.add(cmd)
	up.add(cmd)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would change and write nothing")
	return cmd
}

func (a app) printUpgraded(items []lock.Inspection, dry bool) error {
	if a.opt.json {
		return a.env.writeJSON(map[string]any{"locks": items, "dry_run": dry})
	}
	for _, i := range items {
		a.printInspection(i.Path, i)
	}
	did := "upgraded"
	if dry {
		did = "would upgrade"
	}
	_, err := fmt.Fprintf(a.env.Out, "%s %d locks\n", did, len(items))
	return err
}

// recipeDiff shows what an upgrade would change, in the lock and in what the experiment depends on.
func (a app) recipeDiff() *cobra.Command {
	var flags experimentFlags
	var up upgradeFlags
	cmd := &cobra.Command{
		Use: "diff EXPERIMENT [--framework-version VERSION]", Short: "Show what an upgrade of a recipe lock would change", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.completeExperiments,
		Long: `Show what sf recipe upgrade would change: the recorded fields, the parameters that the lock binds, and what the experiment
depends on and the catalogue no longer offers. Nothing is written.`,
		RunE: func(_ *cobra.Command, args []string) error {
			p, c, err := flags.open(a)
			if err != nil {
				return err
			}
			e, err := p.Experiment(args[0])
			if err != nil {
				return err
			}
			now := e.Inspect(c, "")
			plan, err := e.PlanUpgrade(c, "", up.upgrade())
			if err != nil {
				return err
			}
			bound := lock.DiffBindings(now.Lock(), plan.Lock)
			if a.opt.json {
				return a.env.writeJSON(map[string]any{"experiment": e.Path, "state": now.State, "changes": plan.Changes, "bindings": bound, "breaks": now.Breaks})
			}
			for _, c := range plan.Changes {
				fmt.Fprintf(a.env.Out, "%s: %s -> %s\n", c.Field, orDash(printable(c.Locked)), orDash(printable(c.Current)))
			}
			for _, c := range bound {
				fmt.Fprintf(a.env.Out, "%s: %s -> %s\n", printable(c.Field), orDash(printable(c.Locked)), orDash(printable(c.Current)))
			}
			for _, b := range now.Breaks {
				fmt.Fprintf(a.env.Out, "! %s\n", printable(b))
			}
			if len(plan.Changes)+len(bound) == 0 {
				fmt.Fprintln(a.env.Err, "nothing would change")
			}
			return nil
		},
	}
	flags.projectFlags.add(cmd)
	flags.releaseFlag.add(cmd)
	up.add(cmd)
	return cmd
}
