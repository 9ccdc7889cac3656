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
	// Robot is what a robot account acts as: content and the states of jobs within its scopes, and never more than its owner
	// may. No account can be given it.
	Robot Role = "robot"
	// Node is what the launch agent of a machine acts as: it writes records of runs, and reads the deny list and what the
	// grant for a receipt names. No account can be given it.
	Node Role = "node"
)

// Roles lists the roles that an account can be given, in their fixed order.
var Roles = []Role{Admin, Operator, Auditor, Viewer}

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return slices.Contains(Roles, r) }

// Principal is who makes a request: an account that signed in, or nobody (the zero Principal).
type Principal struct {
	Account string // the account's name, "" when anonymous
	Role    Role
	TokenID string // the token that was presented, or that the session was made from; "" when it was a password

	// Credential names what was presented where that is no token: tokens of the token endpoint are bound to it.
	Credential string

	Session *Session // the session whose token or cookie was presented, nil when none was

	Owner     string  // whom a robot acts for, "" for anybody else
	OwnerRole Role    // a robot's: that of its owner
	Scopes    []Scope // a robot's; nil for anybody else, which is all that the role allows
	Grant     *Grant  // what a bearer token of the token endpoint was made for; nil: it was no such token

	Remote  string // the address that asks, for the audit log
	Request string // the id of the request, likewise
}

// Session is the session that a principal signed in with.
type Session struct {
	ID      string
	Client  string // the base path of the client's dialect, sf or tp; "" for a client that is neither
	Release string // of that client, "" when it named none
}

// Grant bounds a bearer token of the token endpoint: it is good for content only, and for these repositories.
type Grant struct {
	Scopes    []Scope
	Catalogue bool // the list of repositories

	Launch *Launch // set: the grant is good for what a receipt names, and for nothing else
}

// Launch bounds the grant for a receipt: to the bytes of its packs, named by digest, and to the files of its job.
type Launch struct {
	Job     string
	Content map[string][]string // digests of manifests, configs and archives, by repository
}

// Names reports whether the grant is for the bytes with the digest in the repository.
func (l *Launch) Names(repository, digest string) bool {
	return slices.Contains(l.Content[repository], digest)
}

// Launching is what the receipt of a node's grant names; nil for anybody who has no such grant.
func (p Principal) Launching() *Launch {
	if p.Grant == nil {
		return nil
	}
	return p.Grant.Launch
}

// Anonymous reports whether nobody signed in.
func (p Principal) Anonymous() bool { return p.Account == "" }

// Namespace is the account whose repositories are the principal's own.
func (p Principal) Namespace() string {
	if p.Owner != "" {
		return p.Owner
	}
	return p.Account
}

// InScope reports whether the scopes of a robot allow the verb on the repository, or on what JobScope gives for a job. Who is
// no robot has no such bound.
func (p Principal) InScope(v Verb, repository string) bool {
	return p.Role != Robot && p.Scopes == nil || Allows(p.Scopes, v, repository)
}

// Granted reports whether the bearer token, if there is one, was made for the verb on the repository.
func (p Principal) Granted(v Verb, repository string) bool {
	return p.Grant == nil || Allows(p.Grant.Scopes, v, repository)
}

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
	ReadCatalogue  Action = "catalogue:read"  // what clients sync and may submit: whole or not at all
	ImportCatalog  Action = "catalogue:import"
	SubmitJobs     Action = "jobs:submit"
	ReadOwnJobs    Action = "jobs:read-own"
	ReadAllJobs    Action = "jobs:read-all"
	ManageJobs     Action = "jobs:manage" // stop the jobs of others
	ReportJobs     Action = "jobs:report" // say how far a job has come
	ReadAudit      Action = "audit:read"
	AnyNamespace   Action = "namespace:any"     // write and delete below any owner
	ManageAccess   Action = "repository:access" // who may read a repository; robots
	ReadPrivate    Action = "content:read-private"
	CollectContent Action = "content:collect" // run garbage collections
	CheckContent   Action = "content:check"   // fsck, the scrub, repairs
	ManageQuotas   Action = "quotas:manage"
	RevokePacks    Action = "packs:revoke"    // for good
	ManageNodes    Action = "nodes:manage"    // who is a node
	ActAsNode      Action = "node:act"        // register a key, ask for grants
	WriteRuns      Action = "runs:write"      // records of runs; of others' jobs only a node does
	ReadTrust      Action = "trust:read"      // the registry's key and its deny list
	ReadJobFiles   Action = "jobs:read-files" // spec, receipt and package of a job that the caller may know of
	ReadPinned     Action = "content:read-pinned"
)

// Actions lists every action that an account can be allowed, in its fixed order. What only a node does is not among them.
var Actions = []Action{
	ReadContent, WriteContent, DeleteContent, PublishPolicy, ManagePacks, ManageAccounts, OwnTokens,
	ReadCatalogue, ImportCatalog, SubmitJobs, ReadOwnJobs, ReadAllJobs, ManageJobs, ReportJobs, ReadAudit, AnyNamespace, ManageAccess,
	ReadPrivate, CollectContent, CheckContent, ManageQuotas, RevokePacks, ManageNodes, WriteRuns, ReadTrust, ReadJobFiles,
}

// allowed is the authorization table: role to actions. The actions of ownOnly are further bound to the principal's own
// namespace, unless the role has AnyNamespace.
var allowed = map[Role][]Action{
	Admin:    Actions,
	Operator: {ReadContent, ReadCatalogue, WriteContent, DeleteContent, OwnTokens, SubmitJobs, ReadOwnJobs, ManageAccess, WriteRuns, ReadTrust, ReadJobFiles},
	Auditor:  {ReadContent, ReadCatalogue, OwnTokens, ReadOwnJobs, ReadAllJobs, ReadAudit, ReadPrivate, ReadTrust, ReadJobFiles},
	Viewer:   {ReadContent, ReadCatalogue, OwnTokens, ReadOwnJobs, ReadTrust, ReadJobFiles},
	Robot:    {ReadContent, WriteContent, DeleteContent, AnyNamespace, ReadPrivate, ReportJobs, ReadTrust},
	Node:     {ActAsNode, WriteRuns, ReadTrust},
}

// ownOnly are the actions that are bound to a namespace.
var ownOnly = []Action{WriteContent, DeleteContent, ManageAccess}

// bearable is what a bearer token of the token endpoint may be used for at most.
var bearable = []Action{ReadContent, WriteContent, DeleteContent, PublishPolicy, AnyNamespace, ReadPrivate}

// launchable is what the grant for a receipt may be used for at most: bytes by digest and a job's files, which the use cases
// bound further.
var launchable = []Action{ReadPinned, ReadJobFiles}

// Can reports whether the principal may do the action somewhere.
func (p Principal) Can(a Action) bool {
	switch {
	case p.Launching() != nil:
		return p.Role == Node && slices.Contains(launchable, a)
	case p.Anonymous(), !slices.Contains(allowed[p.Role], a):
		return false
	case p.Role == Robot && !slices.Contains(allowed[p.OwnerRole], a):
		return false
	}
	return p.Grant == nil || slices.Contains(bearable, a)
}

// CanIn reports whether the principal may do the action in the namespace of owner.
func (p Principal) CanIn(a Action, owner string) bool {
	if !p.Can(a) {
		return false
	}
	return !slices.Contains(ownOnly, a) || p.Namespace() == owner || p.Can(AnyNamespace)
}
