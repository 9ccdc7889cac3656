package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// accountQuota bounds what an account's jobs hold.
func (a app) accountQuota() *cobra.Command {
	var q registry.JobQuota
	cmd := &cobra.Command{
		Use: "quota NAME [--gpus N] [--jobs N] [--profiles A,B]", Short: "Bound what an account's jobs hold at a time", Args: cobra.ExactArgs(1),
		Long: `Bound what an account's jobs hold at a time, in place of what bounded it before. What is not named has no limit. Jobs that run go
on; the account submits no more until it holds less. What owners may store is sf admin quota's.`,
		Example: "  sf admin account quota alice --gpus 64 --jobs 10 --profiles h200,a100",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			if q.Profiles == nil {
				q.Profiles = []string{}
			}
			if err := c.SetJobQuota(cmd.Context(), args[0], q); err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(q)
			}
			fmt.Fprintf(a.env.Err, "the jobs of %s may hold %s GPUs at a time, be %s jobs, and use %s\n", printable(args[0]), limitText(q.MaxGPUs), limitText(q.MaxJobs), profilesText(q.Profiles))
			return nil
		},
	}
	cmd.Flags().Int64Var(&q.MaxGPUs, "gpus", 0, "GPUs over all jobs; 0 is no limit")
	cmd.Flags().Int64Var(&q.MaxJobs, "jobs", 0, "jobs; 0 is no limit")
	cmd.Flags().StringSliceVar(&q.Profiles, "profiles", nil, "hardware profiles that the account may use; all unless named")
	return cmd
}

func limitText(n int64) string {
	if n == 0 {
		return "any number of"
	}
	return fmt.Sprint(n)
}

func profilesText(names []string) string {
	if len(names) == 0 {
		return "all profiles"
	}
	return fmt.Sprintf("the profiles %s", printable(fmt.Sprint(names)))
}

// jobReport is for whoever runs jobs.
func (a app) jobReport() *cobra.Command {
	return &cobra.Command{
		Use: "report JOB STATE", Short: "Say how far a job has come: queued, running, succeeded, failed, cancelled", Args: cobra.ExactArgs(2),
		Long: `Say how far a job has come, as the platform that runs it. A job holds its GPUs against its account's quota for a day from
its admission or its last report of queued or running; the other states end that, for good. An administrator may, and a
robot of an administrator whose scope has the action report.`,
		Example: "  sf admin report run-20261130-101500-0a1b2c3d running",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			state, err := c.ReportJob(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(state)
			}
			until := "and holds no GPUs"
			if state.LeaseUntil != "" {
				until = "and holds its GPUs until " + printable(state.LeaseUntil)
			}
			fmt.Fprintf(a.env.Out, "%s is %s %s\n", printable(state.RunID), printable(state.Status), until)
			return nil
		},
	}
}
