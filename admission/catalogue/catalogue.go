// Package catalogue holds the recipes that the clients of one release know: what ships inside the client, and what was
// published as recipe packs. It answers GET /api/recipes, computes the catalogue digest, and evaluates the handshake
// between a job and the catalogue (recipes-and-locks.md 3 to 5, wire.md 5).
//
// The contract:
//   - A catalogue belongs to one dialect and one client release: two releases have the same recipe ids and no digest in
//     common, and the clients take the first row of a name, so one answer can't serve both.
//   - A name has one row. What ships in the client wins over a pack, as it does on the client.
//   - Nothing here does I/O; a Catalogue does not change after it is made and may be shared.
package catalogue

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// Requirement is the range of client versions that Gatehouse serves, as the handshake states it (wire.md 5.1).
const Requirement = ">=0.1,<1"

// Entry is one recipe. What a client release does not tell of its recipes is nil or empty, which means not known; an
// empty list that is not nil means that there is none. Its JSON is what a registry keeps of a published recipe, and what
// it tells its own client (Extension). It holds facts only: no texts for people, but those of published packs.
type Entry struct {
	Name           string    `json:"name"` // <framework>/<method>, the id that clients and JobSpecs use
	Version        string    `json:"version"`
	Digest         string    `json:"digest"` // recipe digest
	Framework      string    `json:"framework"`
	Adapter        string    `json:"adapter"`         // equal to Framework in every release seen
	DefaultVersion string    `json:"default_version"` // of the framework
	Versions       []Variant `json:"versions"`
	CoreRequires   string    `json:"core_requires"`         // range of client versions; "" is any
	Roles          []string  `json:"roles"`                 // nil: not known
	Plugins        []string  `json:"plugins"`               // algorithms that the recipe needs; nil: not known
	Lifecycle      []string  `json:"lifecycle"`             // actions that it supports; nil: not known
	Observability  string    `json:"observability"`         // Platform, External or "": not known
	Integration    string    `json:"integration,omitempty"` // id of tuneplane's framework integration; "": none or not known
	Params         *Params   `json:"params,omitempty"`      // nil: not known
	Pack           *Pack     `json:"pack,omitempty"`        // nil: it ships in the client

	ManifestDigest     string           `json:"manifest_digest,omitempty"`     // of recipe.yaml, as locks record it; "": not known
	TemplateDigest     string           `json:"template_digest,omitempty"`     // of the template folder, likewise
	Entrypoint         *Entrypoint      `json:"entrypoint,omitempty"`          // what the recipe starts; nil: not known
	LifecycleResources map[string]int64 `json:"lifecycle_resources,omitempty"` // GPUs by action
	RequiredInputs     []string         `json:"required_inputs"`               // of model, train_data, validation_data; nil: not known
	ConfigMode         string           `json:"config_mode,omitempty"`         // how the framework takes its configuration
	ConfigSection      string           `json:"config_section,omitempty"`      // where the parameters lie in an experiment's config; "" is its root
	Category           string           `json:"category,omitempty"`
	Title              string           `json:"title,omitempty"` // of published packs only
	Summary            string           `json:"summary,omitempty"`
}

// Entrypoint is what a recipe, or a framework version of it, starts.
type Entrypoint = pack.Entrypoint

// Params are the hyperparameters that a recipe declares, by name.
type Params = pack.Table[pack.Param]

// Who shows the metrics of a job.
const (
	Platform = "platform"
	External = "external" // a page that observability_url names
)

// Variant is a framework version that a recipe supports.
type Variant struct {
	Version    string      `json:"version"`
	RuntimeID  string      `json:"runtime_id"`           // "" for a runtime that the user brings
	Status     string      `json:"status,omitempty"`     // Deprecated, or "": supported
	Sunset     string      `json:"sunset,omitempty"`     // when a deprecated version goes, as the recipe says it
	Entrypoint *Entrypoint `json:"entrypoint,omitempty"` // instead of the recipe's
}

// Deprecated is the status of a framework version that will go.
const Deprecated = "deprecated"

// Pack says which published pack an entry comes from.
type Pack struct {
	Owner    string        `json:"owner"`
	Name     string        `json:"name"`
	Version  string        `json:"version"`
	Content  digest.Digest `json:"content"`
	Tree     digest.Digest `json:"tree"`
	Manifest digest.Digest `json:"manifest"`
}

// ID is <owner>/<name>.
func (p Pack) ID() string { return p.Owner + "/" + p.Name }

// Alias is the id that the platform's documents give the recipe of a pack, <framework>/<owner>.<name>; "" for what
// ships in the client. No client uses it.
func (e Entry) Alias() string {
	if e.Pack == nil {
		return ""
	}
	return e.Framework + "/" + e.Pack.Owner + "." + e.Method()
}

// Method is the part of the name after the framework.
func (e Entry) Method() string {
	_, method, _ := strings.Cut(e.Name, "/")
	return method
}

// Variant finds a framework version.
func (e Entry) Variant(version string) (Variant, bool) {
	for _, v := range e.Versions {
		if v.Version == version {
			return v, true
		}
	}
	return Variant{}, false
}

// Supported lists the framework versions.
func (e Entry) Supported() []string {
	list := make([]string, len(e.Versions))
	for i, v := range e.Versions {
		list[i] = v.Version
	}
	return list
}

// Bundled is a package that ships inside a client release and has no bytes in the registry (jobspec.md 9).
type Bundled struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
	Hooks   *Hooks `json:"hooks,omitempty"` // of a framework integration; nil: not known
}

// Hooks say which plugins a framework's integration runs (packs.md 8). The launcher refuses a job with any other.
type Hooks struct {
	Algorithms   bool `json:"algorithms"`
	DataPrepJobs bool `json:"data_prep_jobs"`
}

// integrationID is the id of the package that ties a framework to TunePlane and ships inside the client (packs.md 8).
func integrationID(framework string) string { return "tuneplane/framework-" + framework }

// Benchmark is one that ships inside a client release. Its ID has no owner; those of published packs are <owner>.<name>
// (packs.md 6).
type Benchmark struct {
	ID     string   `json:"id"`
	Digest string   `json:"digest"` // directory digest of its folder
	Runner string   `json:"runner"`
	Suites []string `json:"suites"`
}

// Catalogue is the recipes of one dialect and client release.
type Catalogue struct {
	dialect    dialect.Dialect
	release    string
	entries    []Entry
	byName     map[string]int
	bundled    map[[2]string]Bundled // by id and version
	benchmarks []Benchmark
	part       *Part // see WithPart

	once sync.Once
	sum  digest.Digest // see Digest
}

// Part is what one submission needs of the packs' recipes in a catalogue that is not held whole.
type Part struct {
	Digest  digest.Digest // of the whole catalogue
	Entries []Entry       // of packs; those that ship in the client win
	Near    []string      // recipes of packs that the one which was asked for, and isn't there, could be meant to be
	Note    string        // what else there is to say of that
}

// New makes a catalogue. Of two entries with one name, and of two packages with one id and version, the first counts,
// as it does for the clients.
func New(d dialect.Dialect, release string, entries []Entry, bundled []Bundled) *Catalogue {
	c := &Catalogue{dialect: d, release: release, byName: make(map[string]int), bundled: make(map[[2]string]Bundled)}
	for _, e := range entries {
		if _, taken := c.byName[e.Name]; !taken {
			c.byName[e.Name] = len(c.entries)
			c.entries = append(c.entries, e)
		}
	}
	for _, b := range bundled {
		key := [2]string{b.ID, b.Version}
		if _, taken := c.bundled[key]; !taken {
			c.bundled[key] = b
		}
	}
	return c
}

// WithPacks is the catalogue with the recipes of packs added behind its own, sorted by name. Entries whose name is
// taken are not added but returned: no client would see them.
func (c *Catalogue) WithPacks(packs []Entry) (all *Catalogue, shadowed []Entry) {
	packs = c.completed(packs)
	slices.SortStableFunc(packs, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	all = New(c.dialect, c.release, c.entries, c.Bundled())
	all.benchmarks = c.benchmarks
	for _, e := range packs {
		if _, taken := all.byName[e.Name]; taken {
			shadowed = append(shadowed, e)
			continue
		}
		all.byName[e.Name] = len(all.entries)
		all.entries = append(all.entries, e)
	}
	return all, shadowed
}

// WithPart is the catalogue with so much of the packs' recipes as a submission needs. Its digest is that of the whole. It
// costs little: what ships in the client is shared.
func (c *Catalogue) WithPart(p Part) *Catalogue {
	p.Entries = c.completed(p.Entries)
	return &Catalogue{dialect: c.dialect, release: c.release, entries: c.entries, byName: c.byName, bundled: c.bundled, benchmarks: c.benchmarks, part: &p}
}

// completed fills in what packs leave to the client: the inputs that their framework asks for.
func (c *Catalogue) completed(packs []Entry) []Entry {
	packs = slices.Clone(packs)
	for i, e := range packs {
		if e.RequiredInputs != nil {
			continue
		}
		if j := slices.IndexFunc(c.entries, func(own Entry) bool { return own.Framework == e.Framework }); j >= 0 {
			packs[i].RequiredInputs = c.entries[j].RequiredInputs
		}
	}
	return packs
}

// Dialect is whose clients the catalogue is for.
func (c *Catalogue) Dialect() dialect.Dialect { return c.dialect }

// Release is the version of the client that the catalogue is for.
func (c *Catalogue) Release() string { return c.release }

// Entries lists the recipes in the order of the answer; of a catalogue WithPart, those that ship in the client. The caller
// must not change them.
func (c *Catalogue) Entries() []Entry { return c.entries }

// Lookup finds a recipe by its name.
func (c *Catalogue) Lookup(name string) (Entry, bool) {
	if i, ok := c.byName[name]; ok {
		return c.entries[i], true
	}
	if c.part != nil {
		for _, e := range c.part.Entries {
			if e.Name == name {
				return e, true
			}
		}
	}
	return Entry{}, false
}

// HasFold reports whether a recipe that ships in the client has the name, in any case of its letters.
func (c *Catalogue) HasFold(name string) bool {
	return slices.ContainsFunc(c.entries, func(e Entry) bool { return e.Pack == nil && strings.EqualFold(e.Name, name) })
}

// Resolve finds a recipe by its name or, when no recipe has that name, by its alias. The entry's Name is the one that
// the launcher compares.
func (c *Catalogue) Resolve(name string) (e Entry, alias, ok bool) {
	if e, ok := c.Lookup(name); ok {
		return e, false, true
	}
	packs := c.entries
	if c.part != nil {
		packs = c.part.Entries
	}
	for _, e := range packs {
		if e.Pack != nil && e.Alias() == name && c.visible(e) {
			return e, true, true
		}
	}
	return Entry{}, false, false
}

// visible reports whether no recipe that ships in the client has the name of a pack's.
func (c *Catalogue) visible(e Entry) bool {
	i, taken := c.byName[e.Name]
	return !taken || c.entries[i].Pack != nil
}

// Bundled lists the packages that ship in the client, sorted by id and version.
func (c *Catalogue) Bundled() []Bundled {
	list := make([]Bundled, 0, len(c.bundled))
	for _, b := range c.bundled {
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b Bundled) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Version, b.Version))
	})
	return list
}

// BundledDigest is the digest of a package that ships in the client.
func (c *Catalogue) BundledDigest(id, version string) (string, bool) {
	b, ok := c.bundled[[2]string{id, version}]
	return b.Digest, ok
}

// Hooks are those of the integration that the release ships for a framework: packs of recipes have them too, whatever integration
// they name, since the launcher asks the shipped one. A framework without one has the launcher's defaults, unless nothing is known
// of any.
func (c *Catalogue) Hooks(framework string) (h Hooks, ok bool) {
	if b, shipped := c.bundled[[2]string{integrationID(framework), c.release}]; shipped {
		if b.Hooks == nil {
			return h, false
		}
		return *b.Hooks, true
	}
	for _, b := range c.bundled {
		if b.Hooks != nil {
			return Hooks{Algorithms: true}, true
		}
	}
	return h, false
}

// Benchmarks lists the benchmarks that ship in the client. The caller must not change them.
func (c *Catalogue) Benchmarks() []Benchmark { return c.benchmarks }

// framework is the part of a recipe's name before the slash.
func framework(name string) string {
	f, _, _ := strings.Cut(name, "/")
	return f
}
