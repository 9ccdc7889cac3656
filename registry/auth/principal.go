// Package auth says who may do what: principals, roles and the one authorization table, and how passwords and
// token secrets are made and compared. It knows no storage and no HTTP.
package auth

import "slices"

// Role is what an account is for. The real clients know admin, operator, auditor and viewer (wire.md 7).
type Role string

// The roles.
const (
	Admin    Role = "admin"    // everything, in every namespace
	Operator Role = "operator" // reads all packs, publishes below its own name, submits jobs
	Auditor  Role = "auditor"  // reads everything, jobs and the audit log of all accounts too; writes nothing
	Viewer   Role = "viewer"   // reads packs and its own jobs; writes nothing
)

// Roles lists the roles in their fixed order.
var Roles = []Role{Admin, Operator, Auditor, Viewer}

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return slices.Contains(Roles, r) }

// Principal is who makes a request: an account that signed in, or nobody (the zero Principal).
type Principal struct {
	Account string // the account's name, "" when anonymous
	Role    Role
	TokenID string // the token that was presented, "" when a password was
}

// Anonymous reports whether nobody signed in.
func (p Principal) Anonymous() bool { return p.Account == "" }

// Action is something a principal may be allowed to do.
type Action string

// The actions.
const (
	ReadContent    Action = "content:read"    // blobs, manifests, tags, packs, the catalogue
	WriteContent   Action = "content:write"   // push and publish below a namespace
	DeleteContent  Action = "content:delete"  // delete what is not a pack's version
	PublishPolicy  Action = "policy:publish"  // playbook and prompt packs
	ManagePacks    Action = "packs:manage"    // enable, disable, activate
	ManageAccounts Action = "accounts:manage" // accounts, roles, quotas, tokens of others
	OwnTokens      Action = "tokens:own"      // tokens of the own account
	ImportCatalog  Action = "catalogue:import"
	SubmitJobs     Action = "jobs:submit"
	ReadOwnJobs    Action = "jobs:read-own"
	ReadAllJobs    Action = "jobs:read-all"
	ManageJobs     Action = "jobs:manage" // stop the jobs of others
	ReadAudit      Action = "audit:read"
	AnyNamespace   Action = "namespace:any" // write and delete below any owner
)

// Actions lists every action in its fixed order.
var Actions = []Action{
	ReadContent, WriteContent, DeleteContent, PublishPolicy, ManagePacks, ManageAccounts, OwnTokens,
	ImportCatalog, SubmitJobs, ReadOwnJobs, ReadAllJobs, ManageJobs, ReadAudit, AnyNamespace,
}

// allowed is the authorization table: role to actions. WriteContent and DeleteContent are further bound to the
// principal's own namespace, unless the role has AnyNamespace.
var allowed = map[Role][]Action{
	Admin:    Actions,
	Operator: {ReadContent, WriteContent, DeleteContent, OwnTokens, SubmitJobs, ReadOwnJobs},
	Auditor:  {ReadContent, OwnTokens, ReadOwnJobs, ReadAllJobs, ReadAudit},
	Viewer:   {ReadContent, OwnTokens, ReadOwnJobs},
}

// Can reports whether the principal may do the action somewhere.
func (p Principal) Can(a Action) bool {
	return !p.Anonymous() && slices.Contains(allowed[p.Role], a)
}

// CanIn reports whether the principal may do the action in the namespace of owner.
func (p Principal) CanIn(a Action, owner string) bool {
	if !p.Can(a) {
		return false
	}
	if a == WriteContent || a == DeleteContent {
		return p.Account == owner || p.Can(AnyNamespace)
	}
	return true
}
