package registry

import "time"

// HandoverEvent is what happened to a job that a platform must hear of.
type HandoverEvent string

// The events. A job that is stopped before its admission was handed over makes neither reach the target.
const (
	EventAdmitted  HandoverEvent = "job.admitted"
	EventCancelled HandoverEvent = "job.cancelled"
)

// HandoverState is where an event is on its way to a target.
type HandoverState string

// The states. Only a pending row is ever tried.
const (
	HandoverPending   HandoverState = "pending"
	HandoverDelivered HandoverState = "delivered" // the target took it
	HandoverDead      HandoverState = "dead"      // given up; an administrator may have it tried again
	HandoverWithdrawn HandoverState = "withdrawn" // the job was stopped, so the target need not hear that it was admitted
)

// HandoverStates lists the states in the order in which a row passes them.
var HandoverStates = []HandoverState{HandoverPending, HandoverDelivered, HandoverDead, HandoverWithdrawn}

// Handover is a row of the outbox: one event of one job on its way to one target. It is written in the transaction that
// makes the event true.
type Handover struct {
	ID         string // "<job>.<admitted|cancelled>.<target>": the same in every try
	Job        string
	Target     string
	Event      HandoverEvent
	State      HandoverState
	Tries      int // that began
	CreatedAt  time.Time
	Since      time.Time // when it began to be tried, for the first time or again
	DueAt      time.Time // when it is tried next
	Holder     string    // who tries it, "" for nobody
	LeaseUntil time.Time // until when the holder may be trying it
	LastError  string    // of the last try that failed
	EndedAt    time.Time // when it left pending; zero before
}

// HandoverFilter selects rows of the outbox; an empty field selects all.
type HandoverFilter struct {
	Target string
	State  HandoverState
	Job    string
	Before string // rows behind this id, in the order of the list
	Limit  int    // < 0: all
}

// HandoverCount is how many rows of a target are in a state.
type HandoverCount struct {
	Target string
	State  HandoverState
	Count  int64
	Oldest time.Time // when the oldest was made
}

// JobFilter selects jobs; an empty field selects all.
type JobFilter struct {
	Account string
	Status  JobStatus
	Before  string // jobs behind the one with this id, in the order of the list; a job that is not there has none behind it
	Limit   int    // < 0: all
}
