package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// A job holds its GPUs by a lease: from the transaction that stores it, for Settings.LeaseTTL from then or from the last
// sign of life (ReportJob), until it ends. Gate 2 decides and the job is stored in one transaction, and such transactions run
// one after another over all replicas, so no two submissions spend the same GPUs.

// JobQuota is what of an account's quota document (wire.md 7) is enforced. 0 and nil are no limits.
type JobQuota struct {
	MaxGPUs  int64    `json:"max_concurrent_gpus"`
	MaxJobs  int64    `json:"max_concurrent_jobs"`
	Profiles []string `json:"allowed_profiles"` // names of hardware profiles; an empty list is no limit, as the clients send it
}

// ParseJobQuota reads a quota document; null is one without limits. Errors: Invalid.
func ParseJobQuota(document json.RawMessage) (JobQuota, error) {
	var q JobQuota
	if len(document) == 0 {
		return q, nil
	}
	if err := json.Unmarshal(document, &q); err != nil {
		return q, Errorf(Invalid, "quota: %w", err)
	}
	for _, c := range []struct {
		field string
		value int64
	}{{"max_concurrent_gpus", q.MaxGPUs}, {"max_concurrent_jobs", q.MaxJobs}} {
		if c.value < 0 || c.value > math.MaxInt32 {
			return q, Errorf(Invalid, "%s: %d is not 0 (no limit) to %d", c.field, c.value, math.MaxInt32)
		}
	}
	return q, nil
}

// checkJobQuota refuses profiles that the deployment does not have.
func (s *Service) checkJobQuota(q JobQuota) error {
	known := make([]string, len(s.set.Profiles))
	for i, p := range s.set.Profiles {
		known[i] = p.Name
	}
	for i, name := range q.Profiles {
		if !slices.Contains(known, name) {
			return Errorf(Invalid, "allowed_profiles[%d]: there is no profile %.60q; there are %s", i, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// quota is what bounds an account's jobs, and what those that run hold.
func (s *Service) quota(tx Tx, account string) (admission.Quota, error) {
	q, err := accountBounds(tx, account)
	if err != nil {
		return q, err
	}
	return s.held(tx, account, q)
}

// jobBounds is quota for a decision: what an account holds is not added up where nothing bounds it.
func (s *Service) jobBounds(tx Tx, account string) (admission.Quota, error) {
	q, err := accountBounds(tx, account)
	if err != nil || q.Limit == 0 && q.MaxJobs == 0 {
		return q, err
	}
	return s.held(tx, account, q)
}

// accountBounds is what bounds an account's jobs. One that was locked out after its request began has none: its package may
// have been hours on the way. Errors: Unauthorized.
func accountBounds(tx Tx, account string) (admission.Quota, error) {
	a, err := tx.Account(account)
	if err != nil {
		return admission.Quota{}, err
	}
	if a.Disabled {
		return admission.Quota{}, errSecret
	}
	q, err := ParseJobQuota(a.Quota)
	if err != nil {
		return admission.Quota{}, fmt.Errorf("stored quota of account %s: %w", account, err)
	}
	return admission.Quota{Limit: int64(a.MaxGPUs), MaxJobs: q.MaxJobs, Profiles: q.Profiles}, nil
}

// held adds what the jobs of an account that run hold.
func (s *Service) held(tx Tx, account string, q admission.Quota) (admission.Quota, error) {
	held, err := tx.Leased(account, s.now())
	q.InUse, q.Jobs = held.GPUs, held.Jobs
	return q, err
}

// Usage is the caller's quota, what it holds of it, and the quota document as it was set, null when it never was.
func (s *Service) Usage(ctx context.Context, p auth.Principal) (admission.Quota, json.RawMessage, error) {
	if err := s.authorize(ctx, p, auth.ReadOwnJobs, "", "usage"); err != nil {
		return admission.Quota{}, nil, err
	}
	var q admission.Quota
	var document json.RawMessage
	err := s.meta.View(ctx, func(tx Tx) error {
		a, err := tx.Account(p.Account)
		if err != nil {
			return err
		}
		document = a.Quota
		q, err = s.quota(tx, p.Account)
		return err
	})
	return q, document, err
}
