package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// The folders of a project, and the files of an experiment.
const (
	ExperimentsDir = "experiments"
	SmokeDir       = "smoke"
	ConfigFile     = "config.yaml"
)

// Experiment is a folder of a project that one job is made from.
type Experiment struct {
	Project *Project
	Name    string // the last element of Path
	Path    string // below the project's folder, with slashes
	Typed   string // Path as the user wrote it: a slash at the end is kept (recipes-and-locks.md 6, spec.source.exp)
	Dir     string // absolute
}

// file is the path of one of its files below the project's folder.
func (e *Experiment) file(name string) string { return path.Join(e.Path, name) }

// Read is one of the experiment's files, fs.ErrNotExist when it is not there.
func (e *Experiment) Read(name string) ([]byte, error) { return e.Project.read(e.file(name)) }

// IsFile reports whether the experiment has a regular file of that name, which lies in the project.
func (e *Experiment) IsFile(name string) bool { return e.Project.isFile(e.file(name)) }

func (p *Project) isFile(name string) bool {
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return false
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(name))
	return err == nil && info.Mode().IsRegular()
}

// RecipeLock is the recipe lock; nil when the experiment has none. What can't be read is a *Fault.
func (e *Experiment) RecipeLock() (*lock.Recipe, error) {
	src, err := e.RecipeLockBytes()
	if src == nil || err != nil {
		return nil, err
	}
	r, err := lock.ParseRecipe(src, e.Project.Dialect)
	if err != nil {
		return nil, lockFault(e.file(lock.RecipeFile), err)
	}
	return r, nil
}

// RecipeLockBytes is the recipe lock as it stands; nil when the experiment has none.
func (e *Experiment) RecipeLockBytes() ([]byte, error) {
	src, err := e.Read(lock.RecipeFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return src, err
}

// PluginsLock is the plugins lock; one that is not there is empty. What can't be read is a *Fault.
func (e *Experiment) PluginsLock() (lock.Plugins, error) {
	empty := lock.Plugins{Dialect: e.Project.Dialect}
	src, err := e.Read(lock.PluginsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, err
	}
	l, err := lock.ParsePlugins(src, e.Project.Dialect)
	if err != nil {
		return empty, lockFault(e.file(lock.PluginsFile), err)
	}
	return l, nil
}

// lockFault places what package lock found wrong in its file.
func lockFault(file string, err error) error {
	f := &Fault{File: file, Message: err.Error()}
	if e, ok := errors.AsType[*lock.Error](err); ok {
		f.Line, f.Column, f.Field, f.Message, f.Hint = e.Line, e.Column, e.Field, e.Message, e.Hint
	}
	return f
}

// WriteRecipeLock writes recipe.lock.json durably.
func (e *Experiment) WriteRecipeLock(text []byte) error { return e.write(lock.RecipeFile, text) }

// WritePluginsLock writes plugins.lock.json durably; a lock without entries has no file.
func (e *Experiment) WritePluginsLock(l lock.Plugins) error {
	if len(l.Entries) > 0 {
		text, err := l.Encode()
		if err != nil {
			return fmt.Errorf("%s: %w", e.file(lock.PluginsFile), err)
		}
		return e.write(lock.PluginsFile, text)
	}
	dir, err := e.realDir()
	if err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, lock.PluginsFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// write replaces one of the experiment's files. A link with the file's name is replaced, never followed.
func (e *Experiment) write(name string, content []byte) error {
	dir, err := e.realDir()
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, name), content, 0o644)
}

// realDir is the experiment's folder with links resolved, which must lie in the project.
func (e *Experiment) realDir() (string, error) {
	dir, err := filepath.EvalSymlinks(e.Dir)
	if err != nil {
		return "", err
	}
	if _, ok := e.Project.below(dir); !ok {
		return "", &Fault{File: e.Path, Message: fmt.Sprintf("leads out of the project, to %.200q", dir), Hint: "Put the folder itself into the project."}
	}
	return dir, nil
}

// below is the path of an absolute one below the project's folder, with slashes; ok is false when it lies outside.
func (p *Project) below(abs string) (rel string, ok bool) {
	rel, err := filepath.Rel(p.Root, abs)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.ToSlash(rel), true
}

// PluginDir is where a plugin is installed: by its name in forge, below its owner's folder in tuneplane (wire.md 4.4).
func (p *Project) PluginDir(owner, pack string) string {
	dir := filepath.Join(p.Root, p.Dialect.Names().PluginsDir)
	if p.Dialect == dialect.TunePlane {
		dir = filepath.Join(dir, owner)
	}
	return filepath.Join(dir, pack)
}

// Experiments lists the folders below experiments/, sorted by name.
func (p *Project) Experiments() ([]*Experiment, error) { return p.folders(ExperimentsDir) }

// Locked lists the experiments that have a recipe lock, below experiments/ and then smoke/, each sorted by name: what an
// upgrade of all goes over (recipes-and-locks.md 1.3).
func (p *Project) Locked() ([]*Experiment, error) {
	var all []*Experiment
	for _, dir := range []string{ExperimentsDir, SmokeDir} {
		list, err := p.folders(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return slices.DeleteFunc(all, func(e *Experiment) bool { return !e.IsFile(lock.RecipeFile) }), nil
}

// maxExperiments bounds how many folders are looked at.
const maxExperiments = 10_000

func (p *Project) folders(below string) ([]*Experiment, error) {
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), below)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, p.unread(below, err)
	}
	if len(entries) > maxExperiments {
		return nil, registry.Errorf(registry.TooLarge, "%s has %d entries, more than %d", below, len(entries), maxExperiments)
	}
	var list []*Experiment
	for _, entry := range entries {
		path := below + "/" + entry.Name()
		if info, err := root.Stat(filepath.FromSlash(path)); err == nil && info.IsDir() {
			list = append(list, p.at(path, path))
		}
	}
	return list, nil
}

// Config is the experiment's config.yaml with its `defaults` merged; nil when the experiment has none.
func (e *Experiment) Config() (*pyvalue.Value, error) {
	if !e.IsFile(ConfigFile) && !e.Project.exists(e.file(ConfigFile)) {
		return nil, nil
	}
	return e.Project.Config(e.file(ConfigFile))
}

// exists reports whether there is anything of that name, be it a link that leads nowhere.
func (p *Project) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(p.Root, filepath.FromSlash(name)))
	return err == nil
}
