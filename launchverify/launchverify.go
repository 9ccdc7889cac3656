// Package launchverify is gate 3 and the launch agent: it stands in front of a training command and starts it only
// when what the job would run is, byte for byte, what was published, admitted and pinned (design.md 6).
//
// What Run guarantees:
//   - Nothing is launched without a receipt that a trusted key signed for this very spec.
//   - The spec is read once. The gate, the command and everything in between see those bytes.
//   - The command sees its plugins only as our own copies: fetched by manifest digest, written into a root that is
//     the job's alone, made read-only, and only then hashed and compared with what the receipt pins. Every
//     plugin is checked before any plugin code can run. What lies in the job directory must be there and agree,
//     but is never what the job reads.
//   - A refusal starts nothing and leaves nothing behind: one error with every violation, exit code 3, or 7 when a
//     digest, a signature or a receipt failed.
//   - The command runs without privileges and without a descriptor of ours; signals are passed on to it; nothing that
//     it started outlives it; its exit code is Run's.
//
// Which root the kernel allows decides who is kept out (Mode). Run says which one it was and why no better one.
//
// The package holds no network code: the caller hands in a Fetcher. Run starts the current executable again for the
// part that lives in its own namespaces, so a program that calls Run must call Stage first thing in main.
package launchverify

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodecache"
)

// Options say what to launch and how. JobSpec (but for FromPackage), Command, CacheDir and Fetcher are required.
type Options struct {
	// JobSpec is the path of the spec in its job directory: JOB/.starforge/jobspec.json or
	// JOB/.tuneplane/jobspec.json. The folder says which dialect it is read in.
	JobSpec string
	// Receipt is the path of the receipt; "" looks for JOB.receipt.json beside the job directory.
	Receipt string
	// ReceiptFrom brings the receipt instead; then no file is looked for.
	ReceiptFrom ReceiptSource
	// Job is the id of the job that the receipt must be of; "" takes any job's.
	Job string
	// Trust holds the keys whose receipts count; while a registry changes keys, the old and the new one. Without keys
	// nothing is launched, unless ReceiptFrom brings the registry's.
	Trust receipt.TrustSet
	// Audience is the registry's id that the receipt must name; "" takes the trust set's.
	Audience string

	// FromPackage makes the job's directory of the job package that the receipt pins: of the user's own it has the folder
	// of the outputs alone. Then JobSpec may be "": the spec is the one that the receipt pins, and the current directory
	// stands for the job's. Package is the file that holds the package; "" takes it from the cache, or from the Fetcher.
	FromPackage bool
	Package     string

	Command []string // the launcher and its arguments; a relative path is taken from the current directory
	Env     []string // the job's environment; nil is the agent's own
	KeepEnv []string // variables that are passed on although they steer what is loaded
	Binds   []string // further names at the top of the job directory that the job may see
	// CheckOnly ends the launch with gate 3: the root is built, checked and taken away again, and nothing is executed.
	// Command must be empty. The record then has Started false and a Decision.
	CheckOnly bool

	// AllowPrivateCopy lets the launch go on without namespaces, in ModePrivateCopy.
	AllowPrivateCopy bool
	// MountPoint is the empty, root-owned directory at which the private root is mounted; "" chooses one. The job
	// sees its directory there.
	MountPoint string
	// User is who the command runs as (LookupUser finds accounts). Nil is the agent's real user. Only root may name another
	// one: then the job directory is read, and the command runs, with the rights of that user alone.
	User *User

	// Hidden are folders that the job finds empty where it has mounts of its own, although its user could read them: a job
	// that runs as root reads whatever root keeps.
	Hidden []string

	CoreVersion string // of the client that the command runs; "" takes the spec's provenance.core_version
	// CacheDir is the node's cache; only the agent's own user may write to it.
	CacheDir string
	// CacheBytes is how large the cache may grow; 0 is nodecache.DefaultMaxBytes.
	CacheBytes int64
	Fetcher    Fetcher
	// Verified is told the receipt's envelope once it was verified, before anything is fetched. Nil is not called.
	Verified func(envelope []byte)
	Policy   rule.Policy
	// Grace is how long the command has between the signal that ends it and SIGKILL; 0 is DefaultGrace.
	Grace time.Duration
	Now   time.Time // for the receipt's expiry; the zero time is the present

	Stdin, Stdout, Stderr *os.File // the command's; nil are the agent's own

	// Started is called once the command was executed, in a goroutine of its own that nothing waits for, with a copy of
	// the record as it is then. Nil is not called.
	Started func(Record)

	// DenyList asks the registry for its list of revoked versions; nil asks nobody. The list is verified with Trust, kept in
	// the cache, and refuses what it names. It is given 2 seconds.
	DenyList DenyListSource
	// RequireDenyList refuses the launch when no list that has not expired can be had.
	RequireDenyList bool

	hurry     bool       // no stage is given time
	rootBytes int64      // of the root's file system, when it is not to be what the root needs
	modes     []Mode     // the protections to try, in order; nil: all that the agent's user may hope for
	without   []Tracking // that is not to be tried
}

// DefaultGrace is the Grace of a launch that names none.
const DefaultGrace = 30 * time.Second

// User is an account of the node.
type User struct {
	UID    int   `json:"uid"`
	GID    int   `json:"gid"`
	Groups []int `json:"groups"` // supplementary
	// Name and Home become the job's USER, LOGNAME and HOME; "" leaves its environment as it is.
	Name string `json:"name,omitempty"`
	Home string `json:"home,omitempty"`
}

// Fetcher brings what is pinned from a registry. Its methods are called with pins that differ; they need not be
// safe for concurrent use.
type Fetcher interface {
	nodecache.Source
	// FetchSpec and FetchPackage open the stored spec and the job package of the job that a receipt is of. What they give
	// is verified by the digests that the receipt pins.
	FetchSpec(ctx context.Context, r *receipt.Receipt) (io.ReadCloser, error)
	FetchPackage(ctx context.Context, r *receipt.Receipt) (io.ReadCloser, error)
}
