package registry

import (
	"crypto/ed25519"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// RunState is how far a run has come. The later state wins, and the two last are final.
type RunState string

// The states of a run.
const (
	RunStarted RunState = "started" // the command was executed
	RunEnded   RunState = "ended"   // the command is over
	RunRefused RunState = "refused" // the launch was refused, and nothing was started
)

// Final reports whether no other state follows.
func (s RunState) Final() bool { return s == RunEnded || s == RunRefused }

// NoExitCode is the ExitCode of a run whose command has none.
const NoExitCode = -1

// Run is one launch of a job on one node, as the launch agent recorded it.
type Run struct {
	ID       string // made by the agent: 128 random bits in hex
	Job      string
	Account  string // whose job it is
	Node     string // a node's name; where Sender is no node, what the sender calls it
	Sender   string // the account that sent the record
	State    RunState
	Attested bool          // a key of the node signed the newest statement, and it does not call itself self-asserted
	Key      string        // the id of the key that signed the newest statement, "" when none of the node's did
	Mode     string        // of protection
	ExitCode int           // of the command; NoExitCode while there is none
	Packs    []receipt.Pin // what it used

	StartedAt  time.Time // by the node's clock
	EndedAt    time.Time // likewise; zero before
	ReceivedAt time.Time // when the registry first heard of it
	ChangedAt  time.Time // when it last did

	Started []byte // the envelope that says that it started, verbatim; nil when none came
	Final   []byte // the envelope that says that it ended or was refused; nil before
}

// RunFilter selects runs; an empty field selects all.
type RunFilter struct {
	Pack    string // <owner>/<name>, with Version
	Version string
	Digest  digest.Digest // the content, tree or manifest digest of any of its packs
	Job     string
	Node    string
	Account string // whose job it is
	State   RunState
	Before  string // runs behind the one with this id, in the order of the list; a run that is not there has none behind it
	Limit   int    // < 0: all
}

// PackUse is how much a version of a pack, or all versions, is in use. What was not heard of for Settings.LeaseTTL is silent:
// it may run still, or nobody said that it ended.
type PackUse struct {
	QueuedJobs  int64 // admitted and not yet running
	RunningJobs int64
	SilentJobs  int64 // neither ended nor heard of
	ActiveRuns  int64 // started and not ended
	SilentRuns  int64
	Runs        int64 // ever
}

// Node is a machine whose launch agent may read what receipts name and write records of runs, and nothing else.
type Node struct {
	Name      string
	Account   string // node/<name>: what it signs in as
	CreatedBy string
	CreatedAt time.Time
	RemovedAt time.Time // zero: it may sign in
}

// NodeKey is a public key with which a node signs what it records. One that was retired still vouches for what it signed
// before, and for nothing new.
type NodeKey struct {
	Node      string
	ID        string // receipt.KeyID
	Public    ed25519.PublicKey
	CreatedAt time.Time
	RetiredAt time.Time // zero: in use
}

// Revocation says that a version must not be used any more. It is final.
type Revocation struct {
	Seq        int64 // from 1; given by the store
	Repository string
	Pack       string // <owner>/<name>
	Version    string
	Content    digest.Digest
	Tree       digest.Digest
	Manifest   digest.Digest
	Layer      digest.Digest
	Reason     string
	By         string
	At         time.Time
}
