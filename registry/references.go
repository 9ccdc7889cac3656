package registry

import (
	"context"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// What a job names outside itself is looked for in two places. What this registry holds is looked up in the transaction that
// decides, by the functions of held. The rest is the platform's: a Resolver, when there is one, is asked about all of it at
// once, before the transaction, and its answers are used in it. What then nobody could check is listed in the decision.

// ResolveRequest asks about what one submission names and the registry does not hold.
type ResolveRequest struct {
	Account    string // who submits
	Dialect    dialect.Dialect
	Job        string              // metadata.name
	References []jobspec.Reference // at least one, at most maxOpen
}

// Resolver answers for what the platform holds.
type Resolver interface {
	// Resolve gives one answer for each reference, in their order; Unresolved is an answer. Errors: Unavailable, with
	// RetryAfter, for a platform that does not answer, or answers what can't be understood.
	Resolve(ctx context.Context, r ResolveRequest) ([]admission.Resolution, error)
}

// held are the kinds of references to what the registry itself may hold, with who looks them up. A function answers
// Unresolved for what it can't know, which is then the Resolver's. What the principal may not read is answered with the words
// for what is not there.
var held = map[jobspec.RefKind]func(s *Service, tx Tx, p auth.Principal, ref jobspec.Reference) (admission.Resolution, error){
	jobspec.RefArtifact:    (*Service).heldArtifact,
	jobspec.RefRun:         (*Service).heldRun,
	jobspec.RefEnvironment: (*Service).heldEnvironment,
	jobspec.RefTaskset:     (*Service).heldTaskset,
	jobspec.RefRubric:      (*Service).heldRubric,
}

// answers are what a Resolver said, by reference.
type answers map[jobspec.Reference]admission.Resolution

// lookup answers gate 2's questions about references within one transaction.
type lookup struct {
	s       *Service
	tx      Tx
	p       auth.Principal
	caller  Caller
	answers answers
	open    []jobspec.Reference // what was asked and nobody answered, but for what lies in the job itself
	err     error               // of the store; it makes the decision void
}

// resolve is admission.SubmissionInput.Resolve.
func (l *lookup) resolve(ref jobspec.Reference) admission.Resolution {
	r, err := l.find(ref)
	if err != nil && l.err == nil {
		l.err = err
	}
	if err != nil || r.State != admission.Unresolved {
		return r
	}
	r, answered := l.answers[ref]
	if !answered && slices.Contains(admission.UncheckedKinds, ref.Kind) {
		l.open = append(l.open, ref)
	}
	return r
}

// find looks for a reference among what the registry holds.
func (l *lookup) find(ref jobspec.Reference) (admission.Resolution, error) {
	if ref.Kind == jobspec.RefBenchmark {
		return l.s.heldBenchmark(l.tx, l.p, l.caller, ref)
	}
	if find, ok := held[ref.Kind]; ok {
		return find(l.s, l.tx, l.p, ref)
	}
	return admission.Resolution{}, nil
}

// maxOpen is how many references of one submission a Resolver is asked about at most.
const maxOpen = 1000

// resolve asks the platform about the references of a job.
func (s *Service) resolve(ctx context.Context, p auth.Principal, spec *jobspec.Spec, open []jobspec.Reference) (answers, error) {
	if len(open) > maxOpen {
		return nil, Errorf(TooLarge, "the job names %d things that the platform must be asked about, at most %d are allowed", len(open), maxOpen)
	}
	said, err := s.resolver.Resolve(ctx, ResolveRequest{Account: p.Account, Dialect: spec.Dialect, Job: spec.Metadata.Name, References: open})
	if err != nil {
		return nil, err
	}
	if len(said) != len(open) {
		return nil, Errorf(Internal, "the resolver gave %d answers for %d references", len(said), len(open))
	}
	a := make(answers, len(open))
	for i, ref := range open {
		a[ref] = said[i]
	}
	return a, nil
}
