package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/cli/project"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// pluginFlags say which project and experiment a command about plugins works on.
type pluginFlags struct {
	projectFlags
	exp string
}

func (f *pluginFlags) add(cmd *cobra.Command) {
	f.projectFlags.add(cmd)
	cmd.Flags().StringVar(&f.exp, "exp", "", "the experiment whose plugins.lock.json is written: NAME below experiments/, or a path in the project")
}

// pluginInstall fetches a plugin into the project and locks it for an experiment.
func (a app) pluginInstall() *cobra.Command {
	var flags pluginFlags
	var warn []string
	cmd := &cobra.Command{
		Use: "install OWNER/NAME[@VERSION] [--exp EXPERIMENT]", Short: "Install a plugin into the project, and lock it for an experiment",
		Args: cobra.ExactArgs(1), ValidArgsFunction: a.completePlugins,
		Long: `Fetch a plugin, verify both digests (exit 7 when one differs), and put it into the project that the current folder lies in,
where the platform's own client puts it: forge_plugins/NAME, or tuneplane_plugins/OWNER/NAME. An older copy is replaced only
when the new one is whole. With --exp the version and its digest go into the experiment's plugins.lock.json.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := parseRef(args[0])
			if err != nil {
				return err
			}
			opt, err := checkFlags{warn: warn}.options()
			if err != nil {
				return err
			}
			proj, err := flags.project(a.env)
			if err != nil {
				return err
			}
			return a.install(cmd.Context(), proj, flags.exp, ref, opt.Policy)
		},
	}
	flags.add(cmd)
	addWarnFlag(cmd, &warn)
	return cmd
}

func (a app) install(ctx context.Context, proj *project.Project, exp string, ref name.Ref, policy rule.Policy) error {
	var locked pluginsLock
	if exp != "" {
		var err error
		if locked, err = openPluginsLock(proj, exp); err != nil {
			return err
		}
	}
	c, err := a.env.ociClient(ctx)
	if err != nil {
		return err
	}
	p, err := find(ctx, c, ref)
	if err != nil {
		return err
	}
	if err := installable(p, proj, exp); err != nil {
		return err
	}
	owner, pack, _ := strings.Cut(p.ID, "/")
	dir := proj.PluginDir(owner, pack)
	if err := refuseLinks(proj.Root, dir); err != nil {
		return err
	}
	if err := a.replace(ctx, c, p, dir, policy); err != nil {
		return err
	}
	if exp != "" {
		locked.Upsert(lock.NewPlugin(p.ID, p.Version, p.content.String()))
		if err := locked.save(); err != nil {
			return err
		}
	}
	if err := a.printFetched(p, "installed", dir); err != nil || exp == "" || a.opt.json {
		return err
	}
	_, err = fmt.Fprintf(a.env.Out, "   locked   in %s\n", locked.path)
	return err
}

// installable says why a version has no place in the project.
func installable(p published, proj *project.Project, exp string) error {
	kind := pack.Kind(p.Kind)
	switch {
	case p.RevokedAt != "":
		return registry.Errorf(registry.RevokedVersion, "%s was revoked: %s", p.ref(), printable(p.Reason))
	case !p.Enabled:
		return registry.Errorf(registry.Disabled, "%s is disabled%s", p.ref(), because(p.Reason))
	case p.Dialect != proj.Dialect:
		return fmt.Errorf("%s is for %s, the project %s is of %s", p.ref(), p.Dialect, proj.Root, proj.Dialect)
	case !kind.Executable():
		return fmt.Errorf("%s is a %s pack: the platform reads it from the registry; nothing is installed into a project (fetch it with sf plugin pull)", p.ref(), kind)
	case exp != "" && kind.Execution() != pack.RunsInJob:
		return fmt.Errorf("%s is a %s plugin, which does not run in a job: install it without --exp", p.ref(), kind)
	}
	return nil
}

// replace puts a verified copy of a version in place of what lies at dir.
func (a app) replace(ctx context.Context, c *client.Client, p published, dir string, policy rule.Policy) error {
	stage, err := stageIn(filepath.Dir(dir), filepath.Base(dir))
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if err := a.unpackInto(ctx, c, p, stage, policy); err != nil {
		return err
	}
	return swap(stage, dir)
}

// refuseLinks makes sure that no part of a path below root is a symbolic link: a project that somebody else made must not
// lead an install to replace a folder elsewhere.
func refuseLinks(root, path string) error {
	for at := path; len(at) > len(root); at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Mode()&os.ModeSymlink != 0 {
			return fmt.Errorf("%s is a symbolic link: a plugin is installed into a folder of the project itself", at)
		}
	}
	return nil
}

// swap moves stage to target and removes what was there. When it fails, that is still there.
func swap(stage, target string) error {
	old := stage + ".old"
	err := os.Rename(target, old)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	replaced := err == nil
	if err := os.Rename(stage, target); err != nil {
		if replaced {
			err = errors.Join(err, os.Rename(old, target))
		}
		return err
	}
	if err := durable.SyncFolder(filepath.Dir(target)); err != nil || !replaced {
		return err
	}
	return os.RemoveAll(old)
}

// pluginRemove takes a plugin out of an experiment's lock.
func (a app) pluginRemove() *cobra.Command {
	var flags pluginFlags
	cmd := &cobra.Command{
		Use: "remove OWNER/NAME --exp EXPERIMENT", Short: "Take a plugin out of an experiment's plugins.lock.json", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.completePlugins,
		Long: `Take a plugin out of an experiment's plugins.lock.json; with the last one gone the file is removed. The copy in the project
stays, since other experiments may use it.`,
		RunE: func(_ *cobra.Command, args []string) error {
			ref, err := parseRef(args[0])
			if err != nil {
				return err
			}
			if flags.exp == "" {
				return usagef("--exp is required: the experiment whose lock is changed")
			}
			proj, err := flags.project(a.env)
			if err != nil {
				return err
			}
			locked, err := openPluginsLock(proj, flags.exp)
			if err != nil {
				return err
			}
			if !locked.Remove(id(ref)) {
				return registry.Errorf(registry.NotFound, "%s is not in %s", id(ref), locked.path)
			}
			if err := locked.save(); err != nil {
				return err
			}
			if a.opt.json {
				return a.env.writeJSON(map[string]any{"id": id(ref), "lock": locked.path, "plugins": len(locked.Entries)})
			}
			_, err = fmt.Fprintf(a.env.Out, "removed %s from %s\n", id(ref), locked.path)
			return err
		},
	}
	flags.add(cmd)
	return cmd
}
