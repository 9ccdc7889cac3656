package wire

// NewNode is the body of POST /api/nodes.
type NewNode struct {
	Name string `json:"name"`
}

// Node is a machine whose launch agent signs in here.
type Node struct {
	Name      string    `json:"name"`
	Account   string    `json:"account"` // what it signs in as
	CreatedBy string    `json:"created_by"`
	CreatedAt string    `json:"created_at"` // RFC 3339
	Keys      []NodeKey `json:"keys"`       // those in use, the oldest first
	Secret    string    `json:"token,omitempty"`
}

// NodeKey is a public key of a node.
type NodeKey struct {
	ID        string `json:"id"`         // as receipt.KeyID makes it
	PublicKey string `json:"public_key"` // PEM
	CreatedAt string `json:"created_at"` // RFC 3339
	RetiredAt string `json:"retired_at"` // RFC 3339, "" while it is in use
}

// NodeList is the answer of GET /api/nodes.
type NodeList struct {
	Nodes []Node `json:"nodes"`
}

// NewNodeKey is the body of PUT /api/node/key.
type NewNodeKey struct {
	PublicKey string `json:"public_key"` // PEM
}

// NodeIdentity answers it.
type NodeIdentity struct {
	Node     string    `json:"node"`     // its name
	Registry string    `json:"registry"` // the registry's id, as in receipts
	Key      string    `json:"key"`      // the id of the key that was registered
	Keys     []NodeKey `json:"keys"`     // those in use, the oldest first
}

// NodeGrant is the answer of POST /api/node/grants.
type NodeGrant struct {
	Token     string `json:"token"`      // a bearer token, on /v2 and for the files of the job
	ExpiresIn int64  `json:"expires_in"` // seconds
	Job       string `json:"job"`
}
