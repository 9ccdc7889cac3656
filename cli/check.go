package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// checkFlags are the flags of every check.
type checkFlags struct {
	dialect string
	warn    []string
}

func (f *checkFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dialect, "dialect", "", "forge or tuneplane (default: what the document says)")
	completeFlag(cmd, "dialect", dialectList())
	addWarnFlag(cmd, &f.warn)
}

// addWarnFlag adds the flag that softens rules.
func addWarnFlag(cmd *cobra.Command, warn *[]string) {
	cmd.Flags().StringSliceVar(warn, "warn", nil, "rules of ours that only warn, as on the server")
	completeFlagBy(cmd, "warn", softenable)
}

// softenable lists the rules that may only warn.
func softenable(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var soft []cobra.Completion
	for _, info := range rule.All() {
		if info.Softenable() {
			soft = append(soft, cobra.CompletionWithDesc(string(info.ID), info.Title))
		}
	}
	return soft, cobra.ShellCompDirectiveNoFileComp
}

func (f checkFlags) options() (admission.CheckOptions, error) {
	var opt admission.CheckOptions
	ids := make([]rule.ID, len(f.warn))
	for i, id := range f.warn {
		ids[i] = rule.ID(id)
	}
	var err error
	if opt.Policy, err = rule.Soften(ids...); err != nil {
		return opt, usageError{err}
	}
	if f.dialect != "" {
		if opt.Dialect, err = dialect.Parse(f.dialect); err != nil {
			return opt, usageError{err}
		}
	}
	return opt, nil
}

// check runs the rules offline: the same functions as the server.
func (a app) check() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", Short: "Check a pack or a document offline, by the rules of the server",
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(
		a.checkPack(),
		a.checkFile("manifest", "a plugin.yaml", limit.PluginYAML, named(admission.CheckManifest)),
		a.checkFile("recipe", "a recipe.yaml", limit.Document, named(admission.CheckRecipe)),
		a.checkFile("benchmark", "a benchmark.yaml", limit.Document, named(admission.CheckBenchmark)),
		a.checkFile("jobspec", "a JobSpec, as far as a document alone can tell", limit.Document,
			admission.CheckJobSpec),
	)
	return cmd
}

func (a app) checkPack() *cobra.Command {
	var flags checkFlags
	cmd := &cobra.Command{
		Use: "pack DIR|ARCHIVE", Short: "Check a pack: archive, plugin.yaml, layout and the pack's document", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			opt, err := flags.options()
			if err != nil {
				return err
			}
			d, err := checkPackAt(args[0], opt)
			if err != nil {
				return err
			}
			return a.printDecision(d)
		},
	}
	flags.add(cmd)
	return cmd
}

// checkPackAt runs gate 1 without a registry on a directory or an archive.
func checkPackAt(path string, opt admission.CheckOptions) (d admission.Decision, err error) {
	err = withTree(path, opt.Policy, func(t tree.Tree, found rule.Report) error {
		d, err = admission.CheckPack(t, found, opt)
		return err
	})
	return d, err
}

// fileCheck checks a document whose name the violations are to show.
type fileCheck func(src []byte, file string, opt admission.CheckOptions) admission.Decision

// named is a check of documents that always have one name.
func named(check func([]byte, admission.CheckOptions) admission.Decision) fileCheck {
	return func(src []byte, _ string, opt admission.CheckOptions) admission.Decision { return check(src, opt) }
}

func (a app) checkFile(name, what string, max int64, check fileCheck) *cobra.Command {
	var flags checkFlags
	cmd := &cobra.Command{
		Use: name + " FILE", Short: "Check " + what, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			opt, err := flags.options()
			if err != nil {
				return err
			}
			src, err := readFile(args[0], max+1) // one byte more, so that the rule about the size can say so
			if err != nil {
				return err
			}
			return a.printDecision(check(src, filepath.Base(args[0]), opt))
		},
	}
	flags.add(cmd)
	return cmd
}

// readFile reads at most max bytes of a regular file.
func readFile(path string, max int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, max))
}

// printDecision shows a decision and ends with exit 0 or 3.
func (a app) printDecision(d admission.Decision) error {
	if a.opt.json {
		if err := a.env.writeJSON(d); err != nil {
			return err
		}
	} else {
		printDecision(a.env, d)
		if d.Allowed {
			fmt.Fprintf(a.env.Out, "%s %s\n", a.env.paint(green, "ok"), describe(d.Subject))
		}
	}
	if !d.Allowed {
		return exitStatus{registry.CodeOfDecision(d).Meaning().Exit}
	}
	return nil
}

// describe is a subject on one line.
func describe(s rule.Subject) string {
	text := printable(s.Name + " " + s.Version)
	if s.Kind != "" {
		text += fmt.Sprintf(" (%s, %s)", s.Kind, s.Dialect)
	}
	if s.Kind == "" && s.Digest != "" {
		text = strings.TrimSpace(text) + fmt.Sprintf("\n   %s, spec %s", s.Dialect, s.Digest)
	}
	if s.ContentDigest != "" {
		text += "\n   content " + s.ContentDigest + "\n   tree    " + s.TreeDigest
	}
	return text
}
