package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// handover shows and mends what is on its way to the platforms that run jobs.
func (a app) handover() *cobra.Command {
	cmd := &cobra.Command{Use: "handover", Short: "What goes to the platforms that run jobs, and what did not get there", Args: cobra.NoArgs}
	cmd.AddCommand(a.handoverList(), a.handoverShow(), a.handoverRetry())
	return cmd
}

func (a app) handoverList() *cobra.Command {
	var f registry.HandoverFilter
	var state string
	cmd := &cobra.Command{
		Use: "ls [--state STATE] [--target NAME] [--job ID] [--limit N]", Short: "List events, those of the newest job first", Args: cobra.NoArgs,
		Long:    "List events about jobs with how far each has come: pending, delivered, dead (given up) or withdrawn (the job was stopped first).",
		Example: "  sf admin handover ls --state dead",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			f.State = registry.HandoverState(state)
			rows, err := c.Handovers(cmd.Context(), f)
			if err != nil {
				return err
			}
			return a.showHandovers(rows, rows)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "pending, delivered, dead or withdrawn")
	cmd.Flags().StringVar(&f.Target, "target", "", "a target of the configuration")
	cmd.Flags().StringVar(&f.Job, "job", "", "the id of a job")
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "how many, at most 200")
	cmd.Flags().StringVar(&f.Before, "before", "", "the last id of the page before")
	return cmd
}

func (a app) handoverShow() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show one event, with the error of its last try", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			h, err := c.Handover(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(h)
			}
			t := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			for _, line := range [][2]string{
				{"id", h.ID}, {"job", h.Job}, {"event", h.Event}, {"target", h.Target}, {"state", h.State}, {"tries", fmt.Sprint(h.Tries)},
				{"created", h.CreatedAt}, {"next try", h.DueAt}, {"tried until", h.HeldUntil}, {"ended", h.EndedAt}, {"last error", h.LastError},
			} {
				if line[1] != "" {
					fmt.Fprintf(t, "%s\t%s\n", line[0], printable(line[1]))
				}
			}
			return t.Flush()
		},
	}
}

func (a app) handoverRetry() *cobra.Command {
	var which wire.HandoverRetry
	cmd := &cobra.Command{
		Use: "retry ID | --target NAME | --all", Short: "Try events again that were given up", Args: cobra.MaximumNArgs(1),
		Long: `Try an event again at once, or all events of a target, or of every target, that were given up. Each then has as much time as a new
one. The platform gets it under the same id, so that one that it had taken after all is known to it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				which.ID = args[0]
			}
			named := 0
			for _, set := range []bool{which.ID != "", which.Target != "", which.All} {
				if set {
					named++
				}
			}
			if named != 1 {
				return usagef("give an ID, --target or --all")
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			n, err := c.RetryHandovers(cmd.Context(), which)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(wire.HandoversRetried{Retried: n})
			}
			_, err = fmt.Fprintf(a.env.Out, "%d to be tried again\n", n)
			return err
		},
	}
	cmd.Flags().StringVar(&which.Target, "target", "", "all of this target that were given up")
	cmd.Flags().BoolVar(&which.All, "all", false, "all that were given up")
	return cmd
}

// showHandovers prints a table to people and asJSON to programs.
func (a app) showHandovers(rows []wire.Handover, asJSON any) error {
	if a.opt.json {
		return a.env.writeJSON(asJSON)
	}
	t := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSTATE\tTRIES\tCREATED\tLAST ERROR")
	for _, h := range rows {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", printable(h.ID), printable(h.State), h.Tries, printable(h.CreatedAt), printable(short(h.LastError)))
	}
	return t.Flush()
}

// short is a text as a table has room for it.
func short(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
