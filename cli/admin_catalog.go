package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

// catalogImport tells the registry what a client release ships.
func (a app) catalogImport() *cobra.Command {
	var release string
	cmd := &cobra.Command{
		Use: "import forge|tuneplane FILE [--release VERSION]", Short: "Tell the registry which recipes and plugins a client release ships",
		Long: `Tell the registry which recipes and plugins a client release ships, from the snapshot of an installed one. What was known of
that release is replaced; without --release the dialect's default release is meant. The answer names the packs whose recipe
id the release has too: new jobs get the release's.`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: completeDialect,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := dialect.Parse(args[0])
			if err != nil {
				return usageError{err}
			}
			snapshot, err := readFile(args[1], limit.JSONBody+1)
			if err != nil {
				return err
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			out, err := c.ImportCatalogue(cmd.Context(), d, release, snapshot)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(out)
			}
			if len(out.Shadowed) > 0 {
				fmt.Fprintf(a.env.Err, "  %s recipes of these packs have ids of the release: %s\n", a.env.paint(yellow, "warning:"), printable(strings.Join(out.Shadowed, ", ")))
			}
			_, err = fmt.Fprintf(a.env.Out, "%s %s: %d recipes, %d bundled plugins\n", out.Dialect, printable(out.Release), out.Recipes, out.Bundled)
			return err
		},
	}
	cmd.Flags().StringVar(&release, "release", "", "the client release, such as 0.3.56")
	return cmd
}

// completeDialect offers the dialects as the first argument and files as the second.
func completeDialect(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return dialectList(), cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}
