package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/auth/bearer"
)

// A node reads nothing by its own right. For a receipt of this registry it gets a grant: a bearer token that is good for the
// manifests, configs and archives of the packs that the receipt names, by digest, and for the spec, the receipt and the package
// of its job. Everything else is refused to it as to an account whose role does not allow it.

// nodeGrantTTL is how long a grant is good. It is looked at when a request begins: a long download outlives it.
const nodeGrantTTL = 10 * time.Minute

// NodeGrant is an answer to GrantLaunch.
type NodeGrant struct {
	Token string
	TTL   time.Duration
	Job   string
}

// GrantLaunch gives the calling node the grant for a receipt: one that this registry signed, that has not expired, and whose
// job may run: it was not stopped, and if it ended, that was less than Settings.LeaseTTL ago, so that a scheduler may start it
// again. Errors: Denied, Invalid for what is no receipt, NotFound for an unknown job.
func (s *Service) GrantLaunch(ctx context.Context, p auth.Principal, envelope []byte) (NodeGrant, error) {
	g, err := s.grantLaunch(ctx, p, envelope)
	s.told(EventNodeGrant, err)
	if err != nil && !p.Anonymous() && CodeOf(err) != Internal {
		s.auditRefusal(ctx, p, "node.grant", g.Job, err)
	}
	return g, err
}

func (s *Service) grantLaunch(ctx context.Context, p auth.Principal, envelope []byte) (NodeGrant, error) {
	if err := s.authorize(ctx, p, auth.ActAsNode, "", "a grant"); err != nil {
		return NodeGrant{}, err
	}
	trust, err := s.signer.Trust(s.set.RegistryID)
	if err != nil {
		return NodeGrant{}, err
	}
	r, err := receipt.Verify(envelope, trust, s.set.RegistryID, s.now())
	if err != nil {
		return NodeGrant{}, receiptRefused(err)
	}
	g := NodeGrant{TTL: nodeGrantTTL, Job: r.Job}
	err = s.meta.View(ctx, func(tx Tx) error {
		job, err := tx.Job(r.Job)
		if err != nil {
			return notFound(err, "job %.100q does not exist", r.Job)
		}
		return s.mayLaunch(job)
	})
	if err != nil {
		return g, err
	}
	if _, err := s.launch(ctx, r.Job); err != nil {
		return g, err
	}
	claims := bearer.Claims{Use: bearer.Launch, Account: p.Account, Credential: p.TokenID, Job: r.Job}
	g.Token, err = s.tokenKey.Sign(claims, s.set.RegistryID, s.now(), g.TTL)
	return g, err
}

// receiptRefused words why a receipt gives no grant.
func receiptRefused(err error) error {
	code := Denied
	if e, ok := errors.AsType[*receipt.Error](err); ok && e.Problem == receipt.Malformed {
		code = Invalid
	}
	return Errorf(code, "the registry does not take the receipt: %w", err)
}

// mayLaunch answers why a job is not started any more. Errors: Denied.
func (s *Service) mayLaunch(job Job) error {
	switch {
	case job.Status == JobStopped:
		return Errorf(Denied, "job %s was stopped", job.ID)
	case job.Status.Ended() && s.now().Sub(job.LeaseUntil) > s.set.LeaseTTL:
		return Errorf(Denied, "job %s ended at %s (%s); submit it again", job.ID, job.LeaseUntil.UTC().Format(time.RFC3339), job.Status)
	}
	return nil
}

// maxLaunches bounds what is remembered of the packs of jobs, in bytes.
const maxLaunches = 1 << 20

// launch is what the receipt of a job names. It never changes: neither the receipt nor a version does.
func (s *Service) launch(ctx context.Context, job string) (*auth.Launch, error) {
	if l, ok := s.launches.get(job); ok {
		return l, nil
	}
	l := &auth.Launch{Job: job, Content: map[string][]string{}}
	size := len(job)
	err := s.meta.View(ctx, func(tx Tx) error {
		stored, err := tx.Job(job)
		if err != nil {
			return err
		}
		pins, err := pinsOf(stored)
		if err != nil {
			return err
		}
		clear(l.Content)
		for _, pin := range pins {
			if pin.RuntimeSupplied {
				continue
			}
			owner, pack, _ := strings.Cut(pin.ID, "/")
			repository, err := name.RepositoryName(owner, pack)
			if err != nil {
				return err
			}
			v, err := tx.Version(repository, pin.Version)
			if err != nil {
				return err
			}
			for _, d := range []digest.Digest{pin.Manifest, v.Config.Digest, v.Layer.Digest} {
				l.Content[repository] = append(l.Content[repository], d.String())
				size += len(repository) + 2*len(d.String())
			}
		}
		return nil
	})
	if err == nil {
		s.launches.put(job, l, size)
	}
	return l, err
}

// pinsOf are the packs that the receipt of a stored job pins.
func pinsOf(job Job) ([]receipt.Pin, error) {
	payload, err := receipt.Peek(job.Receipt, receipt.PayloadType, receipt.MaxEnvelope)
	if err == nil {
		var r *receipt.Receipt
		if r, err = receipt.Parse(payload); err == nil {
			return append(r.Plugins, r.Recipes...), nil
		}
	}
	return nil, fmt.Errorf("stored receipt of job %s: %w", job.ID, err)
}

// checkPinned answers why a node with the grant for a receipt may not read the bytes with a digest: told from the receipt alone,
// so that nobody learns what else there is. Errors: Denied.
func (s *Service) checkPinned(ctx context.Context, p auth.Principal, repository string, ref Reference) error {
	if l := p.Launching(); ref.Tag == "" && l.Names(repository, ref.Digest.String()) {
		return nil
	}
	err := Errorf(Denied, "the grant for the receipt of job %s does not name %s of %s", p.Launching().Job, Shown(ref.String()), Shown(repository))
	s.auditRefusal(ctx, p, string(auth.ReadPinned), repository, err)
	s.told(EventNodeRead, err)
	return err
}
