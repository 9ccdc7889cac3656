package launchverify

import (
	"maps"
	"slices"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// Mode is how the job's files are kept from being changed between the check and the end of the job (design.md 6).
type Mode string

// The modes, best first.
const (
	// ModeRoot: the agent is root. A mount namespace of root's, the command in a user namespace that root owns
	// with its uid mapped to itself. Keeps out other users and the job's own user, outside and inside.
	ModeRoot Mode = "root"
	// ModeUser: an unprivileged user namespace. Keeps out other users, and the job's own user through the file
	// system; not a process of the same user that enters our namespace or traces us.
	ModeUser Mode = "user"
	// ModePrivateCopy: no namespace, a private copy at a path that nobody is told, checked again at the end.
	// Keeps out accidents and other users.
	ModePrivateCopy Mode = "private-copy"
)

// Tracking is by what an agent knows the processes of its job, all of which end with it.
type Tracking string

// The ways of tracking, best first.
const (
	// TrackingPIDNamespace: the job has a process namespace of its own. The kernel ends all of it with the stage, and the
	// stage with the agent.
	TrackingPIDNamespace Tracking = "pid-namespace"
	// TrackingCgroup: a control group of the job's own, which the kernel kills whole; and descent, as below.
	TrackingCgroup Tracking = "cgroup"
	// TrackingDescendants: three processes of the agent's, to which every orphan of the job comes. One of them that is
	// left is enough to end the job.
	TrackingDescendants Tracking = "descendants"
	// TrackingProcessGroup: the command's process group; systems other than Linux have nothing better.
	TrackingProcessGroup Tracking = "process-group"
)

// RecordSchema names the form of a Record.
const RecordSchema = "gatehouse/launch-record/v1"

// Record is what a launch did: what was checked, under which protection, what ran and how it ended. Its JSON form is
// for people and tools; it proves nothing by itself.
type Record struct {
	Schema    string          `json:"schema"`
	Run       string          `json:"run,omitempty"` // the run's id in the registry; "" when nobody is told of it
	JobDir    string          `json:"jobDir"`
	Dialect   dialect.Dialect `json:"dialect,omitempty"`
	SpecBytes digest.Digest   `json:"specBytes,omitzero"`

	// Receipt is sha256 of the receipt's envelope. ReceiptFrom and KeysFrom say where it and the keys that were to
	// verify it came from: FromFile or FromRegistry. Job and Audience are what it says, once its signature was verified.
	Receipt     digest.Digest `json:"receipt,omitzero"`
	ReceiptFrom string        `json:"receiptFrom,omitempty"`
	KeysFrom    string        `json:"keysFrom,omitempty"`
	Job         string        `json:"job,omitempty"`
	Audience    string        `json:"audience,omitempty"`

	// User is who the command ran as, or was to. JobOwner is the uid that the job directory belongs to: whoever that is
	// decides what lies there, and so what runs as User.
	User     User `json:"user"`
	JobOwner int  `json:"jobOwner"`

	Mode Mode `json:"mode,omitempty"`
	// Unavailable says, for each better mode that was tried, why the node does not allow it.
	Unavailable map[Mode]string `json:"unavailable,omitempty"`
	// PIDNamespace says that the job had a process namespace of its own. Tracking says by what its processes were known
	// when they had to end.
	PIDNamespace bool     `json:"pidNamespace"`
	Tracking     Tracking `json:"tracking,omitempty"`
	Root         string   `json:"root,omitempty"` // where the job saw its directory

	CoreVersion string        `json:"coreVersion,omitempty"`
	CoreSource  string        `json:"coreSource,omitempty"` // "option" or "provenance"
	Plugins     []receipt.Pin `json:"plugins"`
	Recipes     []receipt.Pin `json:"recipes"`

	// Package is the digest of the job package that the job's directory was made of; zero when it is the user's directory.
	Package digest.Digest `json:"package,omitzero"`

	Binds      []string `json:"binds"`            // names of the job directory that the job saw
	Hidden     []string `json:"hidden,omitempty"` // folders that the job found empty
	RemovedEnv []string `json:"removedEnv"`       // names of variables that were not passed on
	SetEnv     []string `json:"setEnv"`           // variables that were set, NAME=VALUE
	// PassedEnv names variables that steer what is loaded, and were there and passed on all the same.
	PassedEnv []string `json:"passedEnv,omitempty"`

	// DenyList is what was known of revoked versions; nil when no list was kept and nobody could be asked.
	DenyList *runrecord.DenyList `json:"denyList,omitempty"`
	Decision *rule.Decision      `json:"decision,omitempty"`
	Command  []string            `json:"command"`
	Started  bool                `json:"started"` // the command was executed
	// Training says whether the command ever started another process, as a launcher does that trains, and how that was
	// seen.
	Training runrecord.Training `json:"training"`
	ExitCode int                `json:"exitCode"`         // the command's; 128+s when signal s killed it
	Signal   int                `json:"signal,omitempty"` // that killed the command
	Killed   int                `json:"killed,omitempty"` // processes that had to be killed after the command ended
	// Changed says, in ModePrivateCopy, that the copy was no longer what was checked when the job ended.
	Changed bool `json:"changed,omitempty"`

	StartedAt time.Time `json:"startedAt,omitzero"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
}

// clone is a copy that nobody else writes to.
func (r *Record) clone() Record {
	c := *r
	c.Unavailable = maps.Clone(r.Unavailable)
	c.Plugins, c.Recipes = slices.Clone(r.Plugins), slices.Clone(r.Recipes)
	c.Binds, c.RemovedEnv, c.SetEnv, c.Command = slices.Clone(r.Binds), slices.Clone(r.RemovedEnv), slices.Clone(r.SetEnv), slices.Clone(r.Command)
	c.PassedEnv = slices.Clone(r.PassedEnv)
	return c
}
