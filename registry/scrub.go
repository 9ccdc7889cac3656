package registry

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// The scrub reads everything that rows name again, by digest, round after round, on one replica at a time. How far it came
// is kept in a setting, so that a restart goes on where the last one stopped.
const (
	scrubWork    = "scrub"
	scrubSetting = "scrub-state"
)

// ScrubState is how far the scrub is.
type ScrubState struct {
	After     digest.Digest `json:"after"` // the last digest that was read in this round
	StartedAt time.Time     `json:"startedAt,omitzero"`
	EndedAt   time.Time     `json:"endedAt,omitzero"` // of the round; zero while it runs
	Blobs     int           `json:"blobs"`
	Bytes     int64         `json:"bytes"`
	Damaged   int           `json:"damaged"`
	Findings  []Finding     `json:"findings"` // of this round, the first few
	LastRound time.Time     `json:"lastRound,omitzero"`
}

// maxScrubFindings bounds what the state holds; all of them are logged.
const maxScrubFindings = 100

// Scrub is how far the scrub is, on whatever replica. Errors: Denied.
func (s *Service) Scrub(ctx context.Context, p auth.Principal) (ScrubState, error) {
	if err := s.authorize(ctx, p, auth.CheckContent, "", "the registry"); err != nil {
		return ScrubState{}, err
	}
	return s.scrubState(ctx)
}

func (s *Service) scrubState(ctx context.Context) (ScrubState, error) {
	state := ScrubState{Findings: []Finding{}}
	err := s.meta.View(ctx, func(tx Tx) error {
		text, err := setting(tx, scrubSetting)
		if err != nil || text == "" {
			return err
		}
		return json.Unmarshal([]byte(text), &state)
	})
	return state, err
}

// ScrubWhenDue begins a round of the scrub when one is due, or goes on with the one that was interrupted, to its end. Any
// number of replicas call it, every minute or so: one of them does the work.
func (s *Service) ScrubWhenDue(ctx context.Context) error {
	if reason, err := ReadOnly(ctx, s.meta); err != nil || reason != "" || s.set.Scrub.Every == 0 {
		return err
	}
	err := s.scrubRound(ctx)
	switch {
	case CodeOf(err) == Conflict: // another replica is at it
		return nil
	case err != nil:
		s.upkeep.count(func(st *Stats) { st.ScrubFailures++ })
	}
	return err
}

// scrubRound does a round, or the rest of one. Errors: Conflict when another replica is at it.
func (s *Service) scrubRound(ctx context.Context) error {
	state, err := s.scrubState(ctx)
	if err != nil {
		return err
	}
	if !state.EndedAt.IsZero() && s.now().Sub(state.EndedAt) < s.set.Scrub.Every {
		return nil
	}
	l, err := s.takeLease(ctx, scrubWork)
	if err != nil {
		return err
	}
	defer l.release(ctx)
	if state, err = s.scrubState(ctx); err != nil { // another may have gone on meanwhile
		return err
	}
	if state.StartedAt.IsZero() || !state.EndedAt.IsZero() {
		state = ScrubState{StartedAt: s.now(), Findings: []Finding{}, LastRound: state.EndedAt}
	}
	c := &check{s: s, opt: FsckOptions{Rate: s.set.Scrub.Rate, Each: func(f Finding) error {
		state.Damaged++
		if len(state.Findings) < maxScrubFindings {
			state.Findings = append(state.Findings, f)
		}
		return nil
	}}}
	renew := func(ctx context.Context) error { return s.meta.Update(ctx, l.hold) }
	c.keep = renew
	for {
		next, err := c.page(ctx, state.After)
		if err != nil {
			return err
		}
		state.Blobs, state.Bytes = state.Blobs+c.report.Blobs, state.Bytes+c.report.Bytes
		c.report = FsckReport{}
		if state.After = next; next.IsZero() {
			state.EndedAt = s.now()
		}
		if err := s.saveScrub(ctx, l, state); err != nil {
			return err
		}
		if next.IsZero() {
			s.upkeep.count(func(st *Stats) { st.LastScrubRound = state.EndedAt })
			return nil
		}
	}
}

func (s *Service) saveScrub(ctx context.Context, l *lease, state ScrubState) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error {
		if err := l.hold(tx); err != nil {
			return err
		}
		return tx.PutSetting(scrubSetting, string(text))
	})
}

// pacedReader reads no faster than rate bytes a second, and calls keep while it does.
type pacedReader struct {
	ctx  context.Context
	r    io.Reader
	rate int64
	keep func(context.Context) error
	kept time.Time
}

// keepEvery is how often a pacedReader calls keep.
const keepEvery = leaseTime / 4

func (p *pacedReader) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	if p.kept.IsZero() {
		p.kept = time.Now()
	}
	if p.keep != nil && time.Since(p.kept) >= keepEvery {
		p.kept = time.Now()
		if err := p.keep(p.ctx); err != nil {
			return 0, err
		}
	}
	n, err := p.r.Read(b)
	if p.rate > 0 && n > 0 {
		if restErr := rest(p.ctx, time.Duration(float64(n)/float64(p.rate)*float64(time.Second))); restErr != nil {
			return n, restErr
		}
	}
	return n, err
}
