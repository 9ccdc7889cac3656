// Package project is a user's project as the real clients lay it out (recipes-and-locks.md 1, 2 and 7): its marker, its
// experiments, their config.yaml with `defaults`, their locks, and what git says of it. A user can change between those
// clients and ours without changing a file.
//
// The contract:
//   - Nothing outside the project's folder is read or written: every file is opened below it, and a link that leads out is an
//     error, as is a base of `defaults` that lies outside.
//   - What a person wrote and got wrong is a *Fault: it names the file, the line, the field, what stands there and the fix.
//   - A file that is written has its old content or its new one, whatever happens (package durable).
//   - Memory is bounded: a document has at most limit.Document bytes, a chain of `defaults` at most MaxConfigFiles files.
package project

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Project is a project's folder.
type Project struct {
	Root    string // absolute, links resolved
	Dialect dialect.Dialect
	Name    string // as the marker states it, stripped; CheckName has the rule
}

// Options narrow what Find looks for.
type Options struct {
	Dialect dialect.Dialect   // "": whichever is there
	Vars    map[string]string // environment; a dialect's RootVar names the project's folder outright
}

// Open finds the project that dir lies in: the nearest folder, upwards, with a marker. It is registry.NotFound when there
// is none, and registry.Invalid when the folder has markers of both dialects.
func Open(dir string) (*Project, error) { return Find(dir, Options{}) }

// Find is Open with options.
func Find(dir string, opt Options) (*Project, error) {
	for _, d := range dialect.All {
		root := opt.Vars[d.Names().RootVar]
		if root == "" || (opt.Dialect != "" && opt.Dialect != d) {
			continue
		}
		if !isFile(filepath.Join(root, d.Names().Marker)) {
			return nil, registry.Errorf(registry.NotFound, "%s=%.200s is no project: it has no %s", d.Names().RootVar, root, d.Names().Marker)
		}
		return open(root, d)
	}
	return walkUp(dir, opt.Dialect)
}

func walkUp(dir string, want dialect.Dialect) (*Project, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for ; ; at = filepath.Dir(at) {
		var found []dialect.Dialect
		for _, d := range dialect.All {
			if (want == "" || want == d) && isFile(filepath.Join(at, d.Names().Marker)) {
				found = append(found, d)
			}
		}
		switch {
		case len(found) == 1:
			return open(at, found[0])
		case len(found) > 1:
			return nil, registry.Errorf(registry.Invalid, "%s is a project of both dialects: choose one with --dialect", at)
		case filepath.Dir(at) == at:
			return nil, registry.Errorf(registry.NotFound, "no project here: no %s in %s or above; sf init makes one", markers(want), dir)
		}
	}
}

// markers names the files that were looked for.
func markers(want dialect.Dialect) string {
	if want != "" {
		return want.Names().Marker
	}
	return dialect.Forge.Names().Marker + " or " + dialect.TunePlane.Names().Marker
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// open reads the marker of a project.
func open(root string, d dialect.Dialect) (*Project, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	p := &Project{Root: root, Dialect: d}
	doc, _, err := p.loadYAML(d.Names().Marker)
	if err != nil {
		return nil, err
	}
	if doc.Truthy() && doc.Kind != pyvalue.Map {
		return nil, fault(d.Names().Marker, doc, "", "found %s, expected a mapping with the key name", doc.TypeName())
	}
	p.Name = doc.Get("name").TextOf()
	return p, nil
}

// CheckName holds the project's name to the clients' rule: a submission needs it.
func (p *Project) CheckName() error {
	marker := p.Dialect.Names().Marker
	if p.Name == "" {
		return &Fault{File: marker, Field: "name", Message: "found no name", Hint: "Add a line such as name: my-project."}
	}
	if _, err := name.Project(p.Name); err != nil {
		doc, _, _ := p.loadYAML(marker) // read before; a position is all that is wanted
		f := fault(marker, doc.Get("name"), "name", "found the project name %.100q", p.Name)
		f.Hint = "Use only ASCII letters, digits, '.', '_' and '-', and neither . nor .. alone."
		return f
	}
	return nil
}

// Experiment finds an experiment by its name below experiments/, or by its path in the project. It is registry.NotFound
// when there is no such folder, registry.Invalid when exp can't be a path of an experiment.
func (p *Project) Experiment(exp string) (*Experiment, error) {
	path, err := name.ExpPath(exp)
	if err != nil {
		return nil, badName(err)
	}
	typed := exp
	if !strings.Contains(exp, "/") {
		path, typed = ExperimentsDir+"/"+path, ExperimentsDir+"/"+exp
	}
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(path))
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir():
		return nil, registry.Errorf(registry.NotFound, "the project %s has no experiment %s", p.Root, path)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p.at(path, typed), nil
}

// badName is the error of a grammar of names with how to mend the name.
func badName(err error) error {
	if e, ok := errors.AsType[*name.Error](err); ok {
		return registry.Errorf(registry.Invalid, "%s: %s", e.Message, e.Hint)
	}
	return registry.Errorf(registry.Invalid, "%s", err)
}

func (p *Project) at(path, typed string) *Experiment {
	return &Experiment{
		Project: p, Name: path[strings.LastIndexByte(path, '/')+1:], Path: path, Typed: typed,
		Dir: filepath.Join(p.Root, filepath.FromSlash(path)),
	}
}

// read is a file of the project, path below its folder with slashes. A link out of the project is an error, and so are
// more than limit.Document bytes.
func (p *Project) read(path string) ([]byte, error) {
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(filepath.FromSlash(path))
	if err != nil {
		return nil, p.unread(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Fault{File: path, Message: "is no regular file", Hint: "Put a plain file in its place."}
	}
	f, err := root.Open(filepath.FromSlash(path))
	if err != nil {
		return nil, p.unread(path, err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, limit.Document+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(src) > limit.Document {
		return nil, &Fault{File: path, Message: fmt.Sprintf("has more than %d bytes", limit.Document), Hint: "Make the file smaller."}
	}
	return src, nil
}

// unread words why a file could not be opened. A missing file stays fs.ErrNotExist.
func (p *Project) unread(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w", path, err)
	}
	if target, lerr := filepath.EvalSymlinks(filepath.Join(p.Root, filepath.FromSlash(path))); lerr == nil {
		return &Fault{File: path, Message: fmt.Sprintf("leads out of the project, to %.200q", target), Hint: "Put the file itself into the project.", err: errOutside}
	}
	return fmt.Errorf("%s: %w", path, err)
}
