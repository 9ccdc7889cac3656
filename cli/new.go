package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/cli/project"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// newFlags say what an experiment is made from.
type newFlags struct {
	projectFlags
	releaseFlag
	packageFlag
	method, version, from string
}

// newExperiment makes an experiment.
func (a app) newExperiment() *cobra.Command {
	var flags newFlags
	cmd := &cobra.Command{
		Use:   "new EXPERIMENT {--method METHOD [--framework-version VERSION] | --from OTHER}",
		Short: "Make an experiment from a method's template, or from another experiment", Args: cobra.ExactArgs(1),
		Long: `Make experiments/EXPERIMENT from the template of a method, and lock the method for it in recipe.lock.json. The template of a
published method is fetched by sf recipe sync; that of a method that ships with the platform's client is copied from the
installed client, and nothing of it is executed. Either must be the very one that the catalogue names.

With --from another experiment is copied without its outputs, its lock is brought to the catalogue, and the name in its
config and README changes. The experiment is there whole or not at all.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if (flags.method == "") == (flags.from == "") {
				return usagef("say --method METHOD or --from EXPERIMENT: what the experiment is made from (sf recipe ls lists the methods)")
			}
			p, err := flags.project(a.env)
			if err != nil {
				return err
			}
			c, err := a.localCatalogue(p.Dialect, flags.of(p.Dialect))
			if err != nil {
				return err
			}
			if flags.from != "" {
				return a.fork(p, c, args[0], flags)
			}
			return a.fromTemplate(p, c, args[0], flags)
		},
	}
	flags.projectFlags.add(cmd)
	flags.releaseFlag.add(cmd)
	flags.packageFlag.add(cmd)
	cmd.Flags().StringVarP(&flags.method, "method", "m", "", "the method, <framework>/<name>")
	cmd.Flags().StringVar(&flags.version, "framework-version", "", "the framework version (default: the method's)")
	cmd.Flags().StringVar(&flags.from, "from", "", "the experiment to copy")
	completeFlagBy(cmd, "method", func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.completeMethods(cmd, nil, prefix)
	})
	completeFlagBy(cmd, "from", func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.completeExperiments(cmd, nil, prefix)
	})
	return cmd
}

func (a app) fromTemplate(p *project.Project, c *catalogue.Catalogue, experiment string, flags newFlags) error {
	if err := p.CanMake(experiment); err != nil {
		return err
	}
	entry, err := recipeEntry(c, flags.method)
	if err != nil {
		return err
	}
	client, err := flags.find(a.env, p.Dialect)
	if err != nil {
		return err
	}
	template, err := a.template(p, client, entry)
	if err != nil {
		return err
	}
	e, err := p.New(experiment, project.NewOptions{Catalogue: c, Recipe: entry, FrameworkVersion: flags.version, Template: template, Client: client})
	if err != nil {
		return err
	}
	version := flags.version
	if version == "" {
		version = entry.DefaultVersion
	}
	return a.printNew(e, entry.Name, entry.Framework+" "+version)
}

// template is the template folder of a recipe: that of a published one lies where sf recipe sync put it, that of the others in
// the installed client.
func (a app) template(p *project.Project, client *project.Installed, e catalogue.Entry) (string, error) {
	if e.Pack != nil {
		dir, err := a.packFolder(p.Dialect, "recipes", e.Pack.Owner, e.Pack.Name)
		if err != nil {
			return "", err
		}
		template, err := project.Template(dir, p.Dialect, e)
		if errors.Is(err, fs.ErrNotExist) {
			return "", registry.Errorf(registry.NotFound, "the template of %s (pack %s %s) is not on this computer: sf recipe sync fetches it", e.Name, e.Pack.ID(), e.Pack.Version)
		}
		return template, err
	}
	if client == nil {
		return "", registry.Errorf(registry.NotFound, "the template of %s ships in the client %s, which is not found here: install it (PATH is searched for its program, nothing is executed), or name its folder with --client-package DIR or %s",
			e.Name, p.Dialect.Names().PyPackage, clientPackageVar)
	}
	template, err := project.Template(client.RecipeDir(e), p.Dialect, e)
	if errors.Is(err, os.ErrNotExist) {
		return "", registry.Errorf(registry.NotFound, "the %s in %s (release %s) has no template of %s: name another installation with --client-package DIR", p.Dialect.Names().PyPackage, client.Dir, orDash(printable(client.Release)), e.Name)
	}
	return template, err
}

func (a app) fork(p *project.Project, c *catalogue.Catalogue, experiment string, flags newFlags) error {
	if flags.version != "" {
		return usagef("--framework-version goes with --method; a copy keeps the version of %.100q until sf recipe upgrade", flags.from)
	}
	from, err := p.Experiment(flags.from)
	if err != nil {
		return err
	}
	e, plan, err := p.Fork(experiment, from, c)
	if err != nil {
		return err
	}
	return a.printNew(e, plan.Recipe, plan.Lock.Framework+" "+plan.FrameworkVersion)
}

func (a app) printNew(e *project.Experiment, method, framework string) error {
	if a.opt.json {
		return a.env.writeJSON(map[string]any{"experiment": e.Path, "dir": e.Dir, "method": method, "framework": framework})
	}
	_, err := fmt.Fprintf(a.env.Out, "made %s: %s on %s\nnext: edit %[1]s/%s; sf validate %[5]s\n", e.Path, printable(method), printable(framework), project.ConfigFile, e.Name)
	return err
}
