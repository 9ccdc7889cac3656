// Package wire holds the JSON bodies of the API that the server writes and our own client reads. Fields that the real
// clients require are never omitted (contracts/wire.md).
package wire

import (
	"encoding/json"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// PluginRow is a pack in GET /api/plugins (wire.md 4.1). Capability and Execution are tuneplane's.
type PluginRow struct {
	ID            string          `json:"id"`
	Kind          string          `json:"kind"`
	LatestVersion string          `json:"latest_version"`
	Enabled       bool            `json:"enabled"`
	Summary       string          `json:"summary"`
	Capability    string          `json:"capability"`
	Execution     string          `json:"execution"`
	Dialect       dialect.Dialect `json:"dialect"`
	Digest        string          `json:"digest"`
}

// PluginList is the answer of GET /api/plugins.
type PluginList struct {
	Plugins []PluginRow `json:"plugins"`
}

// VersionRow is a version in the answer about one pack.
type VersionRow struct {
	Version   string `json:"version"`
	Enabled   bool   `json:"enabled"`
	CreatedAt string `json:"created_at"`           // RFC 3339
	Digest    string `json:"digest"`               // content
	Reason    string `json:"reason,omitempty"`     // why it is disabled or revoked
	RevokedAt string `json:"revoked_at,omitempty"` // RFC 3339; absent when it is not
}

// Plugin is the answer about one version (wire.md 4.2), with what is ours beside it.
type Plugin struct {
	ID             string          `json:"id"`
	Version        string          `json:"version"`
	Kind           string          `json:"kind"`
	Digest         string          `json:"digest"` // content
	Enabled        bool            `json:"enabled"`
	CreatedBy      string          `json:"created_by"`
	CreatedAt      string          `json:"created_at"` // RFC 3339
	Summary        string          `json:"summary"`
	Versions       []VersionRow    `json:"versions"`
	Manifest       json.RawMessage `json:"manifest"`
	ManifestSchema string          `json:"manifest_schema"`
	Capability     string          `json:"capability"`
	Execution      string          `json:"execution"`
	Dialect        dialect.Dialect `json:"dialect"`
	TreeDigest     string          `json:"tree_digest"`
	ManifestDigest string          `json:"manifest_digest"`
	Reference      string          `json:"reference"` // <repository>:<tag> in the OCI API
	SizeBytes      int64           `json:"size_bytes"`
	Files          int             `json:"files"`
	Warnings       []string        `json:"warnings"`               // of the publish that this answers
	Reason         string          `json:"reason,omitempty"`       // why it is disabled or revoked
	RevokedAt      string          `json:"revoked_at,omitempty"`   // RFC 3339; absent when it is not
	Recipe         string          `json:"recipe,omitempty"`       // the id of a recipe pack's recipe, as jobs name it
	RecipeAlias    string          `json:"recipe_alias,omitempty"` // the other spelling, with the owner
}

// EnableRequest is the body of PATCH /api/plugins/{owner}/{name} (wire.md 4.5).
type EnableRequest struct {
	Enabled *bool  `json:"enabled"`
	Version string `json:"version,omitempty"` // "" means all
	Reason  string `json:"reason,omitempty"`  // why, for a disable
}

// Enabled answers it.
type Enabled struct {
	ID       string `json:"id"`
	Enabled  bool   `json:"enabled"`
	Affected int    `json:"versions_affected"`
	// What uses the versions that were disabled; it goes on. Absent after an enable.
	Use *PackUse `json:"use,omitempty"`
}

// User is an account as the clients' admin verbs read it (wire.md 7).
type User struct {
	ID         string    `json:"id"`
	Username   string    `json:"username"`
	Role       auth.Role `json:"role"`
	Email      string    `json:"email"`
	AuthSource string    `json:"auth_source"`
	Disabled   bool      `json:"disabled"`
	CreatedAt  string    `json:"created_at"` // RFC 3339
}

// Whoami is the answer of GET /api/whoami.
type Whoami struct {
	User User `json:"user"`
}

// UserList is the answer of GET /api/admin/users.
type UserList struct {
	Users []User `json:"users"`
}

// NewUser is the body of POST /api/admin/users.
type NewUser struct {
	Username string    `json:"username"`
	Password string    `json:"password,omitempty"`
	Role     auth.Role `json:"role,omitempty"` // "" means operator
	Email    string    `json:"email,omitempty"`
}

// NewToken is the body of POST /api/tokens.
type NewToken struct {
	Account   string `json:"account,omitempty"` // "" means the caller's
	Label     string `json:"label,omitempty"`
	ExpiresIn int64  `json:"expires_in,omitempty"` // seconds; 0 means never
}

// Token is a token; Secret stands only in the answer that made it.
type Token struct {
	ID        string `json:"id"`
	Account   string `json:"account"`
	Label     string `json:"label"`
	CreatedAt string `json:"created_at"` // RFC 3339
	ExpiresAt string `json:"expires_at"` // RFC 3339, "" when it never expires
	Revoked   bool   `json:"revoked"`
	Secret    string `json:"token,omitempty"`
}

// TokenList is the answer of GET /api/tokens.
type TokenList struct {
	Tokens []Token `json:"tokens"`
}

// Submitted answers a submission in the form that both real clients show (wire.md 6.1).
type Submitted struct {
	Queued     bool     `json:"queued"`
	RunID      string   `json:"run_id"`
	JobID      string   `json:"job_id"`
	GPUs       int      `json:"requested_gpus"`
	Message    string   `json:"message"`
	Warnings   []string `json:"warnings"`
	SpecDigest string   `json:"spec_digest"` // sha256 of the stored spec
}

// Job is a job as the clients list it (wire.md 7), with what is ours beside it.
type Job struct {
	RunID       string          `json:"run_id"`
	JobRef      string          `json:"job_ref"`
	Status      string          `json:"status"`
	Exp         string          `json:"exp"`
	Name        string          `json:"name"`
	Owner       string          `json:"owner"`
	Dialect     dialect.Dialect `json:"dialect"`
	GPUs        int             `json:"requested_gpus"`
	SubmittedAt string          `json:"submitted_at"` // RFC 3339
	SpecDigest  string          `json:"spec_digest"`
	Package     string          `json:"package_digest"`     // "" when none was sent
	Decision    json.RawMessage `json:"decision,omitempty"` // of a single job only
	Meta        json.RawMessage `json:"meta,omitempty"`     // what came beside the spec, of a single job only
}

// JobState is the answer of POST /api/jobs/{id}/state.
type JobState struct {
	RunID      string `json:"run_id"`
	Status     string `json:"status"`
	LeaseUntil string `json:"lease_until"` // RFC 3339, until when the job's GPUs count without another report; "" when they don't
}

// JobList is the answer of GET /api/jobs/mine.
type JobList struct {
	Jobs []Job `json:"jobs"`
}
