package catalogue

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

//go:embed data/*.json
var data embed.FS

// releaseFile is a file in data: what the known releases of one client carry. Releases of one file have the same
// recipe documents; where their digests differ, each row lists one digest for each release.
type releaseFile struct {
	Dialect      dialect.Dialect `json:"dialect"`
	Releases     []string        `json:"releases"` // oldest first; the last is the default
	CoreRequires string          `json:"core_requires"`
	Recipes      []struct {
		Name          string      `json:"name"`
		Version       string      `json:"version"`
		Digest        []string    `json:"digest"`
		Runtimes      [][2]string `json:"runtimes"` // version and runtime id, the default first
		Roles         []string    `json:"roles"`
		Plugins       []string    `json:"plugins"`
		Lifecycle     []string    `json:"lifecycle"`
		Observability string      `json:"observability"`
	} `json:"recipes"`
	Integrations []struct {
		ID        string   `json:"id"`
		Framework string   `json:"framework"`
		Digest    []string `json:"digest"`
	} `json:"integrations"`
}

var builtin = sync.OnceValue(func() map[dialect.Dialect][]*Catalogue {
	all := make(map[dialect.Dialect][]*Catalogue)
	for _, name := range []string{"starforge", "tuneplane"} {
		src, err := data.ReadFile("data/" + name + ".json")
		if err != nil {
			panic(err) // embedded; a test reads it
		}
		var file releaseFile
		if err := json.Unmarshal(src, &file); err != nil {
			panic(fmt.Sprintf("data/%s.json: %v", name, err))
		}
		for i, release := range file.Releases {
			all[file.Dialect] = append(all[file.Dialect], file.catalogue(i, release))
		}
	}
	return all
})

func (f *releaseFile) catalogue(i int, release string) *Catalogue {
	var bundled []Bundled
	integrations := make(map[string]string)
	for _, p := range f.Integrations {
		bundled = append(bundled, Bundled{ID: p.ID, Version: release, Digest: p.Digest[i]})
		integrations[p.Framework] = p.ID
	}
	entries := make([]Entry, len(f.Recipes))
	for j, r := range f.Recipes {
		e := Entry{
			Name: r.Name, Version: r.Version, Digest: r.Digest[i], Framework: framework(r.Name), Adapter: framework(r.Name),
			CoreRequires: f.CoreRequires, Roles: r.Roles, Plugins: known(r.Plugins), Lifecycle: known(r.Lifecycle),
			Observability: r.Observability, Integration: integrations[framework(r.Name)],
		}
		if e.Observability == "" {
			e.Observability = Platform
		}
		for _, pair := range r.Runtimes {
			e.Versions = append(e.Versions, Variant{Version: pair[0], RuntimeID: pair[1]})
		}
		e.DefaultVersion = e.Versions[0].Version
		entries[j] = e
	}
	return New(f.Dialect, release, entries, bundled)
}

// known makes an absent list an empty one: in data, what is not there does not exist.
func known(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// Releases lists the client releases of a dialect whose catalogues come with the binary, oldest first.
func Releases(d dialect.Dialect) []string {
	var list []string
	for _, c := range builtin()[d] {
		list = append(list, c.release)
	}
	return list
}

// DefaultRelease is the release that a client which does not tell its own is taken for: the newest.
func DefaultRelease(d dialect.Dialect) string {
	list := Releases(d)
	return list[len(list)-1]
}

// Builtin is the catalogue of a client release that comes with the binary.
func Builtin(d dialect.Dialect, release string) (*Catalogue, bool) {
	for _, c := range builtin()[d] {
		if c.release == release {
			return c, true
		}
	}
	return nil, false
}

// releasesWith lists the known releases in which a recipe has the digest.
func releasesWith(d dialect.Dialect, name, sum string) []string {
	var list []string
	for _, c := range builtin()[d] {
		if e, ok := c.Lookup(name); ok && e.Digest == sum {
			list = append(list, c.release)
		}
	}
	return list
}

// withFacts adds what is known of a shipped recipe beyond a snapshot's row. The digest covers the recipe's whole
// document, so equal digests are equal facts.
func withFacts(d dialect.Dialect, e Entry) Entry {
	for _, c := range slices.Backward(builtin()[d]) {
		if b, ok := c.Lookup(e.Name); ok && b.Digest == e.Digest {
			e.Roles, e.Plugins, e.Lifecycle, e.Observability = b.Roles, b.Plugins, b.Lifecycle, b.Observability
			return e
		}
	}
	return e
}
