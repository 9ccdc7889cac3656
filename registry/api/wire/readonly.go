package wire

// ReadOnly is whether the registry takes no changes, and what clients are told then; also the body of PUT.
type ReadOnly struct {
	ReadOnly bool   `json:"read_only"`
	Reason   string `json:"reason,omitempty"`
}

// DefaultReadOnlyReason is what clients are told when an administrator gave no reason.
const DefaultReadOnlyReason = "an administrator made it read-only"
