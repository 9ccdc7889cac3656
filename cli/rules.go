package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// ruleRow is a rule as programs read it.
type ruleRow struct {
	ID         rule.ID           `json:"id"`
	Title      string            `json:"title"`
	Fix        string            `json:"fix"`
	Source     string            `json:"source"`
	Gates      []rule.Gate       `json:"gates"`
	Dialects   []dialect.Dialect `json:"dialects"`
	Warns      bool              `json:"warns"`      // a breach only warns
	Softenable bool              `json:"softenable"` // an administrator may turn it into a warning
}

func newRuleRow(i rule.Info) ruleRow {
	row := ruleRow{ID: i.ID, Title: i.Title, Fix: i.Fix, Source: i.Source, Gates: i.Gates, Dialects: i.Dialects, Warns: i.Severity == rule.Warn, Softenable: i.Softenable()}
	if len(row.Dialects) == 0 {
		row.Dialects = dialect.All
	}
	return row
}

// effect is what a breach does, in a word or two.
func (r ruleRow) effect() string {
	switch {
	case r.Warns:
		return "warns"
	case r.Softenable:
		return "refuses*"
	}
	return "refuses"
}

// rules lists what the gates check.
func (a app) rules() *cobra.Command {
	return &cobra.Command{
		Use: "rules [ID|FAMILY]", Short: "List the rules of the gates, or explain one", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeRules,
		Long: `List the rules of the gates: those whose id is, or begins with, what is named. One rule alone is explained. A rule marked
refuses* is stricter than the platforms' own clients; warn_rules in the server's configuration, and --warn here, turn it
into a warning.`,
		RunE: func(_ *cobra.Command, args []string) error {
			rows := []ruleRow{}
			for _, info := range rule.All() {
				if len(args) == 0 || info.ID == rule.ID(args[0]) || strings.HasPrefix(string(info.ID), args[0]+".") {
					rows = append(rows, newRuleRow(info))
				}
			}
			switch {
			case len(rows) == 0:
				return registry.Errorf(registry.NotFound, "no rule is called %.100q", args[0])
			case a.opt.json:
				return a.env.writeJSON(rows)
			case len(rows) == 1:
				return a.explain(rows[0])
			}
			t := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(t, "RULE\tA BREACH\tWHAT HOLDS")
			for _, r := range rows {
				fmt.Fprintf(t, "%s\t%s\t%s\n", r.ID, r.effect(), r.Title)
			}
			return t.Flush()
		},
	}
}

func (a app) explain(r ruleRow) error {
	gates := make([]string, len(r.Gates))
	for i, g := range r.Gates {
		gates[i] = string(g)
	}
	dialects := make([]string, len(r.Dialects))
	for i, d := range r.Dialects {
		dialects[i] = string(d)
	}
	_, err := fmt.Fprintf(a.env.Out, "%s (%s)\n   %s\n   fix: %s\n   gates: %s; dialects: %s; source: %s\n",
		r.ID, r.effect(), r.Title, r.Fix, strings.Join(gates, ", "), strings.Join(dialects, ", "), r.Source)
	return err
}

func completeRules(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	if len(args) == 0 {
		for _, info := range rule.All() {
			found = append(found, cobra.CompletionWithDesc(string(info.ID), info.Title))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
