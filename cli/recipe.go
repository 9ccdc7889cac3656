package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/cli/project"
)

// recipe holds the verbs about recipes and the locks that record them.
func (a app) recipe() *cobra.Command {
	cmd := &cobra.Command{Use: "recipe", Short: "See the methods there are, and the locks of the experiments that use them"}
	cmd.AddCommand(a.recipeList(), a.recipeSync(), a.recipeStatus(), a.recipeDiff(), a.recipeUpgrade())
	return cmd
}

// recipeList shows the methods of a client release.
func (a app) recipeList() *cobra.Command {
	var flags projectFlags
	var release releaseFlag
	var server bool
	cmd := &cobra.Command{
		Use: "ls [METHOD] [--server]", Short: "List the methods that an experiment can use", Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completeMethods,
		Long: `List the methods that an experiment can use: those that the client release ships, and those that were published, as of the
last look at the server. With METHOD its framework versions, roles and parameters are shown. With --server the server is
asked, and its answer is kept.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := a.chosenDialect(flags)
			if err != nil {
				return err
			}
			if server {
				if _, unkept, err := a.serverCatalogue(cmd.Context(), d, release.of(d)); err != nil || unkept != nil {
					return errors.Join(err, unkept)
				}
			}
			c, err := a.localCatalogue(d, release.of(d))
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return a.showMethod(c, args[0])
			}
			return a.listMethods(c)
		},
	}
	flags.add(cmd)
	release.add(cmd)
	cmd.Flags().BoolVar(&server, "server", false, "ask the server first")
	return cmd
}

// method is a recipe as the list shows it.
type method struct {
	Name             string   `json:"name"`
	Version          string   `json:"version"`
	Framework        string   `json:"framework"`
	FrameworkVersion string   `json:"framework_version"`
	Versions         []string `json:"versions"`
	Source           string   `json:"source"` // builtin, or the owner of the pack
	Alias            string   `json:"alias,omitempty"`
	Digest           string   `json:"digest"`
}

func methodOf(e catalogue.Entry) method {
	m := method{e.Name, e.Version, e.Framework, e.DefaultVersion, e.Supported(), "builtin", e.Alias(), e.Digest}
	if e.Pack != nil {
		m.Source = e.Pack.Owner
	}
	return m
}

func (a app) listMethods(c *catalogue.Catalogue) error {
	list := make([]method, 0, len(c.Entries()))
	for _, e := range c.Entries() {
		list = append(list, methodOf(e))
	}
	if a.opt.json {
		return a.env.writeJSON(map[string]any{"dialect": c.Dialect(), "release": c.Release(), "methods": list})
	}
	for _, m := range list {
		if _, err := fmt.Fprintf(a.env.Out, "%-32s %-8s %s %s\n", printable(m.Name), printable(m.Source), printable(m.Framework), printable(m.FrameworkVersion)); err != nil {
			return err
		}
	}
	return nil
}

func (a app) showMethod(c *catalogue.Catalogue, id string) error {
	e, err := recipeEntry(c, id)
	if err != nil {
		return err
	}
	if a.opt.json {
		return a.env.writeJSON(e)
	}
	fmt.Fprintf(a.env.Out, "%s %s\n   source     %s\n   framework  %s %s (default), of %s\n   roles      %s\n   after      %s\n   digest     %s\n",
		printable(e.Name), printable(e.Version), printable(methodOf(e).Source), printable(e.Framework), printable(e.DefaultVersion), printable(strings.Join(e.Supported(), ", ")),
		printable(strings.Join(e.Roles, ", ")), printable(strings.Join(e.Lifecycle, ", ")), e.Digest)
	if e.Params == nil {
		return nil
	}
	for name, p := range e.Params.All() {
		def := "-"
		if p.Default.Value != nil {
			def = p.Default.PyStr()
		}
		if _, err := fmt.Fprintf(a.env.Out, "   --set %-28s %-6s default %s\n", printable(name)+"=", printable(p.Type), printable(def)); err != nil {
			return err
		}
	}
	return nil
}

// experimentFlags choose experiments and the client release that their locks are held against.
type experimentFlags struct {
	projectFlags
	releaseFlag
	all bool
}

func (f *experimentFlags) add(cmd *cobra.Command) {
	f.projectFlags.add(cmd)
	f.releaseFlag.add(cmd)
	cmd.Flags().BoolVar(&f.all, "all", false, "every experiment with a recipe lock, below experiments/ and smoke/")
}

// open is the project and what its client release can submit.
func (f experimentFlags) open(a app) (*project.Project, *catalogue.Catalogue, error) {
	p, err := f.project(a.env)
	if err != nil {
		return nil, nil, err
	}
	c, err := a.localCatalogue(p.Dialect, f.of(p.Dialect))
	return p, c, err
}

// experiments are those that the arguments name; none is all that have a recipe lock.
func (f experimentFlags) experiments(p *project.Project, args []string) ([]*project.Experiment, error) {
	if len(args) == 0 {
		return p.Locked()
	}
	if f.all {
		return nil, usagef("name an experiment or say --all, not both")
	}
	e, err := p.Experiment(args[0])
	return []*project.Experiment{e}, err
}

// printInspection shows one lock: its state, what differs, and what to do.
func (a app) printInspection(experiment string, i lock.Inspection) {
	fmt.Fprintf(a.env.Out, "%s\n   state      %s\n", printable(experiment), i.State)
	if i.Recipe != "" {
		fmt.Fprintf(a.env.Out, "   recipe     %s\n", printable(i.Recipe))
	}
	if i.FrameworkVersion != "" {
		fmt.Fprintf(a.env.Out, "   framework  %s\n", printable(i.FrameworkVersion))
	}
	for _, c := range i.Changes {
		fmt.Fprintf(a.env.Out, "   %-22s %s -> %s\n", c.Field, orDash(printable(c.Locked)), orDash(printable(c.Current)))
	}
	if text := cmp.Or(i.Advisory(), i.Message); i.State != lock.Current {
		fmt.Fprintf(a.env.Out, "   %s\n", printable(text))
	}
}
