package registry

import (
	"encoding/json"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Account is somebody who can sign in. Its name is the owner of its packs and follows OCI path components.
type Account struct {
	Name         string
	Role         auth.Role
	Email        string
	PasswordHash string // argon2id, "" when the account has no password
	Disabled     bool
	MaxGPUs      int // concurrent GPUs its jobs may hold; 0 means no limit; what Quota says
	CreatedAt    time.Time
	Quota        json.RawMessage // the platform's quota document as the client sent it, null when never set
}

// Token is a bearer secret of an account. Only the sha256 of the secret is stored.
type Token struct {
	ID        string // public, 16 hex digits
	Account   string
	Hash      [32]byte
	Label     string
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: live
}

// Repository is one OCI repository, "<owner>/<name>". It becomes a pack repository with its first pack version
// and stays one; then it takes only packs, their referrers and cosign's tags (design.md 2).
type Repository struct {
	Name      string // as in the OCI API, lower case
	Owner     string // first path component
	PackName  string // the pack's name with its case; "" while no pack was published
	PackFold  string // what is unique among the owner's pack names (admission/name.Fold); "" likewise
	PackKind  string // the pack kind, fixed by the first version; "" while no pack was published
	CreatedAt time.Time
}

// Manifest is a stored manifest or index of a repository. Its bytes are a blob.
type Manifest struct {
	Repository   string
	Digest       digest.Digest
	MediaType    string
	Size         int64
	ArtifactType string            // of the manifest, or its config's media type (distribution-spec, referrers)
	Subject      digest.Digest     // zero when it refers to nothing
	Annotations  map[string]string // of the manifest
	References   []digest.Digest   // blobs and manifests it names, in document order
	PushedAt     time.Time
}

// Tag points at a manifest of the repository.
type Tag struct {
	Repository string
	Name       string
	Digest     digest.Digest
	UpdatedAt  time.Time
}

// Version is one immutable version of a pack. It is written once; only Enabled ever changes, with its Reason.
type Version struct {
	Repository string // the OCI name
	Owner      string
	PackName   string // the name with its case
	Version    string // as published: the tag
	Key        string // what must be unique besides Version: equal under PEP 440 or but for case
	Dialect    dialect.Dialect
	Kind       string // internal kind name, e.g. data-prep-job
	Manifest   digest.Digest
	Content    digest.Digest
	Tree       digest.Digest
	Layer      digest.Descriptor // the archive
	Config     digest.Descriptor
	Summary    string
	Document   json.RawMessage // the normalised plugin.yaml
	Catalogue  json.RawMessage // a recipe's catalogue entry, null for other kinds
	Enabled    bool
	CreatedBy  string
	CreatedAt  time.Time
	Files      int
	Bytes      int64     // unpacked
	Reason     string    // why it was disabled or revoked, "" when nobody said
	RevokedAt  time.Time // zero: it was not
}

// ID is "<owner>/<pack name>", as the clients name a pack.
func (v Version) ID() string { return v.Owner + "/" + v.PackName }

// LedgerRow is a line of the ledger: what was published, for ever. It outlives everything else.
type LedgerRow struct {
	Seq       int64           `json:"seq"`
	Owner     string          `json:"owner"`
	Name      string          `json:"name"`
	Version   string          `json:"version"`
	Dialect   dialect.Dialect `json:"dialect"`
	Kind      string          `json:"kind"`
	Manifest  digest.Digest   `json:"manifest"`
	Content   digest.Digest   `json:"content"`
	Tree      digest.Digest   `json:"tree"`
	CreatedBy string          `json:"createdBy"`
	CreatedAt time.Time       `json:"createdAt"`
}

// ClientID says which pack has an id by which the clients of a dialect know a recipe or a benchmark: they leave the owner
// out of the one and join it with a dot in the other, so that two packs could be one for them (packs.md 5.5, 6). Once
// taken it stays taken, in every case of its letters.
type ClientID struct {
	Dialect dialect.Dialect
	Kind    string // recipe or benchmark
	ID      string // <framework>/<name>, <owner>.<name>
	Pack    string // <owner>/<pack name>
	Alias   bool   // the id is another spelling of the recipe's own
}

// Shelved is the newest enabled version of a declarative pack in a dialect, which is what clients sync, with what the
// catalogue says of it. What it says of a recipe is empty for packs of other kinds.
type Shelved struct {
	Dialect       dialect.Dialect
	Repository    string
	Version       string // of the pack
	Owner         string
	PackName      string
	Kind          string
	Content       digest.Digest
	Tree          digest.Digest
	Recipe        string          // the recipe's id
	Alias         string          // its other spelling
	RecipeVersion string          // as the document has it
	RecipeDigest  string          // what the handshake compares
	Entry         json.RawMessage // the catalogue's entry, without parameters; null for other kinds
}

// ID is "<owner>/<pack name>", as the clients name a pack.
func (v Shelved) ID() string { return v.Owner + "/" + v.PackName }

// CataloguePart is what a stamp of the catalogue is about.
type CataloguePart string

// The parts of the catalogue.
const (
	ShelfPart    CataloguePart = "shelf"    // published packs
	ReleasesPart CataloguePart = "releases" // imported client releases
)

// Snapshot is the built-in part of the catalogue of one client release, as an administrator imported it.
type Snapshot struct {
	Dialect    dialect.Dialect
	Release    string
	Document   []byte // as package catalogue reads it
	ImportedBy string
	ImportedAt time.Time
}

// Activation is which playbook or prompt pack is active; Generation counts its changes.
type Activation struct {
	Kind       string // playbook or prompt
	Generation int64
	Reference  json.RawMessage // {id, version, digest}, or null
}

// JobStatus is the state of a job as the registry knows it.
type JobStatus string

// The states of a job. The registry knows of the first and, when it was asked to stop a job, of the last; who runs the job
// reports the others.
const (
	JobAdmitted  JobStatus = "admitted"
	JobQueued    JobStatus = "queued"
	JobRunning   JobStatus = "running"
	JobSucceeded JobStatus = "succeeded"
	JobFailed    JobStatus = "failed"
	JobStopped   JobStatus = "stopped"
)

// Ended reports whether the state is final.
func (s JobStatus) Ended() bool { return s == JobSucceeded || s == JobFailed || s == JobStopped }

// Leased is what an account's jobs hold whose lease runs.
type Leased struct {
	Jobs int64
	GPUs int64 // over all pools of all jobs
}

// Job is an admitted job. Spec holds the very bytes that were decided on; they never change.
type Job struct {
	ID          string // run id, sortable by time
	Account     string
	Dialect     dialect.Dialect
	Exp         string
	Name        string
	Project     string
	Status      JobStatus
	GPUs        int
	Spec        []byte
	SpecDigest  digest.Digest // sha256 of Spec
	Package     digest.Descriptor
	Meta        json.RawMessage // what came beside the spec: git commit, sweep, profile
	Decision    json.RawMessage
	Warnings    []rule.Violation // of the decision, when the job was made just now; nil for one that comes from the store
	Receipt     []byte           // DSSE envelope
	Pins        []receipt.Pin    // what the receipt pins, when the job was made just now; nil for one that comes from the store
	Key         string           // idempotency key of the commit, "" for forge
	SubmittedAt time.Time
	LeaseUntil  time.Time // until when its GPUs count against the quota
}

// PackageUpload is a job package on its way, or stored, in tuneplane's submission (wire.md 6.2).
type PackageUpload struct {
	ID        string
	Account   string
	TokenHash [32]byte
	Want      digest.Descriptor
	Stored    bool
	ExpiresAt time.Time
	// Experiment is the deepest folder that holds all members of the stored package outside common and configs; "." when they
	// have none in common, "" while there are none.
	Experiment string
}

// Preview is a decided but not committed tuneplane submission (wire.md 6.2).
type Preview struct {
	ID        string // 32 hex digits
	Account   string
	Digest    digest.Digest // sha256 of Document
	Document  []byte        // the preview request as stored; the commit checks this again
	ExpiresAt time.Time
	JobID     string // set by the commit
}

// AuditRow records a write or a refusal.
type AuditRow struct {
	Seq     int64     `json:"seq"`
	At      time.Time `json:"at"`
	Account string    `json:"account"` // "" for nobody
	Action  string    `json:"action"`  // e.g. "pack.publish"
	Subject string    `json:"subject"` // what it was done to
	Outcome string    `json:"outcome"` // "ok" or the code of the refusal
	Detail  string    `json:"detail"`
	Remote  string    `json:"remote"`  // the address that asked, "" when the registry itself acted
	Request string    `json:"request"` // the id of the request, likewise
}

// RepositoryAccess is what a repository's row says about who may reach it.
type RepositoryAccess struct {
	Owner   string
	Private bool
	Listed  bool // whether the account that was asked about is one of its readers
}

// Robot is an account for a program: it acts for its owner, within scopes, until it expires. Its tokens are those of the
// account of its name.
type Robot struct {
	Name        string // <owner>+<name>
	Owner       string // an account that is no robot
	Description string
	Scopes      []auth.Scope
	CreatedBy   string
	CreatedAt   time.Time
	ExpiresAt   time.Time
}

// Namespace gives the repositories of a pattern an owner that their first component does not name.
type Namespace struct {
	Pattern   string
	Owner     string
	CreatedBy string
	CreatedAt time.Time
}

// SignInFailures counts the failed sign-ins with a password of an account, or from a network.
type SignInFailures struct {
	Subject     string
	Failures    int
	LastAt      time.Time
	LockedUntil time.Time // zero: not locked
}

// HeldBlob is a blob that a repository holds.
type HeldBlob struct {
	digest.Descriptor
	Revoked string // the version, <owner>/<name>@<version>, whose archive it is and that was revoked; "" for any other blob
	Reason  string // why
}

// Link says that a repository holds a blob.
type Link struct {
	Repository string
	Digest     digest.Digest
	Size       int64
	LinkedAt   time.Time // when it was pushed or mounted last
	Referenced bool      // a manifest of the repository names it
}

// BlobReference says that a manifest of a repository names a digest.
type BlobReference struct {
	Repository string
	Manifest   digest.Digest
	Position   int // in the manifest's References
	Digest     digest.Digest
}

// HeldManifest is a manifest of a repository with what keeps it there.
type HeldManifest struct {
	Digest   digest.Digest
	Size     int64
	PushedAt time.Time
	Subject  digest.Digest // what it refers to, zero for nothing
	Tags     int           // tags that point at it
	Parents  int           // manifests of the repository that name it among their content
	Version  bool          // it is a version of a pack

	LooseSince time.Time // since when collections find that nothing keeps it; zero for what something keeps
}

// Quota is what an owner may hold; 0 means no limit.
type Quota struct {
	Bytes     int64 `json:"bytes" yaml:"bytes"`         // each digest counts once, however many of the owner's repositories hold it
	Versions  int64 `json:"versions" yaml:"versions"`   // of packs
	Manifests int64 `json:"manifests" yaml:"manifests"` // in all repositories
}

// OwnerUsage is what an owner holds, counted as its Quota is.
type OwnerUsage struct {
	Owner     string
	Bytes     int64
	Versions  int64
	Manifests int64
	Own       *Quota // the owner's own limit, nil when the default applies
}

// Session is a sign-in that lasts: of a client, which holds an access and a refresh token of it, or of a browser at the pages.
type Session struct {
	ID         string // public, 16 hex digits
	Account    string
	Kind       SessionKind
	Credential string // what it was made from, as signin.go names credentials, and lives no longer than; "" when an administrator approved it
	Device     Device // what a client says of itself
	Remote     string // the address that began it
	Generation int64  // of its refresh token
	CreatedAt  time.Time
	RotatedAt  time.Time // when the refresh token changed last
	UsedAt     time.Time // when it was made or refreshed last
	ExpiresAt  time.Time
	RevokedAt  time.Time // zero: live
}

// SessionKind says who holds a session.
type SessionKind string

// The kinds of session.
const (
	ClientSession  SessionKind = "client"
	BrowserSession SessionKind = "browser"
)

// DeviceState is how far a device flow has come.
type DeviceState string

// The states of a device flow.
const (
	DevicePending  DeviceState = "pending"
	DeviceApproved DeviceState = "approved"
	DeviceDenied   DeviceState = "denied"
	DeviceUsed     DeviceState = "used" // a session was made of it
)

// DeviceCode is a device flow that runs (wire.md 3.2). Only the sha256 of the device code is stored.
type DeviceCode struct {
	Hash       [32]byte
	UserCode   string // eight letters, see signin_device.go
	Device     Device
	Remote     string // the address that asked for it
	Network    string // that address as limits count it
	State      DeviceState
	Account    string // whom it was approved for
	Credential string // what the session will be made from
	CreatedAt  time.Time
	PolledAt   time.Time // zero: never
	ExpiresAt  time.Time
}

// AuthorizationCode is what the pages hand to a client that opened a browser (wire.md 3.3). Only the sha256 of the code is
// stored.
type AuthorizationCode struct {
	Hash        [32]byte
	Account     string
	Credential  string // what the session will be made from
	Challenge   string // the client's, of which it must show the verifier
	RedirectURI string
	Device      Device
	Session     string // the session that was made of it, "" while none was
	ExpiresAt   time.Time
}
