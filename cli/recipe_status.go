package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/cli/project"
)

// recipeStatus shows how the recipe locks of experiments stand.
func (a app) recipeStatus() *cobra.Command {
	var flags experimentFlags
	var server bool
	cmd := &cobra.Command{
		Use: "status [EXPERIMENT | --all] [--server]", Short: "Show how recipe locks stand against the catalogue", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeExperiments,
		Long: `Show how the recipe lock of an experiment, or of every one, stands against what the client release can submit. The states
current, compatible and upgrade_advised go through a submission; with any other the command ends with 1. With --server the
version and the digest of the recipe are compared with the server's too, which changes no exit status.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, c, err := flags.open(a)
			if err != nil {
				return err
			}
			experiments, err := flags.experiments(p, args)
			if err != nil {
				return err
			}
			ask := func(lock.Inspection) string { return "" }
			if server {
				ask = a.serverDrift(cmd.Context(), p, flags.of(p.Dialect))
			}
			return a.printStatus(experiments, c, ask)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&server, "server", false, "compare with the server's catalogue too")
	return cmd
}

// lockStatus is one lock as --json shows it.
type lockStatus struct {
	Experiment string `json:"experiment"`
	lock.Inspection
	Advisory string `json:"advisory,omitempty"`
	Server   string `json:"server,omitempty"`
}

func (a app) printStatus(experiments []*project.Experiment, c *catalogue.Catalogue, ask func(lock.Inspection) string) error {
	list := make([]lockStatus, len(experiments))
	blocked := 0
	for i, e := range experiments {
		found := e.Inspect(c, "")
		list[i] = lockStatus{e.Path, found, found.Advisory(), ask(found)}
		if !found.Admits {
			blocked++
		}
	}
	if a.opt.json {
		if err := a.env.writeJSON(map[string]any{"release": c.Release(), "locks": list, "blocked": blocked}); err != nil {
			return err
		}
	} else {
		if len(list) == 0 {
			fmt.Fprintln(a.env.Err, "no experiment has a recipe lock")
		}
		for _, s := range list {
			a.printInspection(s.Experiment, s.Inspection)
			if s.Server != "" {
				fmt.Fprintf(a.env.Out, "   server     %s\n", printable(s.Server))
			}
		}
	}
	if blocked > 0 {
		return exitStatus{exitError}
	}
	return nil
}

// serverDrift compares a lock's recipe as this client has it with the server's. A server that can't be asked is said to be so
// at every lock: whether a submission would go through is then not known, and the locks are as they are.
func (a app) serverDrift(ctx context.Context, p *project.Project, release string) func(lock.Inspection) string {
	server, _, err := a.serverCatalogue(ctx, p.Dialect, release) // nothing here needs what is kept
	return func(i lock.Inspection) string {
		local, ok := i.Entry()
		if !ok {
			return ""
		}
		if err != nil {
			return "can't be asked: " + err.Error()
		}
		there, ok := server.Lookup(i.Recipe)
		if !ok {
			return "has not enabled " + i.Recipe
		}
		var drift []string
		if there.Version != local.Version {
			drift = append(drift, fmt.Sprintf("version %s there, %s here", there.Version, local.Version))
		}
		if there.Digest != local.Digest {
			drift = append(drift, fmt.Sprintf("digest %s there, %s here", there.Digest, local.Digest))
		}
		if len(drift) == 0 {
			return "current"
		}
		return strings.Join(drift, "; ")
	}
}
