package registry

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/internal/pattern"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// An admitted job goes to the platforms that run it through an outbox: in the transaction that stores the job a row is
// written for every target, and workers deliver the rows (handover_worker.go). So a job that was acknowledged is handed
// over, whatever dies in between, and one that was not is never.

// HandoverTarget is a platform that hears of jobs.
type HandoverTarget struct {
	Name     string            // see CheckTargetName
	To       HandoverDeliverer // how it hears
	Timeout  time.Duration     // of one try
	GiveUp   time.Duration     // after which, counted from the event, no more tries begin
	Parallel int               // tries at a time, of one replica
}

// HandoverDeliverer takes an event to a platform. It returns nil once the platform has it for good. It may be called again
// with an event that was delivered: the event's ID says so. A *RefusedHandover says that the platform will never take it.
type HandoverDeliverer interface {
	Deliver(ctx context.Context, m HandoverMessage) error
}

// RefusedHandover is an event that a platform refuses for good: it is not tried again.
type RefusedHandover struct{ Reason string }

func (e *RefusedHandover) Error() string { return "refused for good: " + e.Reason }

// HandoverMessage is what a platform hears.
type HandoverMessage struct {
	ID       string // the same in every try
	Event    HandoverEvent
	Target   string
	Try      int       // from 1
	At       time.Time // when it happened
	Registry string    // the registry's id, as in receipts
	Job      Job
	// Package opens the job's package; nil when it has none.
	Package func(ctx context.Context) (Blob, error)
}

var targetName = pattern.New(`^[a-z0-9]([a-z0-9_-]{0,38}[a-z0-9])?$`)

// CheckTargetName refuses a name that is no name of a target. Errors: Invalid.
func CheckTargetName(name string) error {
	if !targetName.MatchString(name) {
		return Errorf(Invalid, "name: %.60q is none of a target: 1 to 40 lower-case letters, digits, '-' and '_', beginning and ending with a letter or digit", name)
	}
	return nil
}

// handoverID names a row. The job's id begins with the time, so rows sort by it.
func handoverID(job string, e HandoverEvent, target string) string {
	return job + "." + strings.TrimPrefix(string(e), "job.") + "." + target
}

// announce writes the rows that tell every target of an event.
func (s *Service) announce(tx Tx, job Job, e HandoverEvent, targets []string) error {
	now := s.now()
	for _, target := range targets {
		h := Handover{ID: handoverID(job.ID, e, target), Job: job.ID, Target: target, Event: e, State: HandoverPending, CreatedAt: now, Since: now, DueAt: now}
		if err := tx.InsertHandover(h); err != nil {
			return err
		}
	}
	return nil
}

// announceAdmitted tells every target that there is a job to run.
func (s *Service) announceAdmitted(tx Tx, job Job) error {
	return s.announce(tx, job, EventAdmitted, s.handover.names())
}

// announceCancelled tells the targets that may know of a job that it was stopped. One that was never tried need not hear of
// the job at all; one that may be hearing of it at this moment hears of the end afterwards. An admission that was given up is
// withdrawn too: nobody has it tried again, and starts what was stopped.
func (s *Service) announceCancelled(tx Tx, job Job) error {
	rows, err := tx.Handovers(HandoverFilter{Job: job.ID, Limit: -1})
	if err != nil {
		return err
	}
	var tell []string
	for _, h := range rows {
		if h.Event != EventAdmitted {
			continue
		}
		if h.State == HandoverPending || h.State == HandoverDead {
			h.State, h.EndedAt = HandoverWithdrawn, s.now()
			if err := tx.UpdateHandover(h); err != nil {
				return err
			}
		}
		if h.Tries > 0 {
			tell = append(tell, h.Target)
		}
	}
	return s.announce(tx, job, EventCancelled, tell)
}

// maxHandovers is how many rows a page of the outbox has at most.
const maxHandovers = 200

// Handovers lists rows of the outbox, newest job first. Errors: Denied, Invalid.
func (s *Service) Handovers(ctx context.Context, p auth.Principal, f HandoverFilter) ([]Handover, error) {
	if err := s.authorize(ctx, p, auth.ReadAllJobs, "", "the hand-over of jobs"); err != nil {
		return nil, err
	}
	if f.Limit < 0 || f.Limit > maxHandovers {
		f.Limit = maxHandovers
	}
	var rows []Handover
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		rows, err = tx.Handovers(f)
		return err
	})
	return rows, err
}

// Handover finds a row of the outbox. Errors: Denied, NotFound.
func (s *Service) Handover(ctx context.Context, p auth.Principal, id string) (Handover, error) {
	if err := s.authorize(ctx, p, auth.ReadAllJobs, "", "the hand-over of jobs"); err != nil {
		return Handover{}, err
	}
	var h Handover
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		h, err = tx.Handover(id)
		return err
	})
	return h, err
}

// RetryHandovers has dead rows tried again, and pending ones at once: the one with the id, or else all dead ones of the
// target, which may be "" for every target. It gives how many. A dead one has as much time again as a new one. Errors:
// Denied, NotFound, Conflict for a row that is delivered or withdrawn.
func (s *Service) RetryHandovers(ctx context.Context, p auth.Principal, id, target string) (int, error) {
	if err := s.authorize(ctx, p, auth.ManageJobs, "", "the hand-over of jobs"); err != nil {
		return 0, err
	}
	n := 0
	err := s.meta.Update(ctx, func(tx Tx) (err error) {
		if id != "" {
			n, err = 1, s.retryOne(tx, id)
		} else {
			n, err = s.retryDead(tx, target)
		}
		if err != nil || n == 0 {
			return err
		}
		what := id
		if what == "" {
			what = "all dead of " + target
		}
		return s.audit(tx, p, "handover.retry", what, fmt.Sprintf("%d events", n))
	})
	s.handover.wake()
	return n, err
}

// retryOne has a row tried at once.
func (s *Service) retryOne(tx Tx, id string) error {
	h, err := tx.Handover(id)
	switch {
	case err != nil:
		return err
	case h.State != HandoverDead && h.State != HandoverPending:
		return Errorf(Conflict, "hand-over %s is %s: only a pending or dead one is tried again", h.ID, h.State)
	}
	return s.retry(tx, h)
}

// retryDead has all dead rows of a target tried at once, a page in memory at a time.
func (s *Service) retryDead(tx Tx, target string) (n int, err error) {
	for before := ""; ; {
		rows, err := tx.Handovers(HandoverFilter{Target: target, State: HandoverDead, Before: before, Limit: maxHandovers})
		if err != nil || len(rows) == 0 {
			return n, err
		}
		for _, h := range rows {
			if err := s.retry(tx, h); err != nil {
				return n, err
			}
			n, before = n+1, h.ID
		}
	}
}

func (s *Service) retry(tx Tx, h Handover) error {
	h.State, h.Since, h.DueAt, h.EndedAt = HandoverPending, s.now(), s.now(), time.Time{}
	return tx.UpdateHandover(h)
}

// HandoverCounts are the rows of the outbox that are pending or dead, for metrics.
func (s *Service) HandoverCounts(ctx context.Context) ([]HandoverCount, error) {
	var counts []HandoverCount
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		counts, err = tx.HandoverCounts()
		return err
	})
	return counts, err
}
