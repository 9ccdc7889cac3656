package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

const (
	handoverPoll  = 2 * time.Second  // between looks at the outbox when nobody says that there is something
	handoverGrace = 5 * time.Second  // how long tries in flight may take once the server stops
	firstRetry    = time.Second      // after the first try that failed; doubled each time
	lastRetry     = 10 * time.Minute // and no longer than this
)

// handover is what a Service knows of its targets. The zero value has none.
type handover struct {
	targets []HandoverTarget
	mu      sync.Mutex
	wakers  []chan struct{} // of the workers that run
}

func (h *handover) names() []string {
	names := make([]string, len(h.targets))
	for i, t := range h.targets {
		names[i] = t.Name
	}
	return names
}

// wake tells the workers of this process that there may be something to deliver.
func (h *handover) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.wakers {
		select {
		case w <- struct{}{}:
		default: // it has been told
		}
	}
}

// waker makes the channel by which one worker is told.
func (h *handover) waker() chan struct{} {
	w := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakers = append(h.wakers, w)
	return w
}

// HandOver delivers the outbox until ctx ends, and then waits until the tries in flight have ended. Any number of replicas
// do so: a row is held by one of them at a time, by a lease that outlives its try. A try that was begun and whose end was not
// stored, since the process died, is made again once the lease is over, with the same id.
func (s *Service) HandOver(ctx context.Context) {
	var all sync.WaitGroup
	for _, t := range s.handover.targets {
		w := &handoverWorker{s: s, target: t, told: s.handover.waker(), slots: make(chan struct{}, max(t.Parallel, 1))}
		all.Go(func() { w.run(ctx) })
	}
	all.Wait()
}

// handoverWorker delivers the rows of one target.
type handoverWorker struct {
	s      *Service
	target HandoverTarget
	told   chan struct{}
	slots  chan struct{} // one value for each try in flight
}

func (w *handoverWorker) run(ctx context.Context) {
	tries, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var flying sync.WaitGroup
	w.releaseDead(ctx)
	for ctx.Err() == nil {
		rows, err := w.claim(ctx, cap(w.slots)-len(w.slots))
		if err != nil && ctx.Err() == nil && CodeOf(err) != Unavailable && CodeOf(err) != Denied {
			w.s.log.ErrorContext(ctx, "hand-over: the outbox can't be read", "target", w.target.Name, "err", err)
		}
		for _, h := range rows {
			w.slots <- struct{}{}
			flying.Go(func() {
				w.try(tries, h)
				<-w.slots
				w.s.handover.wake()
			})
		}
		if len(rows) == 0 || len(w.slots) == cap(w.slots) {
			w.wait(ctx)
		}
	}
	timer := time.AfterFunc(handoverGrace, end)
	defer timer.Stop()
	flying.Wait()
}

// releaseDead lets go of what a process held that is known to be dead (Deps.Alone). Where that fails its leases end by themselves.
func (w *handoverWorker) releaseDead(ctx context.Context) {
	if !w.s.upkeep.alone {
		return
	}
	n := 0
	err := w.s.meta.Update(ctx, func(tx Tx) (err error) {
		n, err = tx.ReleaseHandovers(w.target.Name)
		return err
	})
	if err != nil || n > 0 {
		w.s.log.WarnContext(ctx, "hand-over: tries of a process that died are made again", "target", w.target.Name, "count", n, "err", err)
	}
}

// wait waits until there may be something to do.
func (w *handoverWorker) wait(ctx context.Context) {
	timer := time.NewTimer(handoverPoll/2 + rand.N(handoverPoll))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-w.told:
	case <-timer.C:
	}
}

// claim takes up to n rows that are due. Nothing is written where none is.
func (w *handoverWorker) claim(ctx context.Context, n int) ([]Handover, error) {
	if n <= 0 {
		return nil, nil
	}
	var rows []Handover
	look := func(tx Tx) (err error) {
		rows, err = tx.DueHandovers(w.target.Name, w.s.now(), n)
		return err
	}
	if err := w.s.meta.View(ctx, look); err != nil || len(rows) == 0 {
		return nil, err
	}
	err := w.s.meta.Update(ctx, func(tx Tx) error {
		if err := look(tx); err != nil {
			return err
		}
		for i := range rows {
			rows[i].Tries++
			rows[i].Holder, rows[i].LeaseUntil = randomHex(8), w.s.now().Add(w.target.Timeout+leaseMargin)
			if err := tx.UpdateHandover(rows[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// try makes one try and stores how it ended.
func (w *handoverWorker) try(ctx context.Context, h Handover) {
	err := w.deliver(ctx, h)
	if err != nil {
		w.s.log.WarnContext(ctx, "hand-over failed", "id", h.ID, "try", h.Tries, "err", err)
	}
	stored := w.s.meta.Update(context.WithoutCancel(ctx), func(tx Tx) error { return w.store(tx, h, err) })
	if stored != nil {
		w.s.log.ErrorContext(ctx, "hand-over: the end of a try is not stored, so it is made again", "id", h.ID, "err", stored)
	}
}

func (w *handoverWorker) deliver(ctx context.Context, h Handover) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, w.target.Timeout)
	defer cancel()
	var job Job
	err = w.s.meta.View(ctx, func(tx Tx) (err error) {
		job, err = tx.Job(h.Job)
		return err
	})
	if err != nil {
		return err
	}
	m := HandoverMessage{ID: h.ID, Event: h.Event, Target: h.Target, Try: h.Tries, At: h.CreatedAt, Registry: w.s.set.RegistryID, Job: job}
	if !job.Package.Digest.IsZero() {
		m.Package = func(ctx context.Context) (Blob, error) { return w.s.openContent(ctx, job.Package) }
	}
	return w.target.To.Deliver(ctx, m)
}

// store writes how a try ended. Where another worker holds the row by now, or an administrator had it tried again, only a
// success counts.
func (w *handoverWorker) store(tx Tx, tried Handover, failure error) error {
	h, err := tx.Handover(tried.ID)
	switch {
	case err != nil:
		return err
	case failure != nil && h.Holder != tried.Holder, h.State == HandoverDelivered:
		return nil
	}
	after, gaveUp := w.ended(h, failure)
	if err := tx.UpdateHandover(after); err != nil || !gaveUp {
		return err
	}
	return tx.InsertAudit(w.s.auditRow(auth.Principal{}, "handover.dead", after.ID, string(CodeOf(failure)), after.LastError))
}

// ended is a row after a try.
func (w *handoverWorker) ended(h Handover, failure error) (after Handover, gaveUp bool) {
	now := w.s.now()
	h.Holder, h.LeaseUntil = "", time.Time{}
	if failure == nil {
		h.State, h.EndedAt, h.LastError = HandoverDelivered, now, ""
		return h, false
	}
	h.LastError = auditText(failure.Error())
	if h.State != HandoverPending { // withdrawn meanwhile
		return h, false
	}
	pause := retryPause(h.Tries)
	if asked, ok := errors.AsType[*Error](failure); ok {
		pause = max(pause, asked.RetryAfter)
	}
	h.DueAt = now.Add(pause)
	_, refused := errors.AsType[*RefusedHandover](failure)
	if gaveUp = refused || h.DueAt.Sub(h.Since) > w.target.GiveUp; gaveUp {
		h.State, h.EndedAt = HandoverDead, now
	}
	return h, gaveUp
}

// retryPause is how long to wait after so many tries: twice as long each time, less up to a half, so that what failed together
// is not tried together again.
func retryPause(tries int) time.Duration {
	pause := lastRetry
	if doublings := max(tries-1, 0); doublings < 12 {
		pause = min(lastRetry, firstRetry<<doublings)
	}
	return pause/2 + rand.N(pause/2+1)
}
