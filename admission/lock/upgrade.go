package lock

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// Upgrade says how a lock is brought to the catalogue (recipes-and-locks.md 1.3).
type Upgrade struct {
	FrameworkVersion    string // "" keeps the locked one
	AcceptRuntimeChange bool   // take the default when the locked one is gone
}

// Refused is an inspection that stops what was asked for.
type Refused struct{ Inspection }

func (r *Refused) Error() string { return r.Message }

// Plan is what an upgrade would write.
type Plan struct {
	Inspection         // State Current, Changes from the old lock to the new one
	Lock       *Recipe // the new lock
	Text       []byte  // and its file
}

// Plan decides the upgrade of an inspected lock. config is asked for the experiment's config once the state and the version
// allow an upgrade: its parameters are what the new lock binds (nil for none), its error ends the upgrade. The error is a
// *Refused when the lock's state or the version asked for stops it.
func (i Inspection) Plan(u Upgrade, config func(catalogue.Entry) (*pyvalue.Value, error)) (Plan, error) {
	version, err := i.target(u)
	if err != nil {
		return Plan{}, err
	}
	values, err := config(*i.entry)
	if err != nil {
		return Plan{}, err
	}
	next, text, err := New(i.subject.Catalogue, *i.entry, version, values)
	if err != nil {
		return Plan{}, err
	}
	i.Changes = i.compare(*i.entry, version)
	i.FrameworkVersion, i.Breaks = version, nil
	return Plan{i.as(Current, "%s records %s %s for %s %s", i.Path, next.Name, next.Version, next.Framework, version), next, text}, nil
}

// target is the framework version that an upgrade moves to.
func (i Inspection) target(u Upgrade) (string, error) {
	version := pyvalue.Strip(u.FrameworkVersion)
	switch {
	case i.State == Malformed || i.State == CoreIncompat:
		return "", &Refused{i}
	case version != "":
	case i.State != RuntimeRemoved:
		version = i.FrameworkVersion
	case u.AcceptRuntimeChange:
		version = i.entry.DefaultVersion
	default:
		return "", &Refused{i}
	}
	if _, ok := i.entry.Variant(version); !ok {
		i.FrameworkVersion = version
		return "", &Refused{i.as(RuntimeRemoved, "spec.framework.version: the catalogue has no %s %.100q; it has %s",
			i.entry.Framework, version, strings.Join(i.entry.Supported(), ", "))}
	}
	return version, nil
}

// New is a fresh lock of a recipe for one of its framework versions, "" for the default, and the bytes of its file.
func New(c *catalogue.Catalogue, e catalogue.Entry, version string, config *pyvalue.Value) (*Recipe, []byte, error) {
	if version == "" {
		version = e.DefaultVersion
	}
	if _, ok := e.Variant(version); !ok {
		return nil, nil, fmt.Errorf("the recipe %s has no framework version %.100q; it has %s", e.Name, version, strings.Join(e.Supported(), ", "))
	}
	if e.ManifestDigest == "" || e.TemplateDigest == "" || e.Params == nil || e.Entrypoint == nil {
		return nil, nil, fmt.Errorf("the catalogue of %s %s lists %s without what a lock records of it; import the release from an installed client (sf admin catalog import)",
			c.Dialect(), c.Release(), e.Name)
	}
	r := recorded(c, e, version)
	r.Bindings = Bind(e, config)
	text, err := r.Encode()
	return r, text, err
}

// recorded is what a lock of the recipe says but for its bindings.
func recorded(c *catalogue.Catalogue, e catalogue.Entry, version string) *Recipe {
	variant, _ := e.Variant(version)
	return &Recipe{
		APIVersion: c.Dialect().Names().RecipeLock, Name: e.Name, Version: e.Version, Digest: e.Digest,
		ManifestDigest: e.ManifestDigest, TemplateDigest: e.TemplateDigest,
		Framework: e.Framework, FrameworkVersion: version, RuntimeID: variant.RuntimeID,
		CoreVersion: c.Release(), CoreRequires: e.CoreRequires,
	}
}

// Bind lists the parameters of a recipe that a config sets, and the recipe's entrypoint (recipes-and-locks.md 1.1). A value
// of null is set too.
func Bind(e catalogue.Entry, config *pyvalue.Value) *Bindings {
	b := &Bindings{}
	if e.Entrypoint != nil {
		b.Entrypoint = &Entrypoint{e.Entrypoint.Kind, e.Entrypoint.Value}
	}
	if e.Params == nil || config == nil || config.Kind != pyvalue.Map {
		return b
	}
	for name, p := range e.Params.All() {
		if _, set := At(config, p.Path); set {
			b.Params = append(b.Params, BoundParam{name, p.Path, p.Type})
		}
	}
	b.sort()
	return b
}

// At finds the value of a dotted path in a config: as one flat key first, then segment by segment. The empty path finds none.
func At(config *pyvalue.Value, path string) (v *pyvalue.Value, ok bool) {
	if path == "" || config == nil || config.Kind != pyvalue.Map {
		return nil, false
	}
	if config.Has(path) {
		return config.Get(path), true
	}
	for segment := range strings.SplitSeq(path, ".") {
		if config == nil || config.Kind != pyvalue.Map || !config.Has(segment) {
			return nil, false
		}
		config = config.Get(segment)
	}
	return config, true
}

// DiffBindings lists the bindings in which two locks differ, by name, as "params.<name>" and "entrypoint". A binding that
// one lock does not record is "" there.
func DiffBindings(old, next *Recipe) []Change {
	was, now := old.bindings(), next.bindings()
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(merged(was, now))) {
		if was[name] != now[name] {
			changes = append(changes, Change{Field: name, Locked: was[name], Current: now[name]})
		}
	}
	return changes
}

func merged(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// bindings are a lock's bindings as texts.
func (r *Recipe) bindings() map[string]string {
	texts := make(map[string]string)
	if r == nil || r.Bindings == nil {
		return texts
	}
	for _, p := range r.Bindings.Params {
		texts["params."+p.Name] = p.Path + " (" + p.Type + ")"
	}
	if e := r.Bindings.Entrypoint; e != nil {
		texts["entrypoint"] = e.Kind + ":" + e.Value
	}
	return texts
}
