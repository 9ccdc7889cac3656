package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
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
--save the stored spec and the receipt are written to DIR/jobspec.json and DIR/receipt.json, which is what sf launch
wants. With --dry-run the gate decides and nothing is stored.`,
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
				if err := saveJob(cmd, c, job.RunID, save); err != nil {
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
	cmd.Flags().StringVar(&save, "save", "", "write the stored spec and the receipt below this directory")
	return cmd
}

// saveJob writes what a launch needs.
func saveJob(cmd *cobra.Command, c *client.Client, id, dir string) error {
	spec, err := c.JobSpec(cmd.Context(), id)
	if err != nil {
		return err
	}
	receipt, err := c.Receipt(cmd.Context(), id)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "jobspec.json"), spec, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "receipt.json"), receipt, 0o644)
}
