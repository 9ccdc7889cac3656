package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// environment holds what is done with the environments that agents are trained in.
func (a app) environment() *cobra.Command {
	cmd := &cobra.Command{
		Use: "env", Short: "Push, list and fetch environments", Args: cobra.NoArgs,
		Long: `Push, list, show and fetch environments: folders with a manifest.json and mostly a tasks.jsonl, of either platform.
An environment is named OWNER/NAME, one version of it OWNER/NAME@VERSION; a version never changes.`,
	}
	runner := &cobra.Command{Use: "runner", Short: "Machines that serve an environment", Args: cobra.NoArgs}
	runner.AddCommand(a.runnerList(), a.runnerRemove())
	cmd.AddCommand(a.environmentPush(), a.suiteList(suite.Environment), a.suiteShow(suite.Environment), a.suitePull(suite.Environment), runner)
	return cmd
}

// suiteRef reads OWNER/NAME[@VERSION] from the command line.
func suiteRef(kind suite.Kind, text string) (name.Ref, error) {
	ref, err := name.VersionedRef(text, string(kind))
	if err != nil {
		return ref, usageError{err}
	}
	return ref, nil
}

// suiteList lists the suites of a kind.
func (a app) suiteList(kind suite.Kind) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the " + kind.Plural() + " that you may read", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			rows, err := c.Suites(cmd.Context(), kind)
			if err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(append([]wire.SuiteRow{}, rows...))
			}
			t := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(t, strings.ToUpper(string(kind))+"\tVISIBILITY\tVERSIONS")
			for _, r := range rows {
				fmt.Fprintf(t, "%s\t%s\t%s\n", printable(r.ID), printable(r.Visibility), printable(strings.Join(r.Versions, ", ")))
			}
			return t.Flush()
		},
	}
}

// suiteShow shows one version.
func (a app) suiteShow(kind suite.Kind) *cobra.Command {
	return &cobra.Command{
		Use: "show OWNER/NAME[@VERSION]", Short: "Show a version and what versions there are", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := suiteRef(kind, args[0])
			if err != nil {
				return err
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			s, err := c.Suite(cmd.Context(), kind, id(ref), ref.Version)
			if err != nil {
				return fmt.Errorf("%s: %w", ref, err)
			}
			if a.opt.json {
				return a.env.writeJSON(s)
			}
			return printSuite(a.env.Out, s)
		},
	}
}

func printSuite(w io.Writer, s wire.Suite) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	bytes := int64(0)
	for _, f := range s.Files {
		bytes += f.Size
	}
	for _, row := range [][2]string{
		{s.Kind, s.ID + "@" + s.Version}, {"versions", strings.Join(s.Versions, ", ")}, {"visibility", s.Visibility}, {"dialect", string(s.Dialect)},
		{"tree", s.Digest}, {"manifest", s.ManifestDigest}, {"reference", s.Reference}, {"pushed", s.CreatedAt + " by " + s.CreatedBy},
		{"files", fmt.Sprintf("%d, %d bytes", len(s.Files), bytes)},
	} {
		fmt.Fprintf(t, "%s\t%s\n", row[0], printable(row[1]))
	}
	if len(s.Document) > 0 && string(s.Document) != "null" {
		fmt.Fprintf(t, "document\t%s\n", printable(string(s.Document)))
	}
	err := t.Flush()
	if s.Text != "" {
		_, more := io.WriteString(w, "\n"+printableLines(strings.TrimRight(s.Text, "\n"))+"\n")
		err = errors.Join(err, more)
	}
	return err
}

// runnerList lists the machines that serve an environment.
func (a app) runnerList() *cobra.Command {
	return &cobra.Command{
		Use: "ls OWNER/NAME", Short: "List the machines that serve an environment, and which of them answer", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := suiteRef(suite.Environment, args[0])
			if err != nil {
				return err
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			rows, err := c.Runners(cmd.Context(), id(ref))
			if err != nil {
				return fmt.Errorf("%s: %w", ref, err)
			}
			if a.opt.json {
				return a.env.writeJSON(append([]wire.Runner{}, rows...))
			}
			t := tabwriter.NewWriter(a.env.Out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(t, "RUNNER\tADDRESS\tVERSION\tSTATE\tLAST SIGN OF LIFE")
			for _, r := range rows {
				version := r.Version
				if version == "" {
					version = "any"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", printable(r.ID), printable(r.Address), printable(version), printable(r.State), printable(r.LastBeat))
			}
			return t.Flush()
		},
	}
}

// runnerRemove removes one.
func (a app) runnerRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm RUNNER", Short: "Remove a machine from those that serve an environment", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			if err := c.DeleteRunner(cmd.Context(), args[0]); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"removed": args[0]})
			}
			_, err = fmt.Fprintf(a.env.Out, "removed %s\n", args[0])
			return err
		},
	}
}

// refusedSuite is the error of a suite that breaks rules.
func refusedSuite(kind suite.Kind, named, version string, d dialect.Dialect, report rule.Report) error {
	return report.Decide(rule.Publish, rule.Subject{Name: named, Version: version, Kind: string(kind), Dialect: d}, nil).Err()
}
