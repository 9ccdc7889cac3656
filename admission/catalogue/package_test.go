package catalogue

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// What is no installed client, or not one that its own client could load, is an error that names the place.
func TestReadPackageRefusals(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const forge, tune = "starforge_core-0.9.0.dist-info/METADATA", "tuneplane-0.9.0.dist-info/METADATA"
	const recipe = "starforge/recipes/catalog/labfw/tune/recipe.yaml"
	for what, c := range map[string]struct {
		fsys fstest.MapFS
		d    dialect.Dialect
		says string
	}{
		"nothing":                {fstest.MapFS{}, "", "neither starforge-core nor tuneplane"},
		"another dialect":        {fstest.MapFS{forge: file("Version: 1\n")}, dialect.TunePlane, "no tuneplane"},
		"both":                   {fstest.MapFS{forge: file("Version: 1\n"), tune: file("Version: 2\n")}, "", "starforge-core 1 and tuneplane 2"},
		"no version":             {fstest.MapFS{forge: file("Name: x\n\nVersion: 1\n")}, "", forge + ": found no version"},
		"a recipe that is none":  {fstest.MapFS{forge: file("Version: 1\n"), recipe: file("a: [")}, "", recipe},
		"a recipe of other name": {fstest.MapFS{forge: file("Version: 1\n"), recipe: file("name: x\n")}, "", recipe},
		"a link":                 {fstest.MapFS{forge: file("Version: 1\n"), recipe: file("name: tune\n"), "starforge/recipes/catalog/labfw/tune/x": {Mode: fs.ModeSymlink, Data: []byte("/etc")}}, "", "no regular file"},
		"an integration":         {fstest.MapFS{tune: file("Version: 1\n"), "tuneplane/frameworks/catalog/x/integration.json": file("{}")}, "", "integration.json"},
		"a benchmark":            {fstest.MapFS{tune: file("Version: 1\n"), "tuneplane/benchmarks/catalog/x/benchmark.yaml": file("{}")}, "", "benchmark.yaml"},
	} {
		if c2, err := ReadPackage(c.fsys, c.d); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v; want an error that says %q", what, c2, err, c.says)
		}
	}
}

// Before release 0.3.53 the recipe digest of a StarForge client covers the template too (packs.md 5.1).
func TestDigestFormulaOfReleases(t *testing.T) {
	older, _ := Builtin(dialect.Forge, "0.3.51")
	newer, _ := Builtin(dialect.Forge, "0.3.56")
	for _, e := range newer.Entries() {
		o, _ := older.Lookup(e.Name)
		if o.ManifestDigest != e.ManifestDigest || o.Digest == e.Digest {
			t.Errorf("%s: manifest %s and %s, digest %s and %s", e.Name, o.ManifestDigest, e.ManifestDigest, o.Digest, e.Digest)
		}
	}
}
