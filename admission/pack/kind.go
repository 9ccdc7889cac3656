package pack

import (
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// Kind says what a pack is, by the platforms' internal name (packs.md 3.1).
type Kind string

// The kinds.
const (
	KindFrameworkIntegration Kind = "framework-integration"
	KindAlgorithm            Kind = "algorithm"
	KindEnvironment          Kind = "environment"
	KindDataPrep             Kind = "data-prep"
	KindDataPrepJob          Kind = "data-prep-job"
	KindRecipe               Kind = "recipe"
	KindBenchmark            Kind = "benchmark"
	KindPlaybook             Kind = "playbook"
	KindPrompt               Kind = "prompt"
)

// Where the code of a pack runs: tuneplane's `execution`.
const (
	RunsInJob   = "job"
	RunsLocally = "local"
	RunsNowhere = "none"
)

// kindFacts are the columns of the table in packs.md 3.1.
type kindFacts struct {
	kind       Kind
	capability string // tuneplane's spelling
	runs       string
	entrypoint bool   // required; refused on the others
	executable bool   // holds code
	adminOnly  bool   // only an administrator publishes it
	installDir string // below the client's home; "" for executable kinds
	group      string // tuneplane's package type
	document   string // the file that the pack is about; "" when there is none
	wheelGroup string // entry-point group of a provider wheel (packs.md 4.4)
}

var kindTable = []kindFacts{
	{kind: KindFrameworkIntegration, capability: "framework-integration", runs: RunsInJob, executable: true, group: "runtime", document: IntegrationFile},
	{kind: KindAlgorithm, capability: "algorithm", runs: RunsInJob, entrypoint: true, executable: true, group: "runtime", wheelGroup: "tuneplane.algorithms"},
	{kind: KindEnvironment, capability: "environment", runs: RunsInJob, entrypoint: true, executable: true, group: "runtime", wheelGroup: "tuneplane.environments"},
	{kind: KindDataPrep, capability: "data-prep", runs: RunsLocally, executable: true, group: "runtime"},
	{kind: KindDataPrepJob, capability: "data-prep", runs: RunsInJob, entrypoint: true, executable: true, group: "runtime", wheelGroup: "tuneplane.transforms"},
	{kind: KindRecipe, capability: "recipe", runs: RunsNowhere, installDir: "recipes", group: "asset", document: RecipeFile},
	{kind: KindBenchmark, capability: "benchmark", runs: RunsNowhere, installDir: "benchmarks", group: "asset", document: BenchmarkFile},
	{kind: KindPlaybook, capability: "playbook", runs: RunsNowhere, adminOnly: true, installDir: "playbooks", group: "policy"},
	{kind: KindPrompt, capability: "prompt", runs: RunsNowhere, adminOnly: true, installDir: "prompts", group: "policy"},
}

// Kinds lists every kind in the order in which the clients name them.
func Kinds() []Kind {
	all := make([]Kind, len(kindTable))
	for i, f := range kindTable {
		all[i] = f.kind
	}
	return all
}

// ParseKind reads an internal kind name.
func ParseKind(s string) (Kind, bool) {
	f := Kind(s).facts()
	return f.kind, f.kind != ""
}

// facts are the zero facts for an unknown kind.
func (k Kind) facts() kindFacts {
	for _, f := range kindTable {
		if f.kind == k {
			return f
		}
	}
	return kindFacts{}
}

// In reports whether the dialect has the kind: forge knows no framework-integration.
func (k Kind) In(d dialect.Dialect) bool {
	return k.facts().kind != "" && (d == dialect.TunePlane || k != KindFrameworkIntegration)
}

// Executable reports whether the pack holds code that runs on the user's side.
func (k Kind) Executable() bool { return k.facts().executable }

// Declarative reports whether the platform only reads the pack, so that it may hold no executable file.
func (k Kind) Declarative() bool { f := k.facts(); return f.kind != "" && !f.executable }

// AdminOnly reports whether only an administrator may publish the kind.
func (k Kind) AdminOnly() bool { return k.facts().adminOnly }

// TakesEntrypoint reports whether plugin.yaml must name an entrypoint; on the other kinds it is refused.
func (k Kind) TakesEntrypoint() bool { return k.facts().entrypoint }

// Execution is where the pack's code runs: RunsInJob, RunsLocally or RunsNowhere.
func (k Kind) Execution() string { return k.facts().runs }

// Capability is tuneplane's spelling of the kind; data-prep and data-prep-job share one.
func (k Kind) Capability() string { return k.facts().capability }

// PackageType is tuneplane's group of the kind: runtime, asset or policy.
func (k Kind) PackageType() string { return k.facts().group }

// InstallDir is the folder below a client's home into which the kind is synced, "" for executable kinds.
func (k Kind) InstallDir() string { return k.facts().installDir }

// Document is the file in the pack's root that the kind is about, "" when the kind has none.
func (k Kind) Document() string { return k.facts().document }

// kindOf finds the kind that a dialect's spelling means; execution is tuneplane's and only tells the data-prep
// kinds apart.
func kindOf(d dialect.Dialect, spelling, execution string) (Kind, bool) {
	for _, f := range kindTable {
		if !f.kind.In(d) {
			continue
		}
		if d == dialect.Forge && string(f.kind) == spelling {
			return f.kind, true
		}
		if d == dialect.TunePlane && f.capability == spelling && (execution == "" || execution == f.runs) {
			return f.kind, true
		}
	}
	return "", false
}

// executionsOf lists where a tuneplane capability can run.
func executionsOf(capability string) []string {
	var runs []string
	for _, f := range kindTable {
		if f.capability == capability {
			runs = append(runs, f.runs)
		}
	}
	return runs
}

// spellings lists what a dialect's manifest may say for the kind, for messages.
func spellings(d dialect.Dialect) string {
	var all []string
	for _, f := range kindTable {
		s := string(f.kind)
		if d == dialect.TunePlane {
			s = f.capability
		}
		if f.kind.In(d) && (len(all) == 0 || all[len(all)-1] != s) {
			all = append(all, s)
		}
	}
	return strings.Join(all, ", ")
}

// describe names the kind as a manifest of the dialect spells it.
func (k Kind) describe(d dialect.Dialect) string {
	f := k.facts()
	if d == dialect.TunePlane && len(executionsOf(f.capability)) > 1 {
		return f.capability + " (execution: " + f.runs + ")"
	}
	if d == dialect.TunePlane {
		return f.capability
	}
	return string(k)
}
