package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/cli/project"
)

// packageFlag says where a real client is installed.
type packageFlag struct{ dir string }

// clientPackageVar names the folder of a real client's package, as --client-package does.
const clientPackageVar = "GATEHOUSE_CLIENT_PACKAGE"

func (f *packageFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "client-package", "",
		"the folder of an installed starforge or tuneplane package, whose templates are copied (default $"+clientPackageVar+", else where the client on PATH is installed)")
}

// find is the installed package of a dialect's client, nil when there is none and none was named.
func (f packageFlag) find(env *Env, d dialect.Dialect) (*project.Installed, error) {
	dir := f.dir
	if dir == "" {
		dir = env.Vars[clientPackageVar]
	}
	if dir == "" {
		return project.InstalledOnPath(env.Vars["PATH"], d), nil
	}
	return project.InstalledAt(dir, d)
}

// initProject makes a project.
func (a app) initProject() *cobra.Command {
	var dialectName, name string
	var noGit bool
	var installed packageFlag
	cmd := &cobra.Command{
		Use: "init [DIR] [--dialect forge|tuneplane] [--name NAME]", Short: "Make a project that both the platform's client and sf work in", Args: cobra.MaximumNArgs(1),
		Long: `Make a project of a folder, the current one when none is named: the marker starforge.yaml or tuneplane.yaml, experiments/,
configs/, common/, a .gitignore, a README, and a git repository with one commit. Nothing that is there is overwritten.

The bases of configs/ that the platform's own methods inherit ship in its client: they are copied from there when the client
is installed, and nothing of it is executed.`,
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			d, err := parseDialect(dialectName)
			if err != nil {
				return err
			}
			if d == "" {
				d = dialect.Forge
			}
			client, err := installed.find(a.env, d)
			if err != nil {
				return err
			}
			p, warnings, err := project.Init(dir, project.InitOptions{Dialect: d, Name: name, By: "gatehouse " + Version, Git: !noGit, Client: client})
			if err != nil {
				return err
			}
			for _, w := range warnings {
				fmt.Fprintf(a.env.Err, "  %s %s\n", a.env.paint(yellow, "warning:"), printable(w))
			}
			if client == nil {
				fmt.Fprintf(a.env.Err, "  note: no %s is installed here, so configs/ has no bases yet; --client-package DIR copies them\n", d.Names().PyPackage)
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]any{"dir": p.Root, "name": p.Name, "dialect": p.Dialect, "bases": client != nil})
			}
			_, err = fmt.Fprintf(a.env.Out, "made the %s project %s in %s\nnext: sf recipe ls; sf new my-run --method METHOD\n", p.Dialect, p.Name, p.Root)
			return err
		},
	}
	cmd.Flags().StringVar(&dialectName, "dialect", "", "forge or tuneplane (default forge)")
	cmd.Flags().StringVar(&name, "name", "", "the project's name (default: the folder's)")
	cmd.Flags().BoolVar(&noGit, "no-git", false, "make no git repository")
	installed.add(cmd)
	completeFlag(cmd, "dialect", dialectList())
	return cmd
}
