// Package jobspec reads the JobSpec of both dialects, forge/v2 and tuneplane/v1, into one model and says everything
// that is wrong with a document.
//
// The contract (jobspec.md):
//   - Parse follows the order in which the clients' own parser looks at a document, so the clients' first error is
//     among the violations, under the field they name; a breach does not end the reading of anything that
//     does not depend on it.
//   - What the clients accept is accepted with their value, unless a rule of ours, marked so in the rule table, is
//     stricter; where the platform's documents and its packages differ both forms come in and one goes out (10).
//   - Spec.Normalised is the clients' serialised form, byte for byte, with what they drop but the platform's
//     documents promise (spec.data.corpus) kept. Spec.Digest names it.
//   - Any input is read in bounded time and memory and never panics.
//
// What only a server can check (8) is not here; see admission.CheckSubmission.
package jobspec

import (
	"strconv"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
)

// Kind is the only kind of job that the platforms have.
const Kind = "TrainingJob"

// Spec is one job, whatever its dialect. Fields that the dialect lacks are empty. After a refusal it holds what
// could be read; parts at fault are zero.
type Spec struct {
	Dialect     dialect.Dialect
	Metadata    Metadata
	Recipe      Recipe
	Source      Source
	Framework   Framework
	Model       Model
	Data        Data
	Resources   Resources
	Hyperparams *pyvalue.Value // a Map in document order; nil when empty
	OnSuccess   []string       // spec.lifecycle.on_success
	Evaluation  Evaluation
	Plugins     []Plugin
	Provenance  Provenance

	doc *pyvalue.Value // what it was read from, for Place; nil for a spec that was made otherwise
}

// Metadata names the job.
type Metadata struct {
	Name        string
	Project     string
	Owner       string // what the client wrote, until StampOwner
	DisplayName string
	Labels      []Label
}

// Label is one entry of metadata.labels, in document order.
type Label struct{ Key, Value string }

// Recipe names the method by the catalogue's id, version and digest.
type Recipe struct {
	Name    string // <framework>/<method>
	Version string
	Digest  string
	Plugins []string // built-in algorithms by name; they have no owner and no digest
}

// Source is where the experiment lies in the job package.
type Source struct{ Exp string }

// Framework names the runtime.
type Framework struct {
	Kind             string
	Version          string
	RuntimeID        string
	Image            string
	ObservabilityURL string
}

// Model says what training starts from.
type Model struct {
	Base     string // as written: a path, ${...}, or a hub reference
	PEFT     *PEFT
	InitFrom *Artifact
}

// PEFT is the adapter configuration. Dim and Alpha are kept as written.
type PEFT struct {
	Kind       string
	Dim, Alpha *pyvalue.Value
}

// Data says what a job reads and writes.
type Data struct {
	Train, Validation *DataRef
	Volumes           []string // <owner>/<name>
	OutputDataset     string
	Environment       string
	Taskset           string // tuneplane
	Quality           Quality
	Corpus            string // forge; the platform's documents have it, its package drops it
}

// DataRef is one data set, or a path on the cluster.
type DataRef struct{ Dataset, Split, Path string }

// Quality bounds what is wrong with the data. Nil bounds are not given.
type Quality struct {
	MaxDuplicateRatio *float64
	OverlapWith       string
	MaxOverlapRatio   *float64
	GroupKey          string   // tuneplane
	MaxGroupLeakRatio *float64 // tuneplane
}

// Resources is what the job occupies.
type Resources struct {
	Pools   []Pool
	Roles   []Role
	Leases  []Lease  // tuneplane
	Network *Network // tuneplane
}

// Pool is a set of equal nodes.
type Pool struct {
	Name        string
	Nodes       int64
	GPUsPerNode int64
	Series      string
	CPUs        int64 // tuneplane, per node; 0 is not said
	MemoryGB    int64 // tuneplane, per node
	ScratchGB   int64 // tuneplane, per node
}

// Role maps a role of the recipe to a pool by name.
type Role struct{ Name, Pool string }

// Lease is a number of seats of a licensed tool.
type Lease struct {
	Tool  string
	Seats int64
}

// Network is what the job asks of the network.
type Network struct{ Transport, Interface, Isolation string }

// Evaluation says what is measured afterwards and what the result must be.
type Evaluation struct {
	Suites       []string
	Runner       string
	Baseline     string
	Limit        int64 // 0 is none
	Gates        []Gate
	OnCheckpoint *OnCheckpoint // tuneplane
}

// Gate is one bound on a metric. Nil bounds are not given; at least one is.
type Gate struct {
	Metric                  string // <benchmark>/<key>
	Min, Max, MaxRegression *float64
}

// OnCheckpoint is evaluation while the job runs.
type OnCheckpoint struct {
	EverySteps  int64
	Suites      []string
	Limit       int64 // 0 is none
	Repetitions int64 // at least 1
	WarmupSteps int64
	Fleet       string
}

// Plugin is the exact triple of a published pack.
type Plugin struct {
	ID      string // <owner>/<name>
	Version string
	Digest  string // content digest
}

// Provenance says where the job comes from.
type Provenance struct {
	CoreVersion string
	GitCommit   string
	GitDirty    bool
	ConfigSHA   string
	ModelName   string
}

// Artifact is an output of another run. Nil numbers are not given.
type Artifact struct {
	RunID, Kind   string
	Step, Attempt *int64
}

// String is the artifact as both dialects write it: run/<id>/<kind>[@attempt=A,step=N].
func (a Artifact) String() string {
	s := "run/" + a.RunID + "/" + a.Kind
	sep := "@"
	if a.Attempt != nil {
		s += sep + "attempt=" + strconv.FormatInt(*a.Attempt, 10)
		sep = ","
	}
	if a.Step != nil {
		s += sep + "step=" + strconv.FormatInt(*a.Step, 10)
	}
	return s
}

// TotalGPUs is the sum of nodes times GPUs over the pools: what counts against a quota.
func (s *Spec) TotalGPUs() int64 {
	var n int64
	for _, p := range s.Resources.Pools {
		n += p.Nodes * p.GPUsPerNode
	}
	return n
}

// StampOwner sets the owner to the authenticated account; what a client wrote never counts.
func (s *Spec) StampOwner(account string) { s.Metadata.Owner = account }
