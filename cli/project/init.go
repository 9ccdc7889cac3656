package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/admission/pyyaml"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// InitOptions say what project to make.
type InitOptions struct {
	Dialect dialect.Dialect
	Name    string     // "" is the folder's name
	By      string     // who makes it, as the marker records
	Git     bool       // make a repository with one commit, where there is none and git is installed
	Client  *Installed // where the bases of configs/ and the text of common/ come from; nil: the folders hold a README alone
}

// Init makes a project of a folder, which may hold other files already. Nothing that is there is overwritten; when anything
// fails, nothing of the project is left. warnings is what went wrong with git alone.
func Init(dir string, opt InitOptions) (p *Project, warnings []string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, nil, err
	}
	if opt.Name == "" {
		opt.Name = filepath.Base(dir)
	}
	if _, err := name.Project(opt.Name); err != nil {
		return nil, nil, registry.Errorf(registry.Invalid, "the name %.100q can't be a project's: use only ASCII letters, digits, '.', '_' and '-' (--name chooses another than the folder's)", opt.Name)
	}
	if err := refuseTaken(dir, opt.Dialect); err != nil {
		return nil, nil, err
	}
	if err := makeProject(dir, opt); err != nil {
		return nil, nil, err
	}
	if opt.Git {
		warnings = firstCommit(dir)
	}
	p, err = Find(dir, Options{Dialect: opt.Dialect})
	return p, warnings, err
}

// refuseTaken refuses a folder that is a project, or that has what a project would get.
func refuseTaken(dir string, d dialect.Dialect) error {
	for _, other := range dialect.All {
		if isFile(filepath.Join(dir, other.Names().Marker)) {
			return registry.Errorf(registry.Conflict, "%s is a project already: it has a %s", dir, other.Names().Marker)
		}
	}
	for _, taken := range []string{ExperimentsDir, "configs", "common", d.Names().Marker} {
		if _, err := os.Lstat(filepath.Join(dir, taken)); err == nil {
			return registry.Errorf(registry.Conflict, "%s has a %s already, and nothing is overwritten: choose another folder, or move it away", dir, taken)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// makeProject lays the project out beside its place and moves it there, the marker last: without it there is no project.
func makeProject(dir string, opt InitOptions) (err error) {
	_, statErr := os.Stat(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	stage, err := os.MkdirTemp(dir, ".init-*")
	if err != nil {
		return err
	}
	var moved []string
	defer func() {
		os.RemoveAll(stage)
		if err == nil {
			return
		}
		for _, path := range moved {
			os.RemoveAll(path)
		}
		if statErr != nil {
			os.Remove(dir) // we made it, and it is empty again
		}
	}()
	if err := layOut(stage, opt); err != nil {
		return err
	}
	for _, entry := range []string{"common", "configs", ExperimentsDir, ".gitignore", "README.md", opt.Dialect.Names().Marker} {
		to := filepath.Join(dir, entry)
		if _, err := os.Lstat(to); err == nil {
			continue // a README or a .gitignore of the user's
		}
		if err := os.Rename(filepath.Join(stage, entry), to); err != nil {
			return err
		}
		moved = append(moved, to)
	}
	return durable.SyncFolder(dir)
}

// layOut writes all files of a project.
func layOut(stage string, opt InitOptions) error {
	root, err := os.OpenRoot(stage)
	if err != nil {
		return err
	}
	defer root.Close()
	files := scaffoldFiles(opt)
	if opt.Client != nil {
		c := newCopier(root)
		from, err := os.OpenRoot(opt.Client.scaffold("project"))
		if err != nil {
			return err
		}
		defer from.Close()
		for _, dir := range []string{"configs", "common"} {
			if err := root.Mkdir(dir, 0o755); err != nil {
				return err
			}
			below, err := root.OpenRoot(dir)
			if err != nil {
				return err
			}
			c.to = below
			err = c.copyTree(from, dir)
			below.Close()
			if err != nil {
				return err
			}
		}
	}
	for path, text := range files {
		if _, err := root.Stat(path); err == nil {
			continue // the client's own
		}
		if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// scaffoldFiles are the files of a project as we write them. Both clients read the marker and the .gitignore as their own.
func scaffoldFiles(opt InitOptions) map[string]string {
	n := opt.Dialect.Names()
	ignored := []string{"outputs/", "datasets/", n.PluginsDir + "/", "__pycache__/", "*.pyc", ".venv/", ".env", "*.pem", "id_rsa*", ".DS_Store"}
	if opt.Dialect == dialect.TunePlane {
		// The client keeps its previews there, and then finds the tree dirty at the next submission.
		ignored = append(ignored, ".tuneplane-data/")
	}
	return map[string]string{
		n.Marker: fmt.Sprintf("# This file marks the project's folder; commands find the project by it.\napiVersion: %s\nname: %s\ncreated_by: %s\n",
			n.Project, yamlText(opt.Name), opt.By),
		".gitignore":                 strings.Join(ignored, "\n") + "\n",
		ExperimentsDir + "/.gitkeep": "",
		"common/__init__.py":         "",
		"common/README.md":           "# common\n\nPython code that several experiments use, as `common.<module>`. It travels with every job.\n",
		"configs/README.md":          "# configs\n\nYAML files that the config.yaml of an experiment names below `defaults`: it inherits them and writes down only what differs.\n",
		"README.md": fmt.Sprintf("# %s\n\nExperiments lie below `experiments/`, what they share below `configs/` and `common/`.\n\n"+
			"    sf recipe ls                          # the methods there are\n    sf new my-run --method <method>       # a new experiment\n"+
			"    sf validate my-run                    # what is wrong with it, without a server\n    sf submit my-run --profile <hardware> # run it\n", opt.Name),
	}
}

// yamlText is a project's name as a YAML text: one that YAML reads as something else gets quotes.
func yamlText(s string) string {
	if doc, _ := pyyaml.Load([]byte(s), pyyaml.Options{}); doc != nil && doc.Kind == pyvalue.Str && doc.Text == s {
		return s
	}
	return "'" + s + "'"
}

// firstCommit makes a repository of the folder, with an identity of its own where the user has none: a submission wants a
// commit to name.
func firstCommit(dir string) (warnings []string) {
	if _, err := exec.LookPath("git"); err != nil {
		return []string{"git is not installed: the project is in no repository"}
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		return nil
	}
	p := &Project{Root: dir}
	steps := [][]string{{"init", "-q"}}
	if out, err := p.git("config", "user.email"); err != nil || strings.TrimSpace(out) == "" {
		steps = append(steps, []string{"config", "user.email", "gatehouse@localhost"}, []string{"config", "user.name", "sf init"})
	}
	steps = append(steps, []string{"add", "-A"}, []string{"-c", "commit.gpgsign=false", "commit", "-q", "-m", "sf init: a new project"})
	for _, args := range steps {
		if _, err := p.git(args...); err != nil {
			return []string{fmt.Sprintf("git %s: %v", strings.Join(args, " "), err)}
		}
	}
	return nil
}
