package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// job holds the verbs about jobs that were submitted.
func (a app) job() *cobra.Command {
	cmd := &cobra.Command{
		Use: "job", Short: "List, read and stop the jobs that you submitted",
		Long: `List, read and stop jobs. ID is a job's id, the beginning of one that no other of your last jobs has, or the name of
an experiment that was submitted once. The registry knows that a job was admitted and whether its GPUs are still
held; what it does on the cluster the platform knows.`,
	}
	cmd.AddCommand(a.jobList(), a.jobStatus(), a.jobStop(), a.jobDecision(), a.jobReceipt(), a.jobSpec())
	return cmd
}

// jobList lists the last jobs.
func (a app) jobList() *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List your last jobs, the newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 || n > maxJobs {
				return usagef("--limit %d: expected 1 to %d", n, maxJobs)
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			jobs, err := c.Jobs(cmd.Context(), n)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(wire.JobList{Jobs: jobs})
			}
			t := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(t, "JOB\tEXPERIMENT\tSTATUS\tGPUS\tSUBMITTED")
			for _, j := range jobs {
				fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", printable(j.RunID), printable(j.Exp), printable(j.Status), j.GPUs, printable(j.SubmittedAt))
			}
			return t.Flush()
		},
	}
	cmd.Flags().IntVar(&n, "limit", 15, "how many")
	return cmd
}

// maxJobs is how many jobs the server lists at most.
const maxJobs = 200

// onJob is a verb about one job.
func (a app) onJob(use, short string, run func(ctx context.Context, c *client.Client, id string) error) *cobra.Command {
	return &cobra.Command{
		Use: use + " ID", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			id, err := findJob(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return run(cmd.Context(), c, id)
		},
	}
}

// findJob is the id of the job that a text means.
func findJob(ctx context.Context, c *client.Client, text string) (string, error) {
	if text == "" || strings.ContainsAny(text, "/?#%") {
		return "", usagef("%.80q is no job's id", text)
	}
	jobs, err := c.Jobs(ctx, maxJobs)
	if err != nil {
		return "", err
	}
	var found []string
	for _, j := range jobs {
		switch {
		case j.RunID == text:
			return text, nil
		case strings.HasPrefix(j.RunID, text) || j.Name == text || j.Exp == text:
			found = append(found, j.RunID)
		}
	}
	switch len(found) {
	case 0:
		return text, nil // of somebody else, or older: the server knows
	case 1:
		return found[0], nil
	}
	return "", registry.Errorf(registry.Invalid, "%.80q means several jobs: %s; name one by its id", text, someOf(found, 5))
}

// completeJobs offers the ids of the last jobs.
func (a app) completeJobs(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, _, err := a.env.client()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	jobs, err := c.Jobs(ctx, maxJobs)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var ids []cobra.Completion
	for _, j := range jobs {
		if strings.HasPrefix(j.RunID, prefix) {
			ids = append(ids, cobra.CompletionWithDesc(j.RunID, printable(j.Exp+" "+j.Status)))
		}
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func (a app) jobStatus() *cobra.Command {
	return a.onJob("status", "Show one job", func(ctx context.Context, c *client.Client, id string) error {
		job, err := c.Job(ctx, id)
		if err != nil {
			return err
		}
		if a.opt.json {
			return a.env.writeJSON(job)
		}
		for _, row := range [][2]string{
			{"job", job.RunID}, {"status", job.Status}, {"experiment", job.Exp}, {"owner", job.Owner}, {"dialect", string(job.Dialect)},
			{"GPUs", fmt.Sprint(job.GPUs)}, {"submitted", job.SubmittedAt}, {"spec", job.SpecDigest}, {"package", job.Package},
		} {
			if row[1] == "" {
				continue
			}
			if _, err := fmt.Fprintf(a.env.Out, "%-11s %s\n", row[0], printable(row[1])); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a app) jobStop() *cobra.Command {
	return a.onJob("stop", "Stop a job: its GPUs are no longer held, and nobody launches it from then on", func(ctx context.Context, c *client.Client, id string) error {
		status, err := c.StopJob(ctx, id)
		if err != nil {
			return err
		}
		if a.opt.json {
			return a.env.writeJSON(map[string]string{"run_id": id, "status": status})
		}
		_, err = fmt.Fprintf(a.env.Out, "%s is %s\n", id, printable(status))
		return err
	})
}

func (a app) jobDecision() *cobra.Command {
	return a.onJob("decision", "Show what the gate decided on a job", func(ctx context.Context, c *client.Client, id string) error {
		job, err := c.Job(ctx, id)
		if err != nil {
			return err
		}
		if a.opt.json {
			return a.env.writeJSON(job.Decision)
		}
		var d rule.Decision
		if err := json.Unmarshal(job.Decision, &d); err != nil {
			return fmt.Errorf("the decision on %s can't be read: %w", id, err)
		}
		return a.printDecision(d)
	})
}

func (a app) jobReceipt() *cobra.Command {
	var file string
	cmd := a.onJob("receipt", "Fetch the signed receipt of a job", func(ctx context.Context, c *client.Client, id string) error {
		return a.document(file, func() ([]byte, error) { return c.Receipt(ctx, id) })
	})
	cmd.Flags().StringVarP(&file, "output", "o", "", "write it to this file; default: stdout")
	return cmd
}

func (a app) jobSpec() *cobra.Command {
	var file string
	cmd := a.onJob("spec", "Fetch the stored JobSpec of a job, byte for byte as the receipt pins it", func(ctx context.Context, c *client.Client, id string) error {
		return a.document(file, func() ([]byte, error) { return c.JobSpec(ctx, id) })
	})
	cmd.Flags().StringVarP(&file, "output", "o", "", "write it to this file; default: stdout")
	return cmd
}

// document writes a document as it is, to a file or to stdout.
func (a app) document(file string, fetch func() ([]byte, error)) error {
	text, err := fetch()
	if err != nil {
		return err
	}
	if file != "" {
		return durable.Replace(file, text, 0o644)
	}
	_, err = a.env.Out.Write(text)
	return err
}
