package registry

import (
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// RunTx is the part of Tx about runs, and about which packs jobs and runs use.
type RunTx interface {
	InsertRun(Run) error                                                            // with its Packs; Conflict: the id is taken; NotFound: no such job
	UpdateRun(Run) error                                                            // state, attestation, mode, exit code, times and envelopes; ErrNotFound
	Run(id string) (Run, error)                                                     // ErrNotFound
	Runs(RunFilter) ([]Run, error)                                                  // newest first, with Packs, without envelopes
	JobRuns(job string) (JobRuns, error)                                            // zeroes for a job without runs
	PackUse(pack, version string, silent time.Time, now time.Time) (PackUse, error) // version "" means all; silent is since when what was not heard of is so

	// UnindexedJobs are jobs whose packs were not kept when they were stored, by id; with their receipts and nothing else that
	// is large.
	UnindexedJobs(limit int) ([]Job, error)
	IndexJob(Job) error // keeps its Pins, unless that was done; ErrNotFound
}

// JobRuns counts the runs of a job.
type JobRuns struct {
	All    int
	Open   int // started and not ended
	Failed int // ended with another exit code than 0
}

// NodeTx is the part of Tx about nodes.
type NodeTx interface {
	InsertNode(Node) error                             // Conflict: the name is taken; NotFound: no such account
	UpdateNode(Node) error                             // who made it, and its times; ErrNotFound
	Node(name string) (Node, error)                    // ErrNotFound; removed ones too
	Nodes() ([]Node, error)                            // that were not removed, by name
	InsertNodeKey(NodeKey) error                       // Conflict: the node has it, or had it; NotFound: no such node
	NodeKeys(node string) ([]NodeKey, error)           // by creation; retired ones too
	RetireNodeKey(node, id string, at time.Time) error // ErrNotFound; retiring twice keeps the first time
}

// RevocationTx is the part of Tx about revoked versions.
type RevocationTx interface {
	InsertRevocation(Revocation) (Revocation, error)             // gives it the next Seq and marks the version, which is disabled from then on; Conflict: it is revoked; ErrNotFound
	Revocations(afterSeq int64, limit int) ([]Revocation, error) // in order
	LastRevocation() (int64, error)                              // the greatest Seq, 0 for none
	RevocationByTree(tree digest.Digest) (Revocation, error)     // the first one with the tree digest; ErrNotFound
}
