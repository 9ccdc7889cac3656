package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// pluginDisable keeps new jobs from using versions.
func (a app) pluginDisable() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "disable OWNER/NAME[@VERSION]", Short: "Keep new jobs from using a version (administrators)", Args: cobra.ExactArgs(1), ValidArgsFunction: a.completePlugins,
		Long: `Keep new jobs from using a version; without a version all versions are meant. What uses it at this moment is counted, and goes on: jobs
that were admitted before still launch. The reason stands in what sf plugin info shows and in the refusal of a new job. A version
that must not run at all is revoked (sf plugin revoke).`,
		Example: "  sf plugin disable alice/p@1.2.0 --reason \"diverges on bf16\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := parseRef(args[0])
			if err != nil {
				return err
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			out, err := c.SetEnabled(cmd.Context(), id(ref), ref.Version, false, reason)
			if err != nil {
				return fmt.Errorf("%s: %w", ref, err)
			}
			if a.opt.json {
				return a.env.writeJSON(out)
			}
			if _, err = fmt.Fprintf(a.env.Out, "disabled %s (versions: %d)\n", ref, out.Affected); err != nil || out.Use == nil {
				return err
			}
			return printUse(a.env.Out, *out.Use, "they go on", fmt.Sprintf("sf runs ls --plugin %s", ref), ref.Version != "")
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, on one line, for whoever is refused it")
	return cmd
}

// printUse says how much a version is in use, what becomes of that, and how to see which.
func printUse(w io.Writer, u wire.PackUse, then, see string, seeable bool) error {
	var parts []string
	for _, part := range []struct {
		n    int64
		what string
	}{
		{u.QueuedJobs, "queued jobs"}, {u.RunningJobs, "running jobs"}, {u.SilentJobs, "jobs not heard of for long"},
		{u.ActiveRuns, "runs on nodes"}, {u.SilentRuns, "runs not heard of for long"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if len(parts) == 0 {
		parts = []string{"no job and no run"}
		then = ""
	}
	line := "in use by " + strings.Join(parts, ", ")
	if then != "" {
		line += "; " + then
	}
	if u.Runs > 0 && seeable {
		line += fmt.Sprintf("\nruns that ever used it: %d (%s)", u.Runs, see)
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// pluginRevoke makes a version one that must not be used any more.
func (a app) pluginRevoke() *cobra.Command {
	var reason string
	var yes bool
	cmd := &cobra.Command{
		Use: "revoke OWNER/NAME@VERSION --reason TEXT [--yes]", Short: "Keep a version from running at all, for good (administrators)", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.completePlugins,
		Long: `Revoke a version, for good. No new job is admitted with it; a job that was admitted before is refused when it is launched, on
every node that reads the registry's deny list; its files are given to administrators and auditors only; and nobody publishes the
same files again under another name. Every other version with the same files is revoked with it. What it was, its name and its
digests go on to say. Jobs that run at this moment are not stopped: they are counted.`,
		Example: "  sf plugin revoke alice/p@1.2.0 --reason \"sends the weights away\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := parseRef(args[0])
			switch {
			case err != nil:
				return err
			case ref.Version == "":
				return usagef("a revocation names one version: %s@VERSION", ref)
			case strings.TrimSpace(reason) == "":
				return usagef("--reason is required: whoever is refused the version reads it")
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			if !yes {
				if err := a.ask(cmd.Context(), fmt.Sprintf("Revoke %s for good?", ref), "revoke with --yes"); err != nil {
					return err
				}
			}
			out, err := c.Revoke(cmd.Context(), id(ref), ref.Version, reason)
			if err != nil {
				return fmt.Errorf("%s: %w", ref, err)
			}
			if a.opt.json {
				return a.env.writeJSON(out)
			}
			return printRevoked(a.env.Out, out)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, on one line, for whoever is refused it")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "revoke without asking")
	return cmd
}

func printRevoked(w io.Writer, out wire.Revoked) error {
	fmt.Fprintf(w, "revoked %s@%s (deny list %d): %s\n", printable(out.ID), printable(out.Version), out.DenyList, printable(out.Reason))
	for _, other := range out.Same {
		fmt.Fprintf(w, "revoked %s: the same files\n", printable(other))
	}
	return printUse(w, out.Use, "what is queued is refused when it is launched, what runs is not stopped",
		fmt.Sprintf("sf runs ls --plugin %s@%s", printable(out.ID), printable(out.Version)), true)
}
