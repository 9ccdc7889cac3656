package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
)

// taskset holds what is done with tasksets.
func (a app) taskset() *cobra.Command {
	cmd := &cobra.Command{
		Use: "taskset", Short: "Build, push, list and fetch tasksets", Args: cobra.NoArgs,
		Long: `Build, push, list, show and fetch tasksets of TunePlane: folders of tasks, each with a task.toml, whose taskset.json pins the
content of every task. A taskset is named OWNER/NAME, one version of it OWNER/NAME@VERSION; a version never changes.`,
	}
	cmd.AddCommand(a.tasksetBuild(), a.tasksetPush(), a.suiteList(suite.Taskset), a.suiteShow(suite.Taskset), a.suitePull(suite.Taskset))
	return cmd
}

// tasksetBuild writes the taskset.json of a folder.
func (a app) tasksetBuild() *cobra.Command {
	var split string
	var force bool
	cmd := &cobra.Command{
		Use: "build DIR [--split eval] [--force]", Short: "Write the taskset.json of a folder of tasks", Args: cobra.ExactArgs(1),
		Long: "Write DIR/taskset.json: every folder below DIR that holds a task.toml is a task, whose files it pins. No code of a task is run.",
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(suite.Splits, split) {
				return usageError{fmt.Errorf("--split: %q is neither train nor eval", split)}
			}
			root, err := os.OpenRoot(args[0])
			if err != nil {
				return err
			}
			defer root.Close()
			if _, err := root.Lstat(suite.TasksetFile); err == nil && !force {
				return usageError{fmt.Errorf("%s exists already: --force writes it anew, with every task of the split %s", suite.TasksetFile, split)}
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			src, report, err := suite.BuildTaskset(root, split, rule.Policy{})
			if err != nil {
				return err
			}
			if !report.OK() {
				return refusedSuite(suite.Taskset, filepath.Base(args[0]), "", dialect.TunePlane, report)
			}
			doc, _ := suite.ParseTaskset(src, rule.Policy{})
			if err := durable.Replace(filepath.Join(args[0], suite.TasksetFile), src, 0o666); err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(doc.Summary())
			}
			_, err = fmt.Fprintf(a.env.Out, "wrote %s: %d tasks (%s), digest %s\n", filepath.Join(args[0], suite.TasksetFile), len(doc.Tasks), split, doc.Digest)
			return err
		},
	}
	cmd.Flags().StringVar(&split, "split", "eval", "the half that the tasks belong to: train or eval")
	cmd.Flags().BoolVar(&force, "force", false, "replace a taskset.json that is there")
	completeFlag(cmd, "split", suite.Splits)
	return cmd
}

// tasksetPush checks a folder and pushes it.
func (a app) tasksetPush() *cobra.Command {
	var flags pushFlags
	cmd := &cobra.Command{
		Use: "push DIR --name NAME --version VERSION [--public]", Short: "Check a taskset and push a version of it, for good", Args: cobra.ExactArgs(1),
		Long: "Compare every task of DIR with its taskset.json, then push taskset.json and the files of the tasks as a version. What lies beside the tasks stays here.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return err
			}
			root, err := os.OpenRoot(args[0])
			if err != nil {
				return err
			}
			defer root.Close()
			_, files, report, err := suite.InspectTaskset(root, rule.Policy{})
			if err != nil {
				return err
			}
			if !report.OK() {
				return refusedSuite(suite.Taskset, flags.name, flags.version, dialect.TunePlane, report)
			}
			a.env.printWarnings(report)
			return a.pushSuite(cmd.Context(), root, suite.Taskset, flags, files)
		},
	}
	flags.add(cmd)
	return cmd
}
