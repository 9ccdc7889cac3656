package registry

// Event is something that a node, or who launches a job, did or was refused: what Deps.Told hears of.
type Event string

// The events.
const (
	EventNodeGrant  Event = "grant"       // a grant was asked for
	EventNodeRead   Event = "read"        // a node was refused to read what its grant does not name
	EventRunStarted Event = "run-started" // a statement came in
	EventRunEnded   Event = "run-ended"
	EventRunRefused Event = "run-refused"
	EventRun        Event = "run" // a statement came in that was refused
)

// toldRun tells of a statement about a run.
func (s *Service) toldRun(state RunState, err error) {
	if err != nil {
		s.told(EventRun, err)
		return
	}
	s.told(Event("run-"+string(state)), nil)
}
