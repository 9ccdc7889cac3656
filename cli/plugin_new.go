package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/cli/scaffold"
)

// pluginNew makes a pack that passes the check at once.
func (a app) pluginNew() *cobra.Command {
	var kindName, dialectName, dir string
	cmd := &cobra.Command{
		Use: "new --kind KIND NAME [--dialect DIALECT] [--dir DIR]", Short: "Make a new pack that passes the check",
		Long: "Make a new pack in the folder NAME, or the one that --dir names. It passes `sf plugin check` as it is.\n\nKinds: " + kindNames() + ".",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			kind, ok := pack.ParseKind(kindName)
			if !ok {
				return usagef("--kind: %.40q is none of %s", kindName, kindNames())
			}
			d, err := a.chosenDialect(projectFlags{dialectName})
			if err != nil {
				return err
			}
			if _, err := name.RepositoryName("owner", args[0]); err != nil {
				return usageError{err}
			}
			files, err := scaffold.New(kind, d, args[0])
			if err != nil {
				return usageError{err}
			}
			if dir == "" {
				dir = args[0]
			}
			return a.makePack(dir, files)
		},
	}
	cmd.Flags().StringVar(&kindName, "kind", "", "the kind of pack")
	cmd.Flags().StringVar(&dialectName, "dialect", "", "forge or tuneplane (default: the project's, else forge)")
	cmd.Flags().StringVar(&dir, "dir", "", "the folder to make (default NAME)")
	completeFlag(cmd, "kind", kindList())
	completeFlag(cmd, "dialect", dialectList())
	return cmd
}

// makePack writes the files beside their place, checks them, and moves them there.
func (a app) makePack(dir string, files []scaffold.File) error {
	stage, err := stageFor(dir)
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	if err := writeFiles(stage, files); err != nil {
		return err
	}
	d, err := checkPackAt(stage, admission.CheckOptions{})
	if err != nil {
		return err
	}
	if !d.Allowed {
		return d.Err()
	}
	if err := moveNew(stage, dir); err != nil {
		return err
	}
	if a.opt.json {
		paths := make([]string, len(files))
		for i, f := range files {
			paths[i] = f.Path
		}
		return a.env.writeJSON(map[string]any{"dir": dir, "files": paths, "decision": d})
	}
	fmt.Fprintf(a.env.Out, "made %s: %s %s (%s, %s)\n", dir, d.Subject.Name, d.Subject.Version, d.Subject.Kind, d.Subject.Dialect)
	for _, f := range files {
		fmt.Fprintf(a.env.Out, "   %s\n", f.Path)
	}
	_, err = fmt.Fprintf(a.env.Out, "next: sf plugin check %s; sf plugin publish %[1]s\n", dir)
	return err
}

func writeFiles(dir string, files []scaffold.File) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range files {
		if err := root.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if f.Executable {
			mode = 0o755
		}
		if err := root.WriteFile(f.Path, f.Content, mode); err != nil {
			return err
		}
	}
	return nil
}

func kindList() []string {
	var all []string
	for _, k := range pack.Kinds() {
		all = append(all, string(k))
	}
	return all
}

func kindNames() string { return strings.Join(kindList(), ", ") }

func dialectList() []string {
	var all []string
	for _, d := range dialect.All {
		all = append(all, string(d))
	}
	return all
}

// errNotEmpty says that a folder to be made is already there.
var errNotEmpty = errors.New("exists and is not empty")

// stageFor makes a folder beside target, or in it where it exists, in which target's content is made ready. target must not exist, or be empty.
func stageFor(target string) (string, error) {
	entries, err := os.ReadDir(target)
	switch {
	case err == nil && len(entries) > 0:
		return "", fmt.Errorf("%s %w", target, errNotEmpty)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", err
	}
	if err == nil { // it stays the folder that it is: somebody may stand in it, or have mounted it
		return stageIn(target, "new")
	}
	return stageIn(filepath.Dir(filepath.Clean(target)), filepath.Base(target))
}

// stageIn makes a folder in parent, which is made too, for the content of a folder of that name.
func stageIn(parent, base string) (string, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	stage, err := os.MkdirTemp(parent, "."+base+".*")
	if err != nil {
		return "", err
	}
	return stage, os.Chmod(stage, 0o755)
}

// moveNew moves a finished stage of stageFor to its target: into it where the stage lies in it, else in its place.
func moveNew(stage, target string) error {
	if filepath.Dir(stage) != filepath.Clean(target) {
		return os.Rename(stage, target)
	}
	entries, err := os.ReadDir(stage)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(stage, e.Name()), filepath.Join(target, e.Name())); err != nil {
			return err
		}
	}
	return os.Remove(stage)
}
