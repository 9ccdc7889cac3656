package catalogue

import (
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// Answer is the document of GET /api/recipes (wire.md 5.1).
type Answer struct {
	APIVersion    string        `json:"apiVersion"`
	Contract      Contract      `json:"contract"`
	Core          Core          `json:"core"`
	CatalogDigest digest.Digest `json:"catalog_digest"`
	Recipes       []Row         `json:"recipes"`
	Gatehouse     *Release      `json:"gatehouse,omitempty"`
}

// Release is what Gatehouse tells its own client beside the answer; the real clients pass over the key.
type Release struct {
	Dialect dialect.Dialect `json:"dialect"`
	Version string          `json:"release"` // the client release whose recipes and packages these are
	Bundled []Bundled       `json:"bundled_plugins"`
	Facts   bool            `json:"facts"` // every row has its Recipe
}

// Contract lists the JobSpec versions that the server takes: exactly the dialect's one.
type Contract struct {
	Versions []string `json:"versions"`
}

// Core states the server's version and the range of versions, its own included, that it serves.
type Core struct {
	Version     string `json:"version"`
	Requirement string `json:"requirement"`
}

// Row is one recipe of an answer. The clients compare name, version, digest, framework, adapter, the supported
// versions, the runtime id of the chosen one, and core_requires with their own.
type Row struct {
	Name                       string   `json:"name"`
	Version                    string   `json:"version"`
	Digest                     string   `json:"digest"`
	Framework                  string   `json:"framework"`
	Adapter                    string   `json:"adapter"`
	FrameworkVersion           string   `json:"framework_version"`
	SupportedFrameworkVersions []string `json:"supported_framework_versions"`
	Runtime                    Runtime  `json:"runtime"`
	CoreRequires               string   `json:"core_requires,omitempty"`

	Gatehouse *Extension `json:"gatehouse,omitempty"`
}

// Extension is what Gatehouse tells its own client of a row; the real clients pass over the key.
type Extension struct {
	Alias  string `json:"alias,omitempty"`  // <framework>/<owner>.<name>, which is taken for the name everywhere
	Pack   *Pack  `json:"pack,omitempty"`   // where the recipe was published; nil for what ships in the client
	Recipe *Entry `json:"recipe,omitempty"` // everything that is known, in an answer with Facts
}

// Runtime maps each supported version to its runtime id.
type Runtime struct {
	DefaultVersion string               `json:"default_version"`
	Versions       map[string]RuntimeID `json:"versions"`
}

// RuntimeID is one supported version of a framework.
type RuntimeID struct {
	RuntimeID string `json:"runtime_id"`
}

// Answer is the catalogue as the clients ask for it. Rows keep the catalogue's order, which the digest covers. With
// facts every row also holds its whole entry, for our own client.
func (c *Catalogue) Answer(facts bool) Answer {
	names := c.dialect.Names()
	a := Answer{
		APIVersion:    names.Catalogue,
		Contract:      Contract{Versions: []string{names.JobSpec}},
		Core:          Core{Version: c.release, Requirement: Requirement},
		CatalogDigest: c.Digest(),
		Recipes:       make([]Row, len(c.entries)),
		Gatehouse:     &Release{Dialect: c.dialect, Version: c.release, Bundled: c.Bundled(), Facts: facts},
	}
	for i, e := range c.entries {
		a.Recipes[i] = e.row(facts)
	}
	return a
}

func (e Entry) row(facts bool) Row {
	versions := make(map[string]RuntimeID, len(e.Versions))
	for _, v := range e.Versions {
		versions[v.Version] = RuntimeID{v.RuntimeID}
	}
	row := Row{
		Name: e.Name, Version: e.Version, Digest: e.Digest, Framework: e.Framework, Adapter: e.Adapter,
		FrameworkVersion: e.DefaultVersion, SupportedFrameworkVersions: e.Supported(),
		Runtime: Runtime{DefaultVersion: e.DefaultVersion, Versions: versions}, CoreRequires: e.CoreRequires,
	}
	if e.Pack != nil || facts {
		row.Gatehouse = &Extension{Alias: e.Alias(), Pack: e.Pack}
	}
	if facts {
		row.Gatehouse.Recipe = &e
	}
	return row
}
