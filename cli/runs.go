package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// runs are what nodes launched, and what launches had to say.
func (a app) runs() *cobra.Command {
	cmd := &cobra.Command{
		Use: "runs", Short: "Runs of jobs on nodes: which used a version, what they say", Args: cobra.NoArgs,
		Long: `Runs are launches of jobs, each on one node, as its launch agent recorded them. An account sees the runs of its own jobs,
administrators and auditors all; the owner of a pack sees that runs of others used it, and nothing else of them.`,
	}
	cmd.AddCommand(a.runsList(), a.runsShow(), a.runsSend())
	return cmd
}

func (a app) runsList() *cobra.Command {
	var q wire.RunQuery
	var all bool
	cmd := &cobra.Command{
		Use: "ls [--plugin OWNER/NAME@VERSION] [--digest D] [--job ID] [--node NAME] [--state STATE]", Short: "List runs, newest first, with what they used", Args: cobra.NoArgs,
		Example: "  sf runs ls --plugin alice/p@1.2.0 --all    # every run that used it, and what else it used",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Plugin != "" {
				ref, err := parseRef(q.Plugin)
				if err != nil {
					return err
				}
				if ref.Version == "" {
					return usagef("--plugin names one version: %s@VERSION", ref)
				}
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			list, err := allRuns(cmd.Context(), c, q, all)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(list)
			}
			return a.printRuns(list, q)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.Plugin, "plugin", "", "runs that used this version, OWNER/NAME@VERSION")
	flags.StringVar(&q.Digest, "digest", "", "runs that used a pack with this content, tree or manifest digest")
	flags.StringVar(&q.Job, "job", "", "runs of this job")
	flags.StringVar(&q.Node, "node", "", "runs on this node")
	flags.StringVar(&q.State, "state", "", "started, ended or refused")
	flags.IntVar(&q.Limit, "limit", 0, "how many at a time, at most 200 (default 50)")
	flags.StringVar(&q.Cursor, "cursor", "", "go on behind the page that ended with this cursor")
	flags.BoolVar(&all, "all", false, "every page")
	completeFlag(cmd, "state", []string{"started", "ended", "refused"})
	return cmd
}

// allRuns is a page of runs, or all of them.
func allRuns(ctx context.Context, c *client.Client, q wire.RunQuery, all bool) (wire.RunList, error) {
	out := wire.RunList{Runs: []wire.Run{}}
	for {
		page, err := c.Runs(ctx, q)
		if err != nil {
			return out, err
		}
		out.Runs, out.Next = append(out.Runs, page.Runs...), page.Next
		if !all || page.Next == "" || page.Next == q.Cursor {
			return out, nil
		}
		q.Cursor = page.Next
	}
}

func (a app) printRuns(list wire.RunList, q wire.RunQuery) error {
	w := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSTATE\tEXIT\tNODE\tJOB\tWHEN\tUSED")
	for _, run := range list.Runs {
		packs := make([]string, len(run.Packs))
		for i, p := range run.Packs {
			packs[i] = printable(p.String())
		}
		node := run.Node
		if !run.Attested && node != "" {
			node += " (self-asserted)"
		}
		began := run.StartedAt
		if began == "" {
			began = run.EndedAt
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", printable(run.ID), printable(run.State), exitText(run.ExitCode), orDash(printable(node)),
			orDash(printable(run.Job)), orDash(printable(began)), orDash(strings.Join(packs, " ")))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if list.Next != "" {
		fmt.Fprintf(a.env.Err, "there are more: --all, or --cursor %s\n", printable(list.Next))
	}
	return nil
}

func exitText(code *int) string {
	if code == nil {
		return "-"
	}
	return strconv.Itoa(*code)
}

func (a app) runsShow() *cobra.Command {
	var keys string
	cmd := &cobra.Command{
		Use: "show RUN [--keys FILE]", Short: "Show one run and verify what its node signed", Args: cobra.ExactArgs(1),
		Long: `Show one run. Its statements are verified here with the node's keys: those that the registry names, or with --keys FILE those of
a file in PEM, so that the registry need not be believed. A statement that no such key signed is shown as self-asserted when it
calls itself that or nobody says which keys the node has, and else ends the command with exit code 7.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			run, err := c.Run(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			shown := shownRun{Run: run}
			trusted, err := a.runKeys(run, keys)
			if err == nil {
				shown.Verified, err = verifyRun(run, trusted, keys != "")
			}
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(shown)
			}
			return printRun(a.env.Out, shown)
		},
	}
	cmd.Flags().StringVar(&keys, "keys", "", "the node's public keys, in PEM, instead of those that the registry names")
	return cmd
}

// shownRun is a run with which of its statements were verified.
type shownRun struct {
	wire.Run
	Verified []verifiedStatement `json:"verified"`
}

// verifiedStatement says who signed a statement of a run.
type verifiedStatement struct {
	State string `json:"state"`
	Key   string `json:"key"` // the id of the key that verified it; "" when none did
}

// runKeys are the keys with which a run's statements are verified.
func (a app) runKeys(run wire.Run, file string) (receipt.TrustSet, error) {
	if file != "" {
		return a.env.trust(file)
	}
	var text strings.Builder
	for _, k := range run.Keys {
		text.WriteString(k.PublicKey)
	}
	if text.Len() == 0 {
		return receipt.TrustSet{}, nil
	}
	return receipt.ParseTrust([]byte(text.String()))
}

// verifyRun verifies each statement of a run. One that the registry calls attested, and that no key signed, is an error; so is any
// that none of the keys signed which somebody named.
func verifyRun(run wire.Run, keys receipt.TrustSet, named bool) ([]verifiedStatement, error) {
	out := []verifiedStatement{}
	for _, e := range run.Envelopes {
		said, err := runrecord.Read(e.Envelope)
		if err != nil {
			return nil, unverified("statement %q: %w", e.State, err)
		}
		if said.Predicate.Run != run.ID {
			return nil, unverified("the registry answered with a statement of run %.64q", said.Predicate.Run)
		}
		v := verifiedStatement{State: e.State}
		if !keys.Empty() {
			if _, v.Key, err = runrecord.Open(e.Envelope, keys); err != nil && (named || run.Attested) {
				return nil, unverified("statement %q: %w", e.State, err)
			}
		} else if run.Attested {
			return nil, unverified("the registry calls the run attested and names no key of its node")
		}
		out = append(out, v)
	}
	return out, nil
}

// unverified is the error of what does not prove what it says.
func unverified(format string, args ...any) error {
	return registry.Errorf(registry.DigestInvalid, format, args...)
}

func printRun(w io.Writer, run shownRun) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, printable(value))
		}
	}
	row("run", run.ID)
	row("state", run.State)
	row("job", run.Job)
	row("account", run.Account)
	row("node", run.Node)
	row("told by", run.Sender)
	for _, v := range run.Verified {
		row("said it "+map[string]string{"started": "started", "ended": "ended", "refused": "was refused"}[v.State], signedBy(v, run.Run))
	}
	row("protection", run.Mode)
	row("started", run.StartedAt)
	row("ended", run.EndedAt)
	row("exit", exitText(run.ExitCode))
	if n := len(run.Envelopes); n > 0 {
		printStatement(row, run.Envelopes[n-1].Envelope)
	}
	for i, p := range run.Packs {
		name := ""
		if i == 0 {
			name = "used"
		}
		fmt.Fprintf(t, "%s\t%s  content %s\n", name, printable(p.String()), printable(p.Content.String()))
	}
	return t.Flush()
}

// signedBy says who vouches for a statement.
func signedBy(v verifiedStatement, run wire.Run) string {
	switch {
	case v.Key == "":
		return "self-asserted: none of the node's keys signed it"
	case !run.Attested:
		return "verified: signed with " + v.Key + ", which others than root could use (self-asserted)"
	}
	return "verified: signed with " + v.Key + " of node " + run.Node
}

// printStatement shows what the newest statement says beyond what the index knows.
func printStatement(row func(name, value string), envelope []byte) {
	said, err := runrecord.Read(envelope)
	if err != nil {
		return // verifyRun has said so
	}
	p := said.Predicate
	row("command", strings.Join(p.Command, " "))
	row("training", trainingText(p.Training))
	row("problem", p.Problem)
	if p.Decision != nil {
		for _, v := range p.Decision.Violations {
			row("refused", string(v.Rule)+": "+v.Message)
		}
	}
	if d := p.DenyList; d != nil {
		row("deny list", fmt.Sprintf("number %d from %s %s", d.Number, d.Source, d.Problem))
	}
}

func trainingText(t runrecord.Training) string {
	if !t.Seen {
		return "no training process was seen"
	}
	return "a training process was seen (" + t.How + ")"
}
