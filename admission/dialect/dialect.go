// Package dialect holds the two dialects of the platform and every name that differs between them. A rule is
// written once and asks its dialect for the names; nothing else may compare against a dialect's strings.
package dialect

import (
	"fmt"
	"strings"
)

// Dialect is one of the two spellings of the platform's contracts.
type Dialect string

// The dialects.
const (
	Forge     Dialect = "forge"     // StarForge: the `sf` client of starforge-core
	TunePlane Dialect = "tuneplane" // TunePlane: the `tp` client of tuneplane
)

// All lists the dialects in their fixed order.
var All = []Dialect{Forge, TunePlane}

// Parse reads a dialect's name. "sf" and "tp", the clients' names, are accepted too.
func Parse(s string) (Dialect, error) {
	switch s {
	case "forge", "sf":
		return Forge, nil
	case "tuneplane", "tp":
		return TunePlane, nil
	}
	return "", fmt.Errorf("unknown dialect %q (expected forge or tuneplane)", s)
}

// Other is the other dialect.
func (d Dialect) Other() Dialect {
	if d == Forge {
		return TunePlane
	}
	return Forge
}

// Names are the constants of a dialect's contracts.
type Names struct {
	PluginSchema    string // plugin.yaml `schema` (packs.md 3.2)
	BenchmarkSchema string // benchmark.yaml `schema` (packs.md 6)
	Artifacts       string // recipe.yaml `artifacts.version` (packs.md 5.3)
	Environment     string // environment manifest.json `schema` (packs.md 7)
	JobSpec         string // JobSpec `apiVersion` (jobspec.md 3)
	Catalogue       string // catalogue answer `apiVersion` (recipes-and-locks.md 3)
	PluginsLock     string // plugins.lock.json `apiVersion` (recipes-and-locks.md 2)
	SpecDir         string // folder of jobspec.json in a job directory (launch.md 1)
	PluginsDir      string // folder of injected plugins in a job directory
	RecipesDir      string // folder of injected recipe packs in a job directory
	EnvPrefix       string // prefix of the launcher's environment variables (launch.md 2)
	Package         string // the client's own Python package, reserved as a module name (packs.md 4.2)
	Client          string // the short name of the client: base path and catalogue route
	KindKey         string // plugin.yaml key that holds the kind: kind or capability (packs.md 3.1)
	RecipeLock      string // recipe.lock.json `apiVersion` as written (recipes-and-locks.md 1)
	Marker          string // the file that marks a project's folder (recipes-and-locks.md 7)
	Project         string // `apiVersion` of the marker
	RootVar         string // environment variable that names the project's folder
	HomeVar         string // environment variable that names the client's own folder (recipes-and-locks.md 5)
	Home            string // that folder below the user's home, when the variable is not set
	PyPackage       string // the name under which the client's package is installed
}

var names = map[Dialect]Names{
	Forge: {
		PluginSchema: "forge/plugin/v1", BenchmarkSchema: "forge/benchmark/v1", Artifacts: "forge/artifacts/v1",
		Environment: "forge/environment/v1", JobSpec: "forge/v2", Catalogue: "forge/recipe-catalog/v2",
		PluginsLock: "forge/plugins-lock/v1", SpecDir: ".starforge",
		PluginsDir: "forge_plugins", RecipesDir: "forge_recipes", EnvPrefix: "FORGE_", Package: "starforge",
		Client: "sf", KindKey: "kind", RecipeLock: "forge/recipe-lock/v4",
		Marker: "starforge.yaml", Project: "forge/project/v1", RootVar: "SF_REPO_ROOT",
		HomeVar: "FORGE_HOME", Home: ".forge", PyPackage: "starforge-core",
	},
	TunePlane: {
		PluginSchema: "tuneplane/plugin/v1", BenchmarkSchema: "tuneplane/benchmark/v1",
		Artifacts: "tuneplane/artifacts/v1", Environment: "tuneplane/environment/v1", JobSpec: "tuneplane/v1",
		Catalogue: "tuneplane/recipe-catalog/v1", PluginsLock: "tuneplane/plugins-lock/v1",
		SpecDir: ".tuneplane", PluginsDir: "tuneplane_plugins",
		RecipesDir: "tuneplane_recipes", EnvPrefix: "TUNEPLANE_", Package: "tuneplane", Client: "tp",
		KindKey: "capability", RecipeLock: "tuneplane/recipe-lock/v1",
		Marker: "tuneplane.yaml", Project: "tuneplane/project/v1", RootVar: "TUNEPLANE_CLIENT_REPO_ROOT",
		HomeVar: "TUNEPLANE_HOME", Home: ".tuneplane", PyPackage: "tuneplane",
	},
}

// Names are the dialect's constants.
func (d Dialect) Names() Names { return names[d] }

// IsJobFolder reports whether a name at the top of a job directory is the platform's own, in whatever case: where a launch puts
// the spec, plugins or recipe packs of either dialect.
func IsJobFolder(name string) bool {
	for _, d := range All {
		n := d.Names()
		for _, taken := range []string{n.SpecDir, n.PluginsDir, n.RecipesDir} {
			if strings.EqualFold(name, taken) {
				return true
			}
		}
	}
	return false
}

// Detect finds the dialect whose constant, picked by pick, is value.
func Detect(value string, pick func(Names) string) (Dialect, bool) {
	for _, d := range All {
		if pick(d.Names()) == value {
			return d, true
		}
	}
	return "", false
}
