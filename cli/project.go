package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// markers are the files that mark the folder of a project (recipes-and-locks.md 7).
var markers = map[dialect.Dialect]string{dialect.Forge: "starforge.yaml", dialect.TunePlane: "tuneplane.yaml"}

// project is the user's project that commands work on.
type project struct {
	dir     string
	dialect dialect.Dialect
}

// findProject walks up from dir to the nearest folder with a marker. want narrows it to one dialect; "" takes the one
// that is there, and asks when both are.
func findProject(dir string, want dialect.Dialect) (project, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return project{}, err
	}
	for {
		var found []dialect.Dialect
		for _, d := range dialect.All {
			info, err := os.Stat(filepath.Join(at, markers[d]))
			if err == nil && info.Mode().IsRegular() && (want == "" || want == d) {
				found = append(found, d)
			}
		}
		switch {
		case len(found) == 1:
			return project{at, found[0]}, nil
		case len(found) > 1:
			return project{}, usagef("%s is a project of both dialects: choose one with --dialect", at)
		case filepath.Dir(at) == at:
			return project{}, registry.Errorf(registry.NotFound, "no project here: no %s or %s in %s or above", markers[dialect.Forge], markers[dialect.TunePlane], dir)
		}
		at = filepath.Dir(at)
	}
}

// pluginDir is where a pack is installed: by its name in forge, below its owner's folder in tuneplane (wire.md 4.4).
func (p project) pluginDir(owner, pack string) string {
	dir := filepath.Join(p.dir, p.dialect.Names().PluginsDir)
	if p.dialect == dialect.TunePlane {
		dir = filepath.Join(dir, owner)
	}
	return filepath.Join(dir, pack)
}

// experiment is the folder of an experiment: a path in the project, or a name below experiments/.
func (p project) experiment(exp string) (string, error) {
	path, err := name.ExpPath(exp)
	if err != nil {
		return "", usageError{err}
	}
	if filepath.Base(path) == path {
		path = "experiments/" + path
	}
	dir := filepath.Join(p.dir, filepath.FromSlash(path))
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", registry.Errorf(registry.NotFound, "the project has no experiment %s", path)
	}
	return dir, nil
}

// pluginsLock is an experiment's plugins lock and where it lies.
type pluginsLock struct {
	lock.Plugins
	path string
}

// openLock reads an experiment's plugins lock; one that is not there is empty.
func (p project) openLock(exp string) (pluginsLock, error) {
	dir, err := p.experiment(exp)
	if err != nil {
		return pluginsLock{}, err
	}
	l := pluginsLock{lock.Plugins{Dialect: p.dialect}, filepath.Join(dir, lock.PluginsFile)}
	src, err := readFile(l.path, limit.Document+1)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	if l.Plugins, err = lock.ParsePlugins(src, p.dialect); err != nil {
		return l, fmt.Errorf("%s: %w", l.path, err)
	}
	return l, nil
}

// save writes the lock; an empty one has no file.
func (l pluginsLock) save() error {
	if len(l.Entries) == 0 {
		return os.Remove(l.path)
	}
	text, err := l.Encode()
	if err != nil {
		return fmt.Errorf("%s: %w", l.path, err)
	}
	return durable.Replace(l.path, text, 0o644)
}
