// Package runrecord is what a node says about a launch, for good: an in-toto Statement v1 in a DSSE envelope, signed with
// the node's key, that names what was checked, under which protection, what ran and how it ended (docs/runs.md). Nothing here
// does I/O, reads a clock or touches a network. launchverify makes statements, the registry keeps them, and any tool
// that reads in-toto attestations can verify them with the node's public key.
//
// A run is told in at most two statements with one run id: StateStarted when its command was executed, then StateEnded; or
// one alone, StateRefused, when nothing was started. Of two the later state counts.
//
// A statement never holds the value of a variable. It holds the command line as it was given.
package runrecord

import (
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

const (
	// StatementType is the "_type" of every in-toto Statement v1.
	StatementType = "https://in-toto.io/Statement/v1"
	// PredicateType names the form of Predicate. A field that is added, or means something else, changes it.
	PredicateType = "https://gatehouse.dev/launch/v1"
	// PayloadType is the DSSE payload type of in-toto statements.
	PayloadType = "application/vnd.in-toto+json"
	// MaxEnvelope bounds an envelope in bytes.
	MaxEnvelope = 4 * limit.MiB
	maxPayload  = MaxEnvelope/4*3 - 4*limit.KiB
)

// State is how far a run got.
type State string

// The states, in the order in which they come.
const (
	StateStarted State = "started" // the command was executed
	StateEnded   State = "ended"   // and is over, with all that it started
	StateRefused State = "refused" // nothing was started
)

// Statement is the in-toto statement. New makes one that Check accepts when the predicate is whole.
type Statement struct {
	Type          string    `json:"_type"` // StatementType
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"` // PredicateType
	Predicate     Predicate `json:"predicate"`
}

// Subject names bytes that the statement is about.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"` // algorithm to hex
}

// Predicate says what happened. Times are of the node's clock, in UTC.
type Predicate struct {
	Run   string `json:"run"` // 128 random bits in hex, made by the agent when the launch began
	State State  `json:"state"`
	Agent string `json:"agent"` // the agent's version
	Node  Node   `json:"node"`

	Registry  string          `json:"registry,omitempty"` // the receipt's audience; "" without a receipt that holds
	Job       string          `json:"job,omitempty"`      // the receipt's job; "" without a receipt that holds
	Dialect   dialect.Dialect `json:"dialect,omitempty"`
	SpecBytes digest.Digest   `json:"specBytes,omitzero"` // of the spec that was read; zero when none could be read
	Receipt   digest.Digest   `json:"receipt,omitzero"`   // sha256 of the receipt's envelope, when it holds
	KeysFrom  string          `json:"keysFrom,omitempty"` // where the keys came from that the receipt holds by: KeysFromFile or KeysFromRegistry
	// JobPackage is the digest of the admitted package that the job's directory was made of; zero when the node had a
	// directory.
	JobPackage digest.Digest `json:"jobPackage,omitzero"`
	// Plugins are what the receipt pins for spec.plugins; Recipes the recipe packs that the job had. A recipe pack that no
	// receipt pins has no manifest digest here.
	Plugins []receipt.Pin `json:"plugins"`
	Recipes []receipt.Pin `json:"recipes"`

	Protection  Protection `json:"protection"`
	CoreVersion string     `json:"coreVersion,omitempty"` // of the client, as the gate took it
	Decision    *Decision  `json:"decision,omitempty"`    // of gate 3; nil when it was not reached
	// Problem is why nothing was started, on one line, when no rule was broken.
	Problem  string    `json:"problem,omitempty"`
	DenyList *DenyList `json:"denyList,omitempty"` // what was known of revoked versions; nil when nobody asked

	User       User     `json:"user"` // who the command ran as, or was to
	Command    []string `json:"command"`
	CommandCut bool     `json:"commandCut,omitempty"` // Command was shortened, or held bytes that are no text
	RemovedEnv []string `json:"removedEnv"`           // names of the variables that were not passed on
	SetEnv     []string `json:"setEnv"`               // names of the variables that the agent set

	StartedAt time.Time `json:"startedAt,omitzero"` // when the command was executed; zero when it was not
	EndedAt   time.Time `json:"endedAt,omitzero"`   // when the job was over, or was refused
	// ExitCode is the agent's own, which is the command's when that ran to its end: 0 to 255. Nil while it runs.
	ExitCode *int     `json:"exitCode,omitempty"`
	Signal   int      `json:"signal,omitempty"`  // that killed the command
	Killed   int      `json:"killed,omitempty"`  // processes that had to be killed after the command had ended
	Changed  bool     `json:"changed,omitempty"` // in a private copy: it was no longer what was checked when the job ended
	Training Training `json:"training"`
}

// Node is the machine that says all this.
type Node struct {
	Name string `json:"name"`          // as it was given when the node joined; the host's name for one that did not
	Key  string `json:"key,omitempty"` // receipt.KeyID of the key that signs; Sign fills it in
	// SelfAsserted says that others than root could use the key: whoever ran the job can have said this.
	SelfAsserted bool `json:"selfAsserted"`
}

// Where the keys came from that verified the receipt.
const (
	KeysFromFile     = "file"     // they were pinned on the node
	KeysFromRegistry = "registry" // the registry named them: they are worth what the connection was
)

// User is an account of the node.
type User struct {
	UID int `json:"uid"`
	GID int `json:"gid"`
}

// Protection is how the job's files were kept from being changed.
type Protection struct {
	Mode         string            `json:"mode,omitempty"`     // root, user or private-copy; "" when it never came to that
	PIDNamespace bool              `json:"pidNamespace"`       // the job had a process namespace of its own
	Tracking     string            `json:"tracking,omitempty"` // by what its processes were known: pid-namespace, cgroup, descendants, process-group
	Unavailable  map[string]string `json:"unavailable"`        // the better modes, and why the node did not allow them
}

// Decision is what gate 3 found.
type Decision struct {
	Allowed    bool      `json:"allowed"`
	Rules      string    `json:"rules"` // version of the table of rules that decided
	Violations []Finding `json:"violations"`
	Warnings   []Finding `json:"warnings"`
	Omitted    int       `json:"omitted,omitempty"` // violations and warnings beyond the first MaxFindings of each
}

// Finding is one breach of a rule.
type Finding struct {
	Rule    rule.ID `json:"rule"`
	Where   string  `json:"where,omitempty"` // field, or file with line and column
	Message string  `json:"message"`
}

// DenyList is what the agent knew about revoked versions.
type DenyList struct {
	Number   uint64    `json:"number"`             // of the list that was looked at; 0 when there was none
	IssuedAt time.Time `json:"issuedAt,omitzero"`  // of that list
	Expires  time.Time `json:"expires,omitzero"`   // of that list
	Source   string    `json:"source,omitempty"`   // SourceRegistry or SourceCache
	Problem  string    `json:"problem,omitempty"`  // why there was no list, or none that is fresh
	Required bool      `json:"required,omitempty"` // the launch would have been refused without a fresh one
}

// Where a deny list came from.
const (
	SourceRegistry = "registry" // or the registry said that the cache's is its newest
	SourceCache    = "cache"
)

// Training says whether a training process was ever started. A launcher that trains starts another process, and all
// processes of the job are accounted for, however short they lived, but for one that a launcher started which had told
// the kernel to ignore its children's ends.
type Training struct {
	Seen bool   `json:"seen"`
	How  string `json:"how,omitempty"` // one of the How constants; "" when none was seen
	// Unknown says that whether there was one could not be told: the node had no /proc.
	Unknown bool `json:"unknown,omitempty"`
	// Unopened is the file of the job in which training begins, as the method's pack says, when processes were started
	// and none of them opened it: then none of them trained.
	Unopened string `json:"unopened,omitempty"`
}

// How a training process was seen.
const (
	// HowChild: the command was seen with a child process, as a launcher has while it trains.
	HowChild = "child-process"
	// HowWaited: by the kernel's account the command had waited for a child that ran.
	HowWaited = "waited-for-child"
	// HowOrphan: a process of the job outlived the one that had started it.
	HowOrphan = "orphan"
)

// New makes the statement of a predicate: with its subjects, and with empty lists where there are none.
func New(p Predicate) Statement {
	p.Plugins, p.Recipes = filled(p.Plugins), filled(p.Recipes)
	p.Command, p.RemovedEnv, p.SetEnv = filled(p.Command), filled(p.RemovedEnv), filled(p.SetEnv)
	if p.Protection.Unavailable == nil {
		p.Protection.Unavailable = map[string]string{}
	}
	if d := p.Decision; d != nil {
		copied := *d
		copied.Violations, copied.Warnings = filled(d.Violations), filled(d.Warnings)
		p.Decision = &copied
	}
	p.StartedAt, p.EndedAt = p.StartedAt.UTC(), p.EndedAt.UTC()
	return Statement{Type: StatementType, Subject: Subjects(p), PredicateType: PredicateType, Predicate: p}
}

func filled[E any](list []E) []E {
	if list == nil {
		return []E{}
	}
	return list
}

// Names of subjects that are no pack.
const (
	SubjectSpec = "jobspec" // the spec, by its bytes
	SubjectRun  = "run"     // the run's id as text, where not even a spec could be read
)

// Subjects says what a predicate is about: the spec, then every pack, by its OCI manifest; what has no manifest in a
// registry by its content digest, as the platforms compute it, under gatehouseContent. The run itself stands in where
// nothing could be read.
func Subjects(p Predicate) []Subject {
	var all []Subject
	if !p.SpecBytes.IsZero() {
		all = append(all, Subject{SubjectSpec, digestSet(p.SpecBytes)})
	}
	for _, pin := range append(p.Plugins[:len(p.Plugins):len(p.Plugins)], p.Recipes...) {
		set := map[string]string{"gatehouseContent": pin.Content.Hex()}
		if !pin.Manifest.IsZero() {
			set = digestSet(pin.Manifest)
		}
		all = append(all, Subject{"pkg " + pin.String(), set})
	}
	if len(all) == 0 {
		all = []Subject{{SubjectRun, digestSet(digest.FromBytes([]byte(p.Run)))}}
	}
	return all
}

func digestSet(d digest.Digest) map[string]string {
	return map[string]string{string(d.Algorithm()): d.Hex()}
}
