package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// An owner is charged for each digest that its repositories hold, once, for every version of a pack and for every manifest.
// The counts are kept by the store in the transactions that make and remove the rows, so they are never behind. A limit is
// asked for before bytes are taken, and decides in the transaction that would exceed it: transactions run one after another,
// so no number of pushes at once gets past it.

// limitOf is the limit that counts for an owner.
func (s *Service) limitOf(u OwnerUsage) Quota {
	if u.Own != nil {
		return *u.Own
	}
	return s.set.Quota
}

// charged makes fn, which adds rows to a repository, fail when its owner would then hold more than it may. Errors: Denied.
// What adds nothing is never refused, however much an owner holds already.
func (s *Service) charged(repository string, fn func(Tx) error) func(Tx) error {
	return func(tx Tx) error {
		if s.unlimited(repository) {
			return fn(tx)
		}
		owner, err := ownerOf(tx, repository)
		if err != nil {
			return err
		}
		before, err := tx.OwnerUsage(owner)
		if err != nil {
			return err
		}
		limit := s.limitOf(before)
		if err := fn(tx); err != nil || limit == (Quota{}) {
			return err
		}
		after, err := tx.OwnerUsage(owner)
		if err != nil {
			return err
		}
		return s.checkQuota(limit, before, after)
	}
}

// limitKey is where the limit of a repository's owner is remembered. It depends on who that is and on the owner's own limit.
func limitKey(repository string) rowKey { return rowKey{limitRow, repository, ""} }

// unlimited reports whether the owner of a repository is known to have no limit, so that nothing needs to be added up. A limit
// that was acknowledged before is never overlooked (cache.go).
func (s *Service) unlimited(repository string) bool {
	generation, exact := s.meta.AccessGeneration()
	if !exact {
		return false
	}
	r, ok := s.rows.get(limitKey(repository))
	return ok && r.generation == generation && r.value.(Quota) == Quota{}
}

// checkQuota compares what an owner would hold with its limit.
func (s *Service) checkQuota(limit Quota, before, after OwnerUsage) error {
	for _, c := range []struct {
		what                 string
		limit, before, after int64
	}{
		{"bytes", limit.Bytes, before.Bytes, after.Bytes},
		{"versions", limit.Versions, before.Versions, after.Versions},
		{"manifests", limit.Manifests, before.Manifests, after.Manifests},
	} {
		if c.limit > 0 && c.after > c.before && c.after > c.limit {
			s.upkeep.count(func(st *Stats) { st.QuotaRefusals++ })
			return quotaExceeded(after.Owner, c.what, c.limit, c.before, c.after-c.before)
		}
	}
	return nil
}

// quotaExceeded is the refusal: the code that OCI clients know for it, and a text that says what to do.
func quotaExceeded(owner, what string, limit, used, asked int64) error {
	return Errorf(Denied, "quota exceeded: owner %s may hold %d %s, holds %d, and this would add %d; delete what is not needed, or ask an administrator for more (sf admin quota set %s)",
		owner, limit, what, used, asked, owner)
}

// checkRoom refuses bytes that are about to be taken for a repository when its owner has no room for them, unless the
// repository has the blob d; of a negative number one byte must fit. It spares the work, charged is what holds. room is how
// many bytes an upload may have altogether, for a sender that did not say how many come. Errors: Denied.
func (s *Service) checkRoom(ctx context.Context, repository string, d digest.Digest, bytes int64) (room int64, err error) {
	if s.unlimited(repository) {
		return s.set.MaxBlob, nil
	}
	var used OwnerUsage
	have := false
	generation, exact := s.meta.AccessGeneration() // before the View (cache.go)
	err = s.meta.View(ctx, func(tx Tx) error {
		owner, err := ownerOf(tx, repository)
		if err != nil {
			return err
		}
		if used, err = tx.OwnerUsage(owner); err != nil || d.IsZero() || s.limitOf(used).Bytes == 0 {
			return err
		}
		_, err = tx.LinkedBlob(repository, d)
		if have = err == nil; errors.Is(err, ErrBlobUnknown) {
			return nil
		}
		return err
	})
	room = s.set.MaxBlob
	limit := s.limitOf(used)
	if err == nil && exact {
		s.rows.put(limitKey(repository), row{generation, limit}, len(repository))
	}
	if err != nil || have {
		return room, err
	}
	if limit.Bytes > 0 {
		room = min(room, max(limit.Bytes-used.Bytes, 0))
	}
	if bytes == 0 {
		return room, nil
	}
	after := used
	after.Bytes += max(bytes, 1)
	return room, s.checkQuota(limit, used, after)
}

// quotaLimit is the greatest limit that can be set.
const quotaLimit = 1 << 62

// Check refuses numbers that are no limits.
func (q Quota) Check() error {
	for _, c := range []struct {
		field string
		value int64
	}{{"bytes", q.Bytes}, {"versions", q.Versions}, {"manifests", q.Manifests}} {
		if c.value < 0 || c.value > quotaLimit {
			return fmt.Errorf("%s: %d is not 0 (no limit) to %d", c.field, c.value, int64(quotaLimit))
		}
	}
	return nil
}

// OwnerLimit is what an owner holds, with the limit that counts for it.
type OwnerLimit struct {
	Owner     string `json:"owner"`
	Bytes     int64  `json:"bytes"`
	Versions  int64  `json:"versions"`
	Manifests int64  `json:"manifests"`
	Limit     Quota  `json:"limit"`
	Default   bool   `json:"default"` // the limit is the registry's, not the owner's own
}

func (s *Service) ownerLimit(u OwnerUsage) OwnerLimit {
	return OwnerLimit{Owner: u.Owner, Bytes: u.Bytes, Versions: u.Versions, Manifests: u.Manifests, Limit: s.limitOf(u), Default: u.Own == nil}
}

// quotaPage is how many owners OwnerQuotas lists at a time.
const quotaPage = 1000

// OwnerQuotas lists owners behind after, with what they hold and may hold. Errors: Denied.
func (s *Service) OwnerQuotas(ctx context.Context, p auth.Principal, after string) ([]OwnerLimit, error) {
	if err := s.authorize(ctx, p, auth.ManageQuotas, "", "quotas"); err != nil {
		return nil, err
	}
	list := []OwnerLimit{}
	err := s.meta.View(ctx, func(tx Tx) error {
		page, err := tx.OwnerUsages(after, quotaPage)
		list = list[:0]
		for _, u := range page {
			list = append(list, s.ownerLimit(u))
		}
		return err
	})
	return list, err
}

// OwnerQuota is what an owner, which may hold nothing and have no account, holds and may hold. Errors: Denied, NameInvalid.
func (s *Service) OwnerQuota(ctx context.Context, p auth.Principal, owner string) (OwnerLimit, error) {
	if err := s.mayManageQuota(ctx, p, owner); err != nil {
		return OwnerLimit{}, err
	}
	var u OwnerUsage
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		u, err = tx.OwnerUsage(owner)
		return err
	})
	return s.ownerLimit(u), err
}

// SetOwnerQuota gives an owner a limit of its own; nil takes it away, so that the default counts. Errors: Denied, NameInvalid,
// Invalid.
func (s *Service) SetOwnerQuota(ctx context.Context, p auth.Principal, owner string, q *Quota) (OwnerLimit, error) {
	if err := s.mayManageQuota(ctx, p, owner); err != nil {
		return OwnerLimit{}, err
	}
	detail := "the default"
	if q != nil {
		if err := q.Check(); err != nil {
			return OwnerLimit{}, Errorf(Invalid, "%w", err)
		}
		detail = fmt.Sprintf("bytes %d, versions %d, manifests %d", q.Bytes, q.Versions, q.Manifests)
	}
	var u OwnerUsage
	err := s.meta.Update(ctx, func(tx Tx) (err error) {
		if err := tx.PutOwnerQuota(owner, q); err != nil {
			return err
		}
		if u, err = tx.OwnerUsage(owner); err != nil {
			return err
		}
		return s.audit(tx, p, "quota.set", owner, detail)
	})
	return s.ownerLimit(u), err
}

func (s *Service) mayManageQuota(ctx context.Context, p auth.Principal, owner string) error {
	if err := s.authorize(ctx, p, auth.ManageQuotas, "", "the quota of "+Shown(owner)); err != nil {
		return err
	}
	if err := CheckRepositoryName(owner); err != nil || Owner(owner) != owner {
		return Errorf(NameInvalid, "%.100q is no owner's name", owner)
	}
	return nil
}
