package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// catalog holds the verbs about what client releases ship.
func (a app) catalog() *cobra.Command {
	cmd := &cobra.Command{Use: "catalog", Short: "What client releases ship", Args: cobra.NoArgs}
	cmd.AddCommand(a.catalogImport(), a.catalogList(), a.catalogShow(), a.catalogExport(), a.catalogSnapshot())
	return cmd
}

// catalogImport tells the registry what a client release ships.
func (a app) catalogImport() *cobra.Command {
	var release string
	cmd := &cobra.Command{
		Use: "import [forge|tuneplane] PATH [--release VERSION]", Short: "Tell the registry which recipes and plugins a client release ships",
		Long: `Tell the registry which recipes and plugins a client release ships. PATH is an installed client (its virtual environment or its
site-packages folder), a wheel of it, or the snapshot that sf admin catalog snapshot or export wrote. Nothing of a package is
executed: its recipes are read as data. A package says its own version; for a snapshot without --release the dialect's default
release is meant. What was known of that release is replaced. The answer names the packs whose recipe id the release has too:
new jobs get the release's.`,
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: completeDialect,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := readSnapshot(args)
			if err != nil {
				return err
			}
			if release == "" {
				release = s.release
			}
			if s.release != "" && release != s.release {
				return usagef("--release: the package is of release %s, not %.100q", s.release, release)
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			out, err := c.ImportCatalogue(cmd.Context(), s.dialect, release, s.document)
			if err != nil {
				return err
			}
			return a.showImported(out)
		},
	}
	cmd.Flags().StringVar(&release, "release", "", "the client release, such as 0.3.56")
	return cmd
}

func (a app) showImported(out registry.Imported) error {
	if a.opt.json {
		return a.env.writeJSON(out)
	}
	if len(out.Shadowed) > 0 {
		fmt.Fprintf(a.env.Err, "  %s recipes of these packs have ids of the release: %s\n", a.env.paint(yellow, "warning:"), printable(strings.Join(out.Shadowed, ", ")))
	}
	_, err := fmt.Fprintf(a.env.Out, "%s %s: %d recipes, %d bundled plugins\n", out.Dialect, printable(out.Release), out.Recipes, out.Bundled)
	return err
}

// catalogSnapshot writes what a package ships, for an import elsewhere.
func (a app) catalogSnapshot() *cobra.Command {
	return &cobra.Command{
		Use: "snapshot [forge|tuneplane] PATH", Short: "Write what an installed client ships as JSON", Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeDialect,
		Long: `Write what an installed client ships as JSON, for sf admin catalog import on another computer. PATH is its virtual environment, its
site-packages folder, or a wheel of it. No server is asked, and nothing of the package is executed.`,
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := readSnapshot(args)
			if err != nil {
				return err
			}
			_, err = a.env.Out.Write(s.document)
			return err
		},
	}
}

func (a app) catalogList() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the client releases that the registry knows", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			list, err := c.CatalogueReleases(cmd.Context())
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(list)
			}
			w := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "DIALECT\tRELEASE\tRECIPES\tPLUGINS\tBENCHMARKS\tFROM")
			for _, r := range list {
				from := "this program"
				if r.ImportedBy != "" {
					from = "imported by " + printable(r.ImportedBy) + " " + r.ImportedAt
				}
				if r.Default {
					from += " (default)"
				}
				fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\n", r.Dialect, printable(r.Release), r.Recipes, r.Bundled, r.Benchmarks, from)
			}
			return w.Flush()
		},
	}
}

// catalogRelease is the release that a verb's arguments name, as the registry has it.
func (a app) catalogRelease(cmd *cobra.Command, args []string, release string) (*catalogue.Catalogue, []byte, error) {
	d, err := dialect.Parse(args[0])
	if err != nil {
		return nil, nil, usageError{err}
	}
	if release == "" {
		release = catalogue.DefaultRelease(d)
	}
	c, _, err := a.env.client()
	if err != nil {
		return nil, nil, err
	}
	document, err := c.CatalogueSnapshot(cmd.Context(), d, release)
	if err != nil {
		return nil, nil, err
	}
	all, report := catalogue.ParseSnapshot(document, d, release)
	if all == nil {
		return nil, nil, fmt.Errorf("the server's snapshot of %s %s: %s", d, printable(release), printable(report.Violations[0].Message))
	}
	return all, document, nil
}

func (a app) catalogShow() *cobra.Command {
	var release string
	cmd := &cobra.Command{
		Use: "show forge|tuneplane [METHOD] [--release VERSION]", Short: "Show what a client release ships", Args: cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeDialect,
		RunE: func(cmd *cobra.Command, args []string) error {
			all, _, err := a.catalogRelease(cmd, args, release)
			if err != nil {
				return err
			}
			if len(args) == 2 {
				return a.showMethod(all, args[1])
			}
			if err := a.listMethods(all); err != nil || a.opt.json {
				return err
			}
			for _, b := range all.Bundled() {
				fmt.Fprintf(a.env.Out, "plugin     %s@%s  %s\n", printable(b.ID), printable(b.Version), b.Digest)
			}
			for _, b := range all.Benchmarks() {
				fmt.Fprintf(a.env.Out, "benchmark  %s  %s  %s\n", printable(b.ID), printable(b.Runner), printable(strings.Join(b.Suites, ", ")))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&release, "release", "", "the client release, such as 0.3.56 (default: the dialect's default)")
	return cmd
}

func (a app) catalogExport() *cobra.Command {
	var release, file string
	cmd := &cobra.Command{
		Use: "export forge|tuneplane [--release VERSION] [-o FILE]", Short: "Write what the registry knows of a client release as a snapshot",
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeDialect,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, document, err := a.catalogRelease(cmd, args, release)
			if err != nil {
				return err
			}
			if file != "" {
				return durable.Replace(file, document, 0o644)
			}
			_, err = a.env.Out.Write(document)
			return err
		},
	}
	cmd.Flags().StringVar(&release, "release", "", "the client release, such as 0.3.56 (default: the dialect's default)")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this file instead of standard output")
	return cmd
}

// completeDialect offers the dialects as the first argument and files as the second.
func completeDialect(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return dialectList(), cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveDefault
}
