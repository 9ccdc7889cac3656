package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// submit sends a JobSpec to gate 2.
func (a app) submit() *cobra.Command {
	var dry bool
	var save string
	cmd := &cobra.Command{
		Use:   "submit FILE [--dry-run] [--save DIR]",
		Short: "Submit a JobSpec of either dialect",
		Long: `Submit a JobSpec. The registry answers with its decision; an admitted job is stored with a signed receipt. With
--save the job directory DIR gets the stored spec, in .starforge/ or .tuneplane/, and the receipt is written beside it
to DIR.receipt.json, where sf launch finds both. With --dry-run the gate decides and nothing is stored.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			spec, err := readFile(args[0], limit.Document+1)
			if err != nil {
				return err
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			if dry {
				d, err := c.DryRun(cmd.Context(), spec)
				if err != nil {
					return err
				}
				return a.printDecision(d)
			}
			job, err := c.Submit(cmd.Context(), spec)
			if err != nil {
				return err
			}
			if save != "" {
				if err := saveJob(cmd.Context(), c, job.RunID, save); err != nil {
					return err
				}
			}
			if a.opt.json {
				return a.env.writeJSON(job)
			}
			for _, w := range job.Warnings {
				fmt.Fprintf(a.env.Err, "  %s %s\n", a.env.paint(yellow, "warning:"), w)
			}
			_, err = fmt.Fprintf(a.env.Out, "admitted %s, %d GPUs, spec %s\n", job.RunID, job.GPUs, job.SpecDigest)
			return err
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "ask the gate and store nothing")
	cmd.Flags().StringVar(&save, "save", "", "write the stored spec and the receipt of an admitted job for this job directory")
	return cmd
}

// saveJob lays out what a launch reads: the spec in the dialect's folder of the job directory, the receipt beside it,
// never inside (design.md 6).
func saveJob(ctx context.Context, c *client.Client, id, dir string) error {
	job, err := c.Job(ctx, id)
	if err != nil {
		return err
	}
	spec, err := c.JobSpec(ctx, id)
	if err != nil {
		return err
	}
	signed, err := c.Receipt(ctx, id)
	if err != nil {
		return err
	}
	folder := filepath.Join(dir, job.Dialect.Names().SpecDir)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := durable.Replace(filepath.Join(folder, "jobspec.json"), spec, 0o644); err != nil {
		return err
	}
	return durable.Replace(filepath.Clean(dir)+receipt.Suffix, signed, 0o644)
}
