package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// NewOptions say what experiment to make.
type NewOptions struct {
	Catalogue        *catalogue.Catalogue
	Recipe           catalogue.Entry
	FrameworkVersion string     // "" is the recipe's default
	Template         string     // the recipe's template folder (Template)
	Client           *Installed // its general template lies below the recipe's; nil: there is none
}

// New makes an experiment from a recipe's template and locks the recipe for it. It is there whole or not at all.
func (p *Project) New(experiment string, opt NewOptions) (*Experiment, error) {
	if _, ok := opt.Recipe.Variant(opt.FrameworkVersion); opt.FrameworkVersion != "" && !ok {
		return nil, registry.Errorf(registry.Invalid, "--framework-version: the recipe %s has no %.100q; it has %s", opt.Recipe.Name, opt.FrameworkVersion, strings.Join(opt.Recipe.Supported(), ", "))
	}
	return p.stage(experiment, func(s *Experiment, root *os.Root) error {
		c := newCopier(root)
		if opt.Client != nil {
			if err := c.copyFrom(opt.Client.scaffold("experiment-template")); err != nil {
				return err
			}
		}
		if err := c.copyFrom(opt.Template); err != nil {
			return err
		}
		if err := root.Remove(".gitkeep"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_, text, err := s.NewLock(opt.Catalogue, opt.Recipe, opt.FrameworkVersion)
		if err != nil {
			return err
		}
		if err := s.WriteRecipeLock(text); err != nil {
			return err
		}
		return s.checkTemplate(opt.Recipe)
	})
}

// checkTemplate refuses a template that lacks what its recipe starts.
func (e *Experiment) checkTemplate(entry catalogue.Entry) error {
	if p := entry.Entrypoint; p != nil && p.Kind == "experiment" && !e.IsFile(p.Value) {
		return fmt.Errorf("the template of %s has no %s, which the recipe starts", entry.Name, p.Value)
	}
	return nil
}

// Fork makes an experiment from a copy of another, without its outputs, and brings its lock to the catalogue. In the copy's
// config the project and the name below swanlab become the experiment's, and so does the title of its README.
func (p *Project) Fork(experiment string, from *Experiment, c *catalogue.Catalogue) (*Experiment, lock.Plan, error) {
	var plan lock.Plan
	source, err := from.RecipeLock()
	if err == nil && (source == nil || source.Name == "") {
		err = registry.Errorf(registry.NotFound, "%s has no %s that names its recipe", from.Path, lock.RecipeFile)
	}
	if err == nil {
		_, err = from.PlanUpgrade(c, source.Name, lock.Upgrade{}) // a refusal names the source, which is to be mended
	}
	if err != nil {
		return nil, plan, err
	}
	e, err := p.stage(experiment, func(s *Experiment, root *os.Root) error {
		tree, err := os.OpenRoot(p.Root)
		if err != nil {
			return err
		}
		defer tree.Close()
		if err := newCopier(root).copyTree(tree, from.Path, "outputs"); err != nil {
			return err
		}
		if err := s.rename(experiment); err != nil {
			return err
		}
		if plan, err = s.PlanUpgrade(c, source.Name, lock.Upgrade{}); err != nil {
			return fmt.Errorf("the lock of the copy: %w", err)
		}
		return s.WriteRecipeLock(plan.Text)
	})
	return e, plan, err
}

// CanMake refuses a name that is no experiment's (registry.Invalid) and one that is taken (registry.Conflict).
func (p *Project) CanMake(experiment string) error {
	if _, err := name.Segment(experiment, "the experiment"); err != nil {
		return badName(err)
	}
	if path := ExperimentsDir + "/" + experiment; p.exists(path) {
		return registry.Errorf(registry.Conflict, "%s is there already", path)
	}
	return nil
}

// stage makes an experiment in a folder beside its place, at the same depth, so that what it names relative to itself is
// found, and moves it there when it is whole.
func (p *Project) stage(experiment string, fill func(s *Experiment, root *os.Root) error) (*Experiment, error) {
	if err := p.CanMake(experiment); err != nil {
		return nil, err
	}
	path := ExperimentsDir + "/" + experiment
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if err := root.MkdirAll(ExperimentsDir, 0o755); err != nil {
		return nil, p.unread(ExperimentsDir, err)
	}
	below, err := filepath.EvalSymlinks(filepath.Join(p.Root, ExperimentsDir))
	if err != nil {
		return nil, err
	}
	if _, ok := p.below(below); !ok {
		return nil, p.unread(ExperimentsDir, errOutside)
	}
	dir, err := os.MkdirTemp(below, "."+experiment+".*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // gone already when all went well
	inside, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer inside.Close()
	rel, _ := p.below(dir)
	if err := errors.Join(os.Chmod(dir, 0o755), fill(p.at(rel, rel), inside)); err != nil {
		return nil, err
	}
	if err := errors.Join(durable.SyncFolder(dir), os.Rename(dir, filepath.Join(below, experiment)), durable.SyncFolder(below)); err != nil {
		return nil, err
	}
	return p.at(path, path), nil
}

var (
	swanlabKey  = pattern.New(`^(\s*)(project|name):\s*.*$`)
	swanlabHead = "swanlab:"
)

// rename puts the experiment's name where a fork has its own.
func (e *Experiment) rename(to string) error {
	err := e.edit(ConfigFile, func(lines []string) {
		inside, depth := false, 0
		for i, line := range lines {
			text := strings.TrimSpace(line)
			indent := len(line) - len(strings.TrimLeft(line, " \t"))
			switch {
			case text == swanlabHead:
				inside, depth = true, indent
			case inside && text != "" && indent <= depth:
				inside = false
			case inside:
				if m := swanlabKey.FindStringSubmatch(line); m != nil {
					lines[i] = m[1] + m[2] + `: "` + to + `"`
				}
			}
		}
	})
	if err != nil {
		return err
	}
	return e.edit("README.md", func(lines []string) {
		for i, line := range lines {
			if strings.HasPrefix(line, "# ") {
				lines[i] = "# " + to
				return
			}
		}
	})
}

// edit rewrites a text file line by line, with one newline at the end; a file that is not there stays so.
func (e *Experiment) edit(file string, change func(lines []string)) error {
	src, err := e.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(src))
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	change(lines)
	return e.write(file, []byte(strings.Join(lines, "\n")+"\n"))
}
