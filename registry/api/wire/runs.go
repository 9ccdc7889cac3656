package wire

import (
	"encoding/json"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
)

// RunReceived answers POST /api/runs.
type RunReceived struct {
	ID       string `json:"id"`
	State    string `json:"state"`    // of the run, as the registry knows it now
	Attested bool   `json:"attested"` // a key of the node that no user has signed it
}

// Run is one launch of a job on one node. Of a run of somebody else's job the owner of a pack sees no Node, Job and Account,
// of Packs only their own, and nothing behind that.
type Run struct {
	ID         string        `json:"id"`
	State      string        `json:"state"` // started, ended or refused
	Node       string        `json:"node"`
	Attested   bool          `json:"attested"`
	Mode       string        `json:"mode"`        // of protection, "" when it never came to that
	ExitCode   *int          `json:"exit_code"`   // of the command; null while there is none
	StartedAt  string        `json:"started_at"`  // RFC 3339, by the node's clock; "" when nothing was started
	EndedAt    string        `json:"ended_at"`    // likewise; "" while it runs
	ReceivedAt string        `json:"received_at"` // when the registry first heard of it
	Job        string        `json:"job"`         // "" for who may not know
	Account    string        `json:"account"`     // whose job it is, "" likewise
	Packs      []receipt.Pin `json:"packs"`       // what it used

	// Of a single run, for who may see the whole.
	Sender     string            `json:"sender,omitempty"`
	Key        string            `json:"key,omitempty"`        // the id of the node's key that signed the newest statement; "" when none did
	Keys       []NodeKey         `json:"keys,omitempty"`       // the node's, retired ones too
	Envelopes  []RunEnvelope     `json:"envelopes,omitempty"`  // verbatim, the first one first
	Statements []json.RawMessage `json:"statements,omitempty"` // what they say, in the same order
}

// RunEnvelope is a statement as it was sent.
type RunEnvelope struct {
	State    string `json:"state"`
	Envelope []byte `json:"envelope"` // base64
}

// RunList is a page of GET /api/runs, newest first.
type RunList struct {
	Runs []Run  `json:"runs"`
	Next string `json:"next"` // the cursor of the page behind it, "" when there is none
}

// RunQuery is what a page of runs is asked for by; an empty field asks for all.
type RunQuery struct {
	Plugin string // <owner>/<name>@<version>
	Digest string // content, tree or manifest digest of a pack
	Job    string
	Node   string
	State  string
	Cursor string
	Limit  int // 0: the server's choice
}

// RevokeRequest is the body of POST /api/plugins/{owner}/{name}/revoke.
type RevokeRequest struct {
	Version string `json:"version"`
	Reason  string `json:"reason"`
}

// Revoked answers it.
type Revoked struct {
	ID       string   `json:"id"`
	Version  string   `json:"version"`
	Reason   string   `json:"reason"`
	DenyList uint64   `json:"deny_list"` // the number of the first deny list that names it
	Same     []string `json:"same"`      // other versions with the same files, revoked with it
	Use      PackUse  `json:"use"`
}

// PackUse is how much a version, or all versions of a pack, is in use.
type PackUse struct {
	QueuedJobs  int64 `json:"queued_jobs"`
	RunningJobs int64 `json:"running_jobs"`
	SilentJobs  int64 `json:"silent_jobs"` // neither ended nor heard of for as long as a job's lease is
	ActiveRuns  int64 `json:"active_runs"` // started and not ended
	SilentRuns  int64 `json:"silent_runs"`
	Runs        int64 `json:"runs"` // ever
}
