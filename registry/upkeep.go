package registry

import (
	"context"
	"sync"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// CollectionSettings are when a registry collects by itself, and what it leaves alone.
type CollectionSettings struct {
	Every time.Duration // between two collections; 0: only when told to
	Grace time.Duration // what was stored or linked no longer ago is never collected; a push must end within it
}

// ScrubSettings are how a registry reads all that it holds again and compares it with its digests.
type ScrubSettings struct {
	Every time.Duration // between the ends of two rounds; 0: only when told to
	Rate  int64         // bytes a second at most; 0 means no limit
}

// upkeep is what a Service knows of its own work on the stores. The zero value is ready.
type upkeep struct {
	alone bool // Deps.Alone
	once  sync.Once
	id    string

	aside sync.Mutex // held by a request that sets damaged bytes aside

	mu    sync.Mutex
	stats Stats
}

// name tells the running Services of a registry apart.
func (u *upkeep) name() string {
	u.once.Do(func() { u.id = randomHex(8) })
	return u.id
}

// Stats are counts since the process began, of this replica.
type Stats struct {
	Collections        int64 // that ended well
	CollectionFailures int64
	CollectedTags      int64
	CollectedManifests int64
	CollectedLinks     int64
	CollectedBlobs     int64
	CollectedBytes     int64
	LastCollection     time.Time // when the last one ended well; zero: never

	ScrubbedBlobs  int64
	ScrubbedBytes  int64
	ScrubFailures  int64
	DamagedBlobs   int64 // found and set aside
	MissingBlobs   int64
	LastScrubRound time.Time // when the last round ended; zero: never here

	QuotaRefusals int64
}

// Stats are the counts of this replica, for metrics.
func (s *Service) Stats() Stats {
	s.upkeep.mu.Lock()
	defer s.upkeep.mu.Unlock()
	return s.upkeep.stats
}

// count changes the counts.
func (u *upkeep) count(change func(*Stats)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(&u.stats)
}

func (u *upkeep) collected(r CollectReport, err error) {
	u.count(func(st *Stats) {
		if err != nil {
			st.CollectionFailures++
		} else {
			st.Collections++
			st.LastCollection = r.EndedAt
		}
		st.CollectedTags += int64(r.Tags)
		st.CollectedManifests += int64(r.Manifests)
		st.CollectedLinks += int64(r.Links)
		st.CollectedBlobs += int64(r.Blobs)
		st.CollectedBytes += r.Bytes
	})
}

// lastCollection is the setting that says when a collection ended, on whatever replica.
const lastCollection = "collection-ended"

// CollectWhenDue collects when the time of the last collection is Settings.Collection.Every ago, and finishes one that died
// in any case. Any number of replicas call it, every minute or so: one of them does the work.
func (s *Service) CollectWhenDue(ctx context.Context) error {
	if reason, err := ReadOnly(ctx, s.meta); err != nil || reason != "" {
		return err
	}
	due, unfinished, err := s.collectionDue(ctx)
	switch {
	case err != nil:
	case due:
		_, err = s.collect(ctx, auth.Principal{}, CollectOptions{})
	case unfinished:
		err = s.finishCollection(ctx)
	}
	if CodeOf(err) == Conflict { // another replica is at it
		return nil
	}
	return err
}

// collectionDue says whether a collection is due by time, and whether one died.
func (s *Service) collectionDue(ctx context.Context) (due, unfinished bool, err error) {
	err = s.meta.View(ctx, func(tx Tx) error {
		last, err := timeSetting(tx, lastCollection)
		if err != nil {
			return err
		}
		due = s.set.Collection.Every > 0 && s.now().Sub(last) >= s.set.Collection.Every
		var left []digest.Digest
		left, err = tx.Condemned(1)
		unfinished = len(left) > 0
		return err
	})
	return due, unfinished, err
}

// finishCollection deletes what a collection that died had condemned, so that it can be pushed again.
func (s *Service) finishCollection(ctx context.Context) error {
	l, err := s.takeLease(ctx, collectWork)
	if err != nil {
		return err
	}
	defer l.release(ctx)
	c := &collection{s: s, lease: l, cutoff: s.now(), report: CollectReport{StartedAt: s.now()}}
	return c.unfinished(ctx)
}
