package wire

import "github.com/gatehouse-registry/gatehouse/registry/auth"

// NewRobot is the body of POST /api/robots.
type NewRobot struct {
	Name        string       `json:"name"`            // without the owner
	Owner       string       `json:"owner,omitempty"` // "" is the caller
	Description string       `json:"description,omitempty"`
	Scopes      []auth.Scope `json:"scopes"`
	ExpiresIn   int64        `json:"expires_in"` // seconds; a robot always expires
}

// Robot is an account for a program.
type Robot struct {
	Name        string       `json:"name"` // <owner>+<name>: what it signs in as
	Owner       string       `json:"owner"`
	Description string       `json:"description"`
	Scopes      []auth.Scope `json:"scopes"`
	CreatedBy   string       `json:"created_by"`
	CreatedAt   string       `json:"created_at"` // RFC 3339
	ExpiresAt   string       `json:"expires_at"`
	Secret      string       `json:"secret,omitempty"` // in the answer to its making only
}

// RobotList is the answer of GET /api/robots.
type RobotList struct {
	Robots []Robot `json:"robots"`
}

// RepositoryAccess is who may read a repository; as the body of PATCH /api/repositories/<name> what it leaves out stays.
type RepositoryAccess struct {
	Name    string    `json:"name,omitempty"`
	Owner   string    `json:"owner,omitempty"`
	Private *bool     `json:"private,omitempty"`
	Readers *[]string `json:"readers,omitempty"`
}

// Namespace gives the repositories of a pattern an owner.
type Namespace struct {
	Pattern         string `json:"pattern"`
	Owner           string `json:"owner"`
	TakeFromAccount bool   `json:"take_from_account,omitempty"` // in a request: also where the names are another account's
	CreatedBy       string `json:"created_by,omitempty"`
	CreatedAt       string `json:"created_at,omitempty"` // RFC 3339
}

// NamespaceList is the answer of GET /api/admin/namespaces.
type NamespaceList struct {
	Namespaces []Namespace `json:"namespaces"`
}

// WorkloadToken is the token endpoint's answer to a program that showed its identity document.
type WorkloadToken struct {
	AccessToken string `json:"access_token"`
	Account     string `json:"account"`
	ExpiresIn   int64  `json:"expires_in"` // seconds
}
