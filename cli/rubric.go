package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// rubric holds what is done with rubrics.
func (a app) rubric() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rubric", Short: "Push, list and show rubrics", Args: cobra.NoArgs,
		Long: `Push, list and show rubrics: texts by which a judge decides, which benchmarks and environments name. A rubric is named OWNER/NAME,
one version of it OWNER/NAME@VERSION; a version never changes.`,
	}
	cmd.AddCommand(a.rubricPush(), a.suiteList(suite.Rubric), a.suiteShow(suite.Rubric))
	return cmd
}

// rubricPush makes a version of a rubric.
func (a app) rubricPush() *cobra.Command {
	var flags pushFlags
	cmd := &cobra.Command{
		Use: "push FILE --name NAME --version VERSION [--public]", Short: "Push a version of a rubric, for good", Args: cobra.ExactArgs(1),
		Long: "Push the text of FILE, or of standard input when FILE is -, as a version: UTF-8 of at most 64 KiB.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			text, err := a.env.readText(args[0], limit.RubricText)
			if err != nil {
				return err
			}
			if report := suite.CheckRubric(text, rule.Policy{}); !report.OK() {
				return refusedSuite(suite.Rubric, flags.name, flags.version, "", report)
			}
			c, _, err := a.env.client()
			if err != nil {
				return err
			}
			named := flags.name
			if !strings.Contains(named, "/") {
				user, err := c.Whoami(cmd.Context())
				if err != nil {
					return err
				}
				named = registry.OwnNamespace(user.Username) + "/" + named
			}
			ref, err := suiteRef(suite.Rubric, named)
			if err != nil {
				return err
			}
			made, err := c.PutRubric(cmd.Context(), id(ref), flags.version, flags.public, text)
			if err != nil {
				return fmt.Errorf("%s: %w", ref, err)
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]string{"id": made.ID, "version": made.Version, "digest": made.Digest, "manifest_digest": made.ManifestDigest, "reference": made.Reference})
			}
			_, err = fmt.Fprintf(a.env.Out, "pushed %s@%s\n   tree     %s\n   manifest %s\n", printable(made.ID), printable(made.Version), printable(made.Digest), printable(made.ManifestDigest))
			return err
		},
	}
	flags.add(cmd)
	return cmd
}

// readText reads a file, or standard input for "-", and no more than a byte beyond what is taken.
func (e *Env) readText(file string, most int64) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(e.In, most+1))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most+1))
}
