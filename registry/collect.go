package registry

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// A collection removes, while the registry works, what nothing names: tags and manifests that a retention rule gives up,
// blobs of a repository that none of its manifests names, bytes that no row names, and uploads that were given up. It goes
// in this order, so that one collection frees what the steps before it let go. docs/operations.md lists its claims; the
// protocol with those who push is in anchor.go.
//
// Everything is listed a page at a time, and a collection rests as long as it worked, so that it never takes more than half
// of the time that writers share. It may end at any step: what it condemned and did not delete is finished by the next one.
const (
	collectPage  = 512 // entries of a list that are held at a time
	collectBatch = 32  // removals in one transaction
	collectWork  = "collection"
)

// Removal is one thing that a collection removes, or would.
type Removal struct {
	Kind       string        `json:"kind"` // tag, manifest, link, blob or upload
	Repository string        `json:"repository,omitempty"`
	Tag        string        `json:"tag,omitempty"`
	Digest     digest.Digest `json:"digest,omitzero"`
	Reason     string        `json:"reason"`
	Bytes      int64         `json:"bytes"`
}

// The kinds of removals.
const (
	removedTag      = "tag"
	removedManifest = "manifest"
	removedLink     = "link" // of a blob to a repository
	removedBlob     = "blob"
	removedUpload   = "upload"
)

// CollectOptions say how to collect.
type CollectOptions struct {
	DryRun bool                // changes nothing
	Each   func(Removal) error // called for every removal; an error ends the collection. nil is fine
}

// CollectReport sums a collection up.
type CollectReport struct {
	DryRun    bool      `json:"dryRun"`
	Tags      int       `json:"tags"`
	Manifests int       `json:"manifests"`
	Links     int       `json:"links"`
	Blobs     int       `json:"blobs"`
	Uploads   int       `json:"uploads"`
	Bytes     int64     `json:"bytes"` // of blobs and uploads: what the store got back
	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt"`
}

// Collect runs a collection. A dry run lists what one would remove now; what a removal would set free for a later step is
// not in its list. Errors: Denied; Conflict when one runs, on whatever replica.
func (s *Service) Collect(ctx context.Context, p auth.Principal, opt CollectOptions) (CollectReport, error) {
	if err := s.authorize(ctx, p, auth.CollectContent, "", "the registry"); err != nil {
		return CollectReport{}, err
	}
	return s.collect(ctx, p, opt)
}

// collection is one run.
type collection struct {
	s      *Service
	by     auth.Principal
	opt    CollectOptions
	lease  *lease // nil in a dry run, which changes nothing
	cutoff time.Time
	report CollectReport
}

func (s *Service) collect(ctx context.Context, p auth.Principal, opt CollectOptions) (CollectReport, error) {
	now := s.now()
	c := &collection{s: s, by: p, opt: opt, cutoff: now.Add(-s.set.Collection.Grace), report: CollectReport{DryRun: opt.DryRun, StartedAt: now}}
	if !opt.DryRun {
		l, err := s.takeLease(ctx, collectWork)
		if err != nil {
			return c.report, err
		}
		defer l.release(ctx)
		c.lease = l
	}
	var err error
	for _, step := range []func(context.Context) error{c.uploads, c.unfinished, c.retention, c.links, c.small, c.blobs} {
		if err = step(ctx); err != nil {
			break
		}
	}
	c.report.EndedAt = s.now()
	if opt.DryRun {
		return c.report, err
	}
	if err == nil {
		err = s.meta.Update(ctx, func(tx Tx) error { return putTime(tx, lastCollection, c.report.EndedAt) })
	}
	s.upkeep.collected(c.report, err)
	return c.report, err
}

// remove tells of a removal and counts it.
func (c *collection) remove(r Removal) error {
	switch r.Kind {
	case removedTag:
		c.report.Tags++
	case removedManifest:
		c.report.Manifests++
	case removedLink:
		c.report.Links++
	case removedBlob:
		c.report.Blobs++
		c.report.Bytes += r.Bytes
	case removedUpload:
		c.report.Uploads++
		c.report.Bytes += r.Bytes
	}
	if c.opt.Each == nil {
		return nil
	}
	return c.opt.Each(r)
}

// change runs fn in a transaction in which the collection is the only one, and rests as long as that took.
func (c *collection) change(ctx context.Context, fn func(Tx) error) error {
	start := time.Now()
	err := c.s.meta.Update(ctx, func(tx Tx) error {
		if err := c.lease.hold(tx); err != nil {
			return err
		}
		return fn(tx)
	})
	if err != nil {
		return err
	}
	return rest(ctx, time.Since(start))
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// uploads ends what has had its time.
func (c *collection) uploads(ctx context.Context) error {
	for u, err := range c.s.blobs.Uploads(ctx) {
		if err != nil {
			return err
		}
		since, expired := c.s.expired(u)
		if !expired {
			continue
		}
		if err := c.remove(Removal{Kind: removedUpload, Reason: "upload " + u.ID + " was given up: it is of " + since.UTC().Format(time.RFC3339), Bytes: u.Size}); err != nil {
			return err
		}
	}
	if c.opt.DryRun {
		return nil
	}
	_, err := c.s.Expire(ctx)
	return err
}

// unfinished deletes what a collection that died, or whose store failed, had condemned. No row can have come to name it.
func (c *collection) unfinished(ctx context.Context) error {
	for !c.opt.DryRun {
		var left []digest.Digest
		err := c.s.meta.View(ctx, func(tx Tx) (err error) {
			left, err = tx.Condemned(collectBatch)
			return err
		})
		if err != nil || len(left) == 0 {
			return err
		}
		for _, d := range left {
			if err := c.remove(Removal{Kind: removedBlob, Digest: d, Reason: "an earlier collection did not finish"}); err != nil {
				return err
			}
		}
		if err := c.change(ctx, func(Tx) error { return nil }); err != nil {
			return err
		}
		if err := c.execute(ctx, left); err != nil {
			return err
		}
	}
	return nil
}

// links takes blobs out of repositories none of whose manifests names them.
func (c *collection) links(ctx context.Context) error {
	const reason = "no manifest of the repository names it"
	for after := (Link{}); ; {
		var page []Link
		err := c.s.meta.View(ctx, func(tx Tx) (err error) {
			page, err = tx.Links(after, collectPage)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1]
		var loose []Removal
		for _, l := range page {
			if !l.Referenced && !l.LinkedAt.After(c.cutoff) {
				loose = append(loose, Removal{Kind: removedLink, Repository: l.Repository, Digest: l.Digest, Reason: reason, Bytes: l.Size})
			}
		}
		err = c.removeAll(ctx, loose, func(tx Tx, r Removal) (bool, error) { return tx.Unlink(r.Repository, r.Digest, c.cutoff) })
		if err != nil {
			return err
		}
	}
}

const unnamed = "no repository, version or job names it"

// small deletes bytes beside the rows that no row names.
func (c *collection) small(ctx context.Context) error {
	for after := (digest.Digest{}); ; {
		var page []StoredBlob
		err := c.s.meta.View(ctx, func(tx Tx) (err error) {
			page, err = tx.UnnamedSmall(c.cutoff, after, collectPage)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].Digest
		loose := make([]Removal, len(page))
		for i, b := range page {
			loose[i] = Removal{Kind: removedBlob, Digest: b.Digest, Reason: unnamed, Bytes: b.Size}
		}
		err = c.removeAll(ctx, loose, func(tx Tx, r Removal) (bool, error) { return tx.DeleteUnnamedSmall(r.Digest, c.cutoff) })
		if err != nil {
			return err
		}
	}
}

// removeAll makes removals whose transaction decides once more whether each may be, and tells of those that were.
func (c *collection) removeAll(ctx context.Context, list []Removal, decide func(Tx, Removal) (bool, error)) error {
	for len(list) > 0 {
		batch := list[:min(collectBatch, len(list))]
		list = list[len(batch):]
		done := batch
		if !c.opt.DryRun {
			err := c.change(ctx, func(tx Tx) error {
				done = nil
				for _, r := range batch {
					removed, err := decide(tx, r)
					if err != nil {
						return err
					}
					if removed {
						done = append(done, r)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		for _, r := range done {
			if err := c.remove(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// blobs deletes bytes of the BlobStore that no row names.
func (c *collection) blobs(ctx context.Context) error {
	var old []StoredBlob
	for b, err := range c.s.blobs.All(ctx) {
		if err != nil {
			return err
		}
		if b.StoredAt.After(c.cutoff) {
			continue
		}
		if old = append(old, b); len(old) == collectPage {
			if err := c.sweep(ctx, old); err != nil {
				return err
			}
			old = old[:0]
		}
	}
	return c.sweep(ctx, old)
}

// sweep deletes those of the blobs that no row names.
func (c *collection) sweep(ctx context.Context, list []StoredBlob) error {
	var loose []StoredBlob
	err := c.s.meta.View(ctx, func(tx Tx) error {
		loose = nil
		for _, b := range list {
			named, err := tx.BlobNamed(b.Digest)
			if err != nil {
				return err
			}
			if !named {
				loose = append(loose, b)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for len(loose) > 0 {
		batch := loose[:min(collectBatch, len(loose))]
		loose = loose[len(batch):]
		if err := c.sweepBatch(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// sweepBatch condemns, deletes, pardons.
func (c *collection) sweepBatch(ctx context.Context, batch []StoredBlob) error {
	condemned := batch
	if !c.opt.DryRun {
		err := c.change(ctx, func(tx Tx) error {
			condemned = nil
			for _, b := range batch {
				done, err := tx.Condemn(b.Digest, c.s.now())
				if err != nil {
					return err
				}
				if done {
					condemned = append(condemned, b)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	var doomed []digest.Digest
	for _, b := range condemned {
		if err := c.remove(Removal{Kind: removedBlob, Digest: b.Digest, Reason: unnamed, Bytes: b.Size}); err != nil {
			return err
		}
		doomed = append(doomed, b.Digest)
	}
	if c.opt.DryRun {
		return nil
	}
	return c.execute(ctx, doomed)
}

// execute deletes condemned bytes and pardons what is gone. What could not be deleted stays condemned: whether the store
// still deletes it nobody knows.
func (c *collection) execute(ctx context.Context, doomed []digest.Digest) error {
	var gone []digest.Digest
	var failed error
	for _, d := range doomed {
		if failed = c.lease.valid(); failed != nil {
			break
		}
		if failed = c.delete(ctx, d); failed != nil {
			break
		}
		gone = append(gone, d)
	}
	if len(gone) == 0 {
		return failed
	}
	return errors.Join(failed, c.change(ctx, func(tx Tx) error { return tx.Pardon(gone) }))
}

// delete gives the store less time than the lease has left, so that no deletion of a collection outlives it.
func (c *collection) delete(ctx context.Context, d digest.Digest) error {
	ctx, cancel := context.WithTimeout(ctx, leaseMargin)
	defer cancel()
	return c.s.blobs.Delete(ctx, d)
}

// keepYoung makes a blob as young as a pushed one: a client that asks for it before its push, and hears that it is there, names
// it next. The manifest that names it now may go in the meantime. It costs a write only when the blob may be collected soon;
// a registry that is read-only collects nothing.
func (s *Service) keepYoung(ctx context.Context, repository string, d digest.Digest) error {
	var old bool
	err := s.meta.View(ctx, func(tx Tx) error {
		l, err := tx.Link(repository, d)
		if err != nil {
			return err
		}
		reason, err := readOnly(tx)
		old = reason == "" && s.now().Sub(l.LinkedAt) >= s.set.Collection.Grace/2
		return err
	})
	if err != nil || !old {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error {
		have, err := tx.LinkedBlob(repository, d)
		if err != nil {
			return err
		}
		return tx.LinkBlob(repository, have, s.now())
	})
}

// keepWaiting is keepYoung for a manifest: what a client hears to be there it does not push again before the index that
// names it, or the tag. A collection that found it kept by nothing begins to wait anew.
func (s *Service) keepWaiting(ctx context.Context, repository string, d digest.Digest) error {
	var loose bool
	err := s.meta.View(ctx, func(tx Tx) error {
		m, err := tx.ManifestHolders(repository, d)
		if err != nil {
			return err
		}
		reason, err := readOnly(tx)
		loose = reason == "" && !m.LooseSince.IsZero()
		return err
	})
	if err != nil || !loose {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error { return tx.MarkLoose(repository, d, time.Time{}) })
}
