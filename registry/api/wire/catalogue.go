package wire

import (
	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// Catalogue is the answer of GET /api/recipes (wire.md 5.1). Below the keys "gatehouse" of the answer and of each row
// stands what our own client reads beside what the real clients compare: with ?facts=1 the whole catalogue.Entry of each
// recipe. catalogue.ParseAnswer makes a catalogue of it again.
type Catalogue = catalogue.Answer

// ExtensionRow is a pack that a client puts on its user's disk (wire.md 5.2): one row a pack.
type ExtensionRow struct {
	ID      string        `json:"id"` // <owner>/<name>
	Kind    string        `json:"kind"`
	Version string        `json:"version"`
	Digest  digest.Digest `json:"digest"` // content
	Enabled bool          `json:"enabled"`

	TreeDigest digest.Digest `json:"tree_digest"` // for our own client, which compares both
}

// ExtensionList is the answer of GET /api/extensions. It is never less than all: a client deletes what is not listed.
type ExtensionList struct {
	Extensions []ExtensionRow `json:"extensions"`
}

// CatalogueRelease is a client release whose catalogue the registry knows.
type CatalogueRelease struct {
	Dialect    dialect.Dialect `json:"dialect"`
	Release    string          `json:"release"`
	Default    bool            `json:"default"` // clients that don't name theirs get this one
	Recipes    int             `json:"recipes"`
	Bundled    int             `json:"bundled_plugins"`
	Benchmarks int             `json:"benchmarks"`
	ImportedBy string          `json:"imported_by,omitempty"` // "": it comes with the program
	ImportedAt string          `json:"imported_at,omitempty"` // RFC 3339
}

// CatalogueReleases is the answer of GET /api/admin/catalog.
type CatalogueReleases struct {
	Releases []CatalogueRelease `json:"releases"`
}
