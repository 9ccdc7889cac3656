package catalogue

import (
	"embed"
	"fmt"
	"slices"
	"sync"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// The known client releases, a snapshot each as Encode writes it; data/make.sh takes them from the packages.
//
//go:embed data/*.json
var data embed.FS

// shippedReleases lists the releases in data, oldest first; the last is the default.
var shippedReleases = map[dialect.Dialect][]string{
	dialect.Forge:     {"0.3.51", "0.3.56"},
	dialect.TunePlane: {"0.4.0"},
}

// builtin holds the releases that were asked for: releaseKey to *lazyRelease.
var builtin sync.Map

type releaseKey struct {
	dialect dialect.Dialect
	release string
}

// lazyRelease is read when it is first asked for.
type lazyRelease struct {
	once sync.Once
	c    *Catalogue
}

func readRelease(d dialect.Dialect, release string) *Catalogue {
	file := dataFile(d, release)
	src, err := data.ReadFile(file)
	if err != nil {
		panic(err) // embedded; a test reads it
	}
	c, report := ParseSnapshot(src, d, release)
	if c == nil {
		panic(fmt.Sprintf("%s: %v", file, report.Violations))
	}
	return c
}

func dataFile(d dialect.Dialect, release string) string {
	return fmt.Sprintf("data/%s-%s.json", d.Names().PyPackage, release)
}

// known makes an absent list an empty one: in data, what is not there does not exist.
func known(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// Releases lists the client releases of a dialect whose catalogues come with the binary, oldest first.
func Releases(d dialect.Dialect) []string { return slices.Clone(shippedReleases[d]) }

// DefaultRelease is the release that a client which does not tell its own is taken for: the newest.
func DefaultRelease(d dialect.Dialect) string {
	list := shippedReleases[d]
	return list[len(list)-1]
}

// Builtin is the catalogue of a client release that comes with the binary.
func Builtin(d dialect.Dialect, release string) (*Catalogue, bool) {
	if !slices.Contains(shippedReleases[d], release) {
		return nil, false
	}
	v, _ := builtin.LoadOrStore(releaseKey{d, release}, new(lazyRelease))
	lazy := v.(*lazyRelease)
	lazy.once.Do(func() { lazy.c = readRelease(d, release) })
	return lazy.c, true
}

// releasesWith lists the known releases in which a recipe has the digest.
func releasesWith(d dialect.Dialect, name, sum string) []string {
	var list []string
	for _, release := range shippedReleases[d] {
		c, _ := Builtin(d, release)
		if e, ok := c.Lookup(name); ok && e.Digest == sum {
			list = append(list, c.release)
		}
	}
	return list
}

// withFacts adds what is known of a shipped recipe beyond a snapshot's row. The digest covers the recipe's whole
// document, so equal digests are equal facts.
func withFacts(d dialect.Dialect, e Entry) Entry {
	for _, release := range slices.Backward(shippedReleases[d]) {
		c, _ := Builtin(d, release)
		b, ok := c.Lookup(e.Name)
		if !ok || b.Digest != e.Digest {
			continue
		}
		b.Name, b.Version, b.Digest, b.Framework, b.Adapter = e.Name, e.Version, e.Digest, e.Framework, e.Adapter
		b.DefaultVersion, b.Versions, b.CoreRequires, b.Integration = e.DefaultVersion, e.Versions, e.CoreRequires, e.Integration
		return b
	}
	return e
}
