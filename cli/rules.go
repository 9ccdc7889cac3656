package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/nearest"
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
	Ours       bool              `json:"ours"`       // stricter than the platforms' clients
	Softenable bool              `json:"softenable"` // warn_rules may name it
	Auditable  bool              `json:"auditable"`  // audit_mode may name it
	Example    exampleRow        `json:"example"`

	effect string
}

// exampleRow is what breaks a rule: a value put at a path of a good document, a whole document, or a situation in words.
type exampleRow struct {
	Dialect dialect.Dialect `json:"dialect,omitempty"`
	Path    string          `json:"path,omitempty"`
	Value   string          `json:"value,omitempty"` // the text of the document's value; "" with a path: nothing stands there
	Text    string          `json:"text,omitempty"`

	line string
}

func newRuleRow(i rule.Info) ruleRow {
	row := ruleRow{
		ID: i.ID, Title: i.Title, Fix: i.Fix, Source: i.Source, Gates: i.Gates, Dialects: i.Dialects, Warns: i.Severity == rule.Warn,
		Ours: i.Ours, Softenable: i.Softenable(), Auditable: i.Auditable(), effect: i.Effect(),
		Example: exampleRow{Path: i.Example.Path, Value: i.Example.Value, Text: i.Example.Text, line: i.Example.String()},
	}
	if row.Example.Text == "" {
		row.Example.Dialect = i.ExampleDialect()
	}
	if len(row.Dialects) == 0 {
		row.Dialects = dialect.All
	}
	return row
}

// rules lists what the gates check.
func (a app) rules() *cobra.Command {
	return &cobra.Command{
		Use: "rules [RULE|FAMILY]", Short: "List the rules of the gates, or explain one", Args: cobra.MaximumNArgs(1), ValidArgsFunction: completeRules,
		Long: `List the rules of the gates: those whose id is, or begins with, what is named. One rule alone is explained: what it checks, in
which dialect and at which gate, an example that breaks it, how to mend it, and where it comes from. docs/rules.md has them all.

A rule marked ours is stricter than the platforms' own clients. What may be softened, warn_rules in the server's configuration
and --warn here turn into a warning; what may be audited, audit_mode lets report without refusing (docs/admission.md).`,
		RunE: func(_ *cobra.Command, args []string) error {
			rows := []ruleRow{}
			for _, info := range rule.All() {
				if len(args) == 0 || info.ID == rule.ID(args[0]) || strings.HasPrefix(string(info.ID), args[0]+".") {
					rows = append(rows, newRuleRow(info))
				}
			}
			switch {
			case len(rows) == 0:
				return registry.Errorf(registry.NotFound, "no rule is called %.100q%s", args[0], nearestRule(args[0], ruleNames()))
			case a.opt.json:
				return a.env.writeJSON(rows)
			case len(rows) == 1 || len(args) == 1 && rows[0].ID == rule.ID(args[0]):
				return a.explain(rows)
			}
			t := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(t, "RULE\tA BREACH\tWHAT HOLDS")
			for _, r := range rows {
				fmt.Fprintf(t, "%s\t%s\t%s\n", r.ID, r.effect, r.Title)
			}
			return t.Flush()
		},
	}
}

func ruleNames() []string {
	var ids []string
	for _, info := range rule.All() {
		ids = append(ids, string(info.ID))
	}
	return ids
}

func nearestRule(word string, ids []string) string {
	if near := nearest.Word(word, ids); near != "" {
		return "; did you mean " + near + "?"
	}
	return "; sf rules lists them"
}

// explain prints one rule, and the names of those that refine it.
func (a app) explain(rows []ruleRow) error {
	r := rows[0]
	gates := make([]string, len(r.Gates))
	for i, g := range r.Gates {
		gates[i] = string(g)
	}
	dialects := make([]string, len(r.Dialects))
	for i, d := range r.Dialects {
		dialects[i] = string(d)
	}
	text := fmt.Sprintf("%s\n   %s\n   a breach:  %s\n   gate:      %s\n   dialect:   %s\n   example:   %s\n   fix:       %s\n   source:    %s\n",
		r.ID, r.Title, r.effect, strings.Join(gates, ", "), strings.Join(dialects, ", "), r.Example.line, r.Fix, r.Source)
	for _, more := range rows[1:] {
		text += fmt.Sprintf("   see also:  %s\n", more.ID)
	}
	_, err := fmt.Fprint(a.env.Out, text)
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
