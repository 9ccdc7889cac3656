package wire

// Handover is a row of the outbox (docs/handover.md).
type Handover struct {
	ID        string `json:"id"`
	Job       string `json:"run_id"`
	Target    string `json:"target"`
	Event     string `json:"event"`
	State     string `json:"state"`
	Tries     int    `json:"tries"`
	CreatedAt string `json:"created_at"` // RFC 3339, as the others
	DueAt     string `json:"due_at"`     // when a pending one is tried next, "" for others
	HeldUntil string `json:"held_until"` // until when a try of it may run, "" when none does
	EndedAt   string `json:"ended_at"`   // "" while it is pending
	LastError string `json:"last_error"` // "" for none
}

// HandoverList is the answer of GET /api/admin/handover.
type HandoverList struct {
	Handovers []Handover `json:"handovers"`
}

// HandoverRetry is the body of POST /api/admin/handover; one field is set.
type HandoverRetry struct {
	ID     string `json:"id,omitempty"`
	Target string `json:"target,omitempty"` // all dead rows of the target
	All    bool   `json:"all,omitempty"`    // all dead rows
}

// HandoversRetried is the answer of POST /api/admin/handover.
type HandoversRetried struct {
	Retried int `json:"retried"`
}
