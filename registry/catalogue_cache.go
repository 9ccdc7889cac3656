package registry

import (
	"sync"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// catalogues remembers what was computed of the catalogue, each with the stamps of the parts that it was computed from: a
// stamp is new after every change and is read in the transaction that uses what is remembered, so what is remembered is
// never stale, however many replicas share the store. The zero catalogues are ready for use.
type catalogues struct {
	mu       sync.Mutex
	releases map[Caller]*heldRelease
	shelves  map[dialect.Dialect]stamped[[]Shelved]
	entries  map[[2]string]catalogue.Entry // by repository and version
}

// heldRelease is what ships in a client release, with what was computed of it and the shelf.
type heldRelease struct {
	*catalogue.Catalogue
	stamp string // of the releases
	all   stamped[*catalogue.Catalogue]
	sum   stamped[digest.Digest]
}

// stamped is a value with the stamp of the shelf that it was computed from.
type stamped[T any] struct {
	known bool
	stamp string
	value T
}

// maxHeldReleases bounds the releases that are remembered.
const maxHeldReleases = 32

func (c *catalogues) release(d dialect.Dialect, release, stamp string) *heldRelease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held := c.releases[Caller{d, release}]; held != nil && held.stamp == stamp {
		return held
	}
	return nil
}

func (c *catalogues) keepRelease(all *catalogue.Catalogue, stamp string) *heldRelease {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.releases == nil || len(c.releases) >= maxHeldReleases {
		c.releases = make(map[Caller]*heldRelease)
	}
	held := &heldRelease{Catalogue: all, stamp: stamp}
	c.releases[Caller{all.Dialect(), all.Release()}] = held
	return held
}

func (c *catalogues) whole(held *heldRelease, stamp string) *catalogue.Catalogue {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held.all.known && held.all.stamp == stamp {
		return held.all.value
	}
	return nil
}

func (c *catalogues) keepWhole(held *heldRelease, stamp string, all *catalogue.Catalogue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held.all = stamped[*catalogue.Catalogue]{true, stamp, all}
}

func (c *catalogues) digest(held *heldRelease, stamp string) (digest.Digest, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return held.sum.value, held.sum.known && held.sum.stamp == stamp
}

func (c *catalogues) keepDigest(held *heldRelease, stamp string, sum digest.Digest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held.sum = stamped[digest.Digest]{true, stamp, sum}
}

func (c *catalogues) shelf(d dialect.Dialect, stamp string) ([]Shelved, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.shelves[d]
	return held.value, held.known && held.stamp == stamp
}

func (c *catalogues) keepShelf(d dialect.Dialect, stamp string, list []Shelved) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shelves == nil {
		c.shelves = make(map[dialect.Dialect]stamped[[]Shelved])
	}
	c.shelves[d] = stamped[[]Shelved]{true, stamp, list}
}

// maxEntries bounds the entries that are remembered: those of recipes that are submitted now.
const maxEntries = 256

func (c *catalogues) entry(key [2]string) (catalogue.Entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	return e, ok
}

func (c *catalogues) keepEntry(key [2]string, e catalogue.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxEntries {
		c.entries = make(map[[2]string]catalogue.Entry)
	}
	c.entries[key] = e
}

// forget gives back what is remembered.
func (c *catalogues) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releases, c.shelves, c.entries = nil, nil, nil
}
