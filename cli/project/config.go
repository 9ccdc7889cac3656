package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// Bounds of one config with everything that its `defaults` bring in.
const (
	MaxConfigFiles = 200 // files read, one that is named twice counted twice
	MaxConfigDepth = 32  // files below each other
	MaxConfigBytes = 8 * limit.MiB
)

// The keys of a config that steer how it is merged.
const (
	defaultsKey = "defaults"
	overrideKey = "_override_"
)

// Config reads a YAML document of the project, path below its folder, and merges what its `defaults` name below it
// (recipes-and-locks.md 7): mappings deep, later ones win, own keys last; a mapping with a true `_override_` replaces what it
// would be merged with. A name without .yaml or .yml gets .yaml in place of its suffix. A base that is missing, that comes
// back to itself or that lies outside the project is a *Fault with the place of its name. An empty document is an empty map.
func (p *Project) Config(file string) (*pyvalue.Value, error) {
	r := resolver{p: p}
	return r.resolve(file, nil)
}

// ConfigAlone reads a document and leaves its `defaults` as they stand.
func (p *Project) ConfigAlone(file string) (*pyvalue.Value, error) {
	doc, _, err := p.loadYAML(file)
	if err != nil {
		return nil, err
	}
	return mapping(file, doc)
}

// mapping holds a document to being a mapping; a false one (nothing, 0, an empty list) counts as an empty mapping.
func mapping(file string, doc *pyvalue.Value) (*pyvalue.Value, error) {
	if !doc.Truthy() {
		return &pyvalue.Value{Kind: pyvalue.Map}, nil
	}
	if doc.Kind != pyvalue.Map {
		return nil, fault(file, doc, "<root>", "found %s, expected a mapping", doc.TypeName())
	}
	return doc, nil
}

// resolver reads one config and its bases.
type resolver struct {
	p     *Project
	files int
	bytes int
}

// resolve merges a file; chain holds the files that led to it, links resolved.
func (r *resolver) resolve(file string, chain []string) (*pyvalue.Value, error) {
	doc, size, err := r.p.loadYAML(file)
	if err != nil {
		return nil, err
	}
	r.files++
	if r.bytes += size; r.files > MaxConfigFiles || r.bytes > MaxConfigBytes {
		return nil, &Fault{File: file, Field: defaultsKey, Hint: "Name fewer bases.",
			Message: fmt.Sprintf("a config and its bases are more than %d files or %d MiB together", MaxConfigFiles, MaxConfigBytes/limit.MiB)}
	}
	if doc, err = mapping(file, doc); err != nil {
		return nil, err
	}
	self, err := filepath.EvalSymlinks(filepath.Join(r.p.Root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	chain = append(chain[:len(chain):len(chain)], self)
	own, bases, err := split(file, doc)
	if err != nil {
		return nil, err
	}
	merged := &pyvalue.Value{Kind: pyvalue.Map}
	for i, b := range bases {
		at := base{file: file, value: b, field: fmt.Sprintf("%s[%d]", defaultsKey, i)}
		next, err := r.find(at, chain)
		if err != nil {
			return nil, err
		}
		below, err := r.resolve(next, chain)
		if err != nil {
			return nil, err
		}
		merged = merge(merged, below)
	}
	return merge(merged, own), nil
}

// split takes the `defaults` out of a document.
func split(file string, doc *pyvalue.Value) (own *pyvalue.Value, bases []*pyvalue.Value, err error) {
	own = &pyvalue.Value{Kind: pyvalue.Map, Line: doc.Line, Column: doc.Column}
	for _, it := range doc.Items {
		if it.Key.Kind != pyvalue.Str || it.Key.Text != defaultsKey {
			own.Items = append(own.Items, it)
		}
	}
	named := doc.Get(defaultsKey)
	switch {
	case named == nil || named.Kind == pyvalue.None:
	case named.Kind == pyvalue.Str:
		bases = []*pyvalue.Value{named}
	case named.Kind == pyvalue.List:
		for i, b := range named.List {
			if b.Kind != pyvalue.Str {
				return nil, nil, fault(file, b, fmt.Sprintf("%s[%d]", defaultsKey, i), "found %s, expected the path of a YAML file", b.TypeName())
			}
		}
		bases = named.List
	default:
		return nil, nil, fault(file, named, defaultsKey, "found %s, expected a path or a list of paths", named.TypeName())
	}
	return own, bases, nil
}

// base is one entry of `defaults`.
type base struct {
	file  string
	value *pyvalue.Value
	field string
}

func (b base) fault(hint, format string, args ...any) *Fault {
	f := fault(b.file, b.value, b.field, format, args...)
	f.Hint = hint
	return f
}

// find is the file that an entry names, below the project's folder.
func (r *resolver) find(b base, chain []string) (string, error) {
	if len(chain) >= MaxConfigDepth {
		return "", b.fault("Make the chain of bases shorter.", "lies more than %d files deep", MaxConfigDepth)
	}
	abs := r.p.locate(b.file, b.value.Text)
	if ext := suffix(abs); ext != ".yaml" && ext != ".yml" {
		abs = strings.TrimSuffix(abs, ext) + ".yaml"
	}
	rel, ok := r.p.below(abs)
	if !ok {
		f := b.fault("Copy the file into the project, for example below configs/.", "%.200q lies outside the project", b.value.Text)
		f.err = errOutside
		return "", f
	}
	info, err := os.Stat(abs)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return "", b.fault("Correct the path; it starts from the folder of the file that names it.", "%.200q does not exist (looked for %.400q)", b.value.Text, rel)
	}
	if err != nil {
		return "", err
	}
	for _, seen := range chain {
		if real, err := filepath.EvalSymlinks(abs); err == nil && real == seen {
			return "", b.fault("Remove the entry.", "%.200q comes back to a file that it is a base of", b.value.Text)
		}
	}
	return rel, nil
}

// suffix is what the clients take for the suffix of a path: unlike filepath.Ext, neither a dot at the beginning of the last
// element nor one at its end makes one.
func suffix(path string) string {
	name := filepath.Base(path)
	if i := strings.LastIndexByte(name, '.'); 0 < i && i < len(name)-1 {
		return name[i:]
	}
	return ""
}

// locate is the absolute path that a name in a file stands for, links resolved as far as there are files.
func (p *Project) locate(file, text string) string {
	abs := text
	if !filepath.IsAbs(text) {
		// Joined by hand: Join would drop a link together with the .. behind it.
		abs = filepath.Join(p.Root, filepath.FromSlash(path.Dir(file))) + string(filepath.Separator) + filepath.FromSlash(text)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	dir, last := filepath.Split(abs)
	if real, err := filepath.EvalSymlinks(dir); err == nil && last != "" && last != ".." && last != "." {
		return filepath.Join(real, last)
	}
	return filepath.Clean(abs)
}

// merge puts over above base.
func merge(base, over *pyvalue.Value) *pyvalue.Value {
	if over.Kind == pyvalue.Map && over.Get(overrideKey).Truthy() {
		return without(over)
	}
	if base == nil || base.Kind != pyvalue.Map || over.Kind != pyvalue.Map {
		return over
	}
	out := &pyvalue.Value{Kind: pyvalue.Map, Line: over.Line, Column: over.Column}
	out.Items = append(out.Items, base.Items...)
	at := make(map[string]int, len(out.Items))
	for i, it := range out.Items {
		if key, ok := it.Key.HashKey(); ok {
			at[key] = i
		}
	}
	for _, it := range over.Items {
		if it.Key.Kind == pyvalue.Str && it.Key.Text == overrideKey {
			continue
		}
		key, _ := it.Key.HashKey()
		if i, known := at[key]; known {
			out.Items[i].Value = merge(out.Items[i].Value, it.Value)
			continue
		}
		at[key] = len(out.Items)
		out.Items = append(out.Items, it)
	}
	return out
}

// without is a mapping less the marker.
func without(v *pyvalue.Value) *pyvalue.Value {
	out := &pyvalue.Value{Kind: pyvalue.Map, Line: v.Line, Column: v.Column}
	for _, it := range v.Items {
		if it.Key.Kind != pyvalue.Str || it.Key.Text != overrideKey {
			out.Items = append(out.Items, it)
		}
	}
	return out
}
