package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/cli/project"
)

// projectFlags say which project a command works on.
type projectFlags struct{ dialect string }

func (f *projectFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dialect, "dialect", "", "forge or tuneplane, where a folder is a project of both")
	completeFlag(cmd, "dialect", dialectList())
}

// project is the project that the current folder lies in, or that the dialect's environment variable names.
func (f projectFlags) project(env *Env) (*project.Project, error) {
	d, err := parseDialect(f.dialect)
	if err != nil {
		return nil, err
	}
	return project.Find(".", project.Options{Dialect: d, Vars: env.Vars})
}

// chosenDialect is the flag's, else the project's, else forge.
func (a app) chosenDialect(f projectFlags) (dialect.Dialect, error) {
	d, err := parseDialect(f.dialect)
	if d != "" || err != nil {
		return d, err
	}
	if p, err := f.project(a.env); err == nil {
		return p.Dialect, nil
	}
	return dialect.Forge, nil
}

// completeExperiments offers the experiments of the project.
func (a app) completeExperiments(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const quiet = cobra.ShellCompDirectiveNoFileComp
	p, err := projectFlags{}.project(a.env)
	if err != nil || len(args) > 0 {
		return nil, quiet
	}
	all, err := p.Experiments()
	if err != nil {
		return nil, quiet
	}
	var names []cobra.Completion
	for _, e := range all {
		if strings.HasPrefix(e.Name, prefix) {
			names = append(names, e.Name)
		}
	}
	return names, quiet
}

// completeMethods offers the methods that are known here.
func (a app) completeMethods(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const quiet = cobra.ShellCompDirectiveNoFileComp
	d, err := a.chosenDialect(projectFlags{})
	if err != nil || len(args) > 0 {
		return nil, quiet
	}
	c, err := a.localCatalogue(d, releaseFlag{}.of(d))
	if err != nil {
		return nil, quiet
	}
	var names []cobra.Completion
	for _, e := range c.Entries() {
		if strings.HasPrefix(e.Name, prefix) {
			names = append(names, e.Name)
		}
	}
	return names, quiet
}

// parseDialect reads a flag; "" stays "".
func parseDialect(flag string) (dialect.Dialect, error) {
	if flag == "" {
		return "", nil
	}
	d, err := dialect.Parse(flag)
	if err != nil {
		return "", usageError{err}
	}
	return d, nil
}

// pluginsLock is an experiment's plugins lock and where it lies.
type pluginsLock struct {
	lock.Plugins
	experiment *project.Experiment
	path       string
}

// openPluginsLock reads an experiment's plugins lock; one that is not there is empty.
func openPluginsLock(p *project.Project, exp string) (pluginsLock, error) {
	e, err := p.Experiment(exp)
	if err != nil {
		return pluginsLock{}, err
	}
	l, err := e.PluginsLock()
	return pluginsLock{l, e, filepath.Join(e.Dir, lock.PluginsFile)}, err
}

// save writes the lock; an empty one has no file.
func (l pluginsLock) save() error { return l.experiment.WritePluginsLock(l.Plugins) }
