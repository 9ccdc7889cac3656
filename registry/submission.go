package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Submission is a job as a client sends it, without its package.
type Submission struct {
	Dialect dialect.Dialect   // of the route; "" takes it from the document
	Spec    []byte            // the JobSpec
	Beside  *admission.Beside // what the request says beside it
	Meta    json.RawMessage   // the same as sent, kept with the job; null for nothing
	Key     string            // idempotency key, "" for none
}

// DryRun runs gate 2 and stores nothing but the audit row of a refusal.
func (s *Service) DryRun(ctx context.Context, p auth.Principal, sub Submission) (admission.Decision, error) {
	return s.ask(ctx, p, sub, "job.check")
}

// question is a submission as gate 2 is asked about it: read once, and decided whenever that is needed.
type question struct {
	sub     Submission
	spec    *jobspec.Spec // nil when there was nothing to read
	report  admission.Report
	caller  Caller
	answers answers // of the platform's resolver
	since   moment  // before the View in which it is decided
	answer  *answer // nil while there is none that may hold later
}

// answer is gate 2's answer to a question in a View, with when it was given. It holds as long as nothing that it was made of
// can have changed: for jobs of an account without limits, until MetaStore.AccessGeneration moves.
type answer struct {
	decision admission.Decision
	spec     *jobspec.Spec // the job as it is stored
	since    moment
}

// holds reports whether the answer is what the gate would say now.
func (s *Service) holds(a *answer) bool {
	if a == nil || !a.since.exact {
		return false
	}
	generation, exact := s.meta.AccessGeneration()
	return exact && generation == a.since.generation
}

// question reads a submission.
func (s *Service) question(ctx context.Context, p auth.Principal, sub Submission) question {
	q := question{sub: sub}
	q.spec, q.report = jobspec.Parse(sub.Spec, jobspec.Options{Dialect: sub.Dialect, Policy: s.set.Policy, Account: p.Account})
	if q.spec == nil {
		return q
	}
	q.caller = Caller{Dialect: q.spec.Dialect}
	if c := CallerOf(ctx); c.Dialect == q.spec.Dialect {
		q.caller = c
	}
	return q
}

// ask runs gate 2 for what action names in the audit log.
func (s *Service) ask(ctx context.Context, p auth.Principal, sub Submission, action string) (admission.Decision, error) {
	d, _, err := s.weigh(ctx, p, sub)
	if err == nil {
		s.answered(ctx, p, action, d)
	}
	return d, err
}

// weigh runs gate 2 and tells nobody yet. The question that it answered can be decided again, in a transaction that writes.
func (s *Service) weigh(ctx context.Context, p auth.Principal, sub Submission) (admission.Decision, question, error) {
	if err := s.authorize(ctx, p, auth.SubmitJobs, "", "a job"); err != nil {
		return admission.Decision{}, question{}, err
	}
	q := s.question(ctx, p, sub)
	d, err := s.answer(ctx, p, &q)
	return d, q, err
}

// answered counts a decision and keeps a refusal in the audit log.
func (s *Service) answered(ctx context.Context, p auth.Principal, action string, d admission.Decision) {
	s.decided(d)
	if !d.Allowed {
		s.auditRefusal(ctx, p, action, d.Subject.Name, d.Err())
	}
}

// answer decides a question, after the platform was asked about what the registry does not hold.
func (s *Service) answer(ctx context.Context, p auth.Principal, q *question) (admission.Decision, error) {
	d, open, err := s.look(ctx, p, q)
	if err != nil || len(open) == 0 || s.resolver == nil {
		return d, err
	}
	if q.answers, err = s.resolve(ctx, p, q.spec, open); err != nil {
		if !d.Allowed {
			return d, nil // it is refused whatever the platform would say
		}
		return d, err
	}
	d, _, err = s.look(ctx, p, q)
	return d, err
}

// look decides a question with what the registry holds now. It also gives the references that nobody answered for.
func (s *Service) look(ctx context.Context, p auth.Principal, q *question) (d admission.Decision, open []jobspec.Reference, err error) {
	q.since = s.thisMoment()
	var spec *jobspec.Spec
	var bounded bool
	err = s.meta.View(ctx, func(tx Tx) (err error) {
		d, spec, open, bounded, err = s.decideSubmission(tx, p, *q)
		return err
	})
	if q.answer = nil; err == nil && d.Allowed && !bounded {
		q.answer = &answer{d, spec, q.since}
	}
	q.since = moment{}
	return d, open, err
}

// decideSubmission runs gate 2 with what a transaction sees. bounded says that other jobs of the account count, too.
func (s *Service) decideSubmission(tx Tx, p auth.Principal, q question) (d admission.Decision, spec *jobspec.Spec, open []jobspec.Reference, bounded bool, err error) {
	in := admission.SubmissionInput{
		Spec: q.spec, Report: q.report, Account: p.Account, AnyNamespace: p.Can(auth.AnyNamespace),
		Beside: q.sub.Beside, ImageHosts: s.set.ImageHosts, PinImages: s.set.PinImages, Hubs: s.set.Hubs, PinHubs: s.set.PinHubs,
		RefuseUnchecked: s.set.RefuseUnchecked,
	}
	for _, profile := range s.set.Profiles {
		in.Profiles = append(in.Profiles, admission.Profile{Name: profile.Name, Series: profile.Series})
	}
	if q.spec == nil {
		d, _ = admission.CheckSubmission(in)
		return d, nil, nil, false, nil
	}
	known := rememberingTx{tx, s, q.since}
	if in.Catalogue, err = s.catalogue(known, q.caller, q.spec.Recipe.Name); err != nil {
		return d, nil, nil, false, err
	}
	if in.Plugins, err = s.pluginRecords(known, p, q.spec); err != nil {
		return d, nil, nil, false, err
	}
	if in.Quota, err = s.jobBounds(known, p.Account); err != nil {
		return d, nil, nil, false, err
	}
	find := lookup{s: s, tx: tx, p: p, caller: q.caller, answers: q.answers}
	help := advisor{s: s, tx: tx, p: p, d: q.spec.Dialect}
	in.Resolve, in.Advise = find.resolve, help.advise
	d, spec = admission.CheckSubmission(in)
	return d, spec, find.open, in.Quota.Limit > 0 || in.Quota.MaxJobs > 0, cmp.Or(find.err, help.err)
}

// admit stores a job with its decision and its signed receipt, all in one transaction, in which gate 2 is run once more unless
// its answer still holds. A submission that comes from a preview names it; a preview makes one job.
func (s *Service) admit(ctx context.Context, p auth.Principal, q question, pkg content, preview string) (Job, error) {
	var prepared Job // as much as can be is done while nobody waits
	if s.holds(q.answer) {
		var err error
		if prepared, err = s.newJob(p, q.sub, q.answer.decision, q.answer.spec, pkg.Descriptor); err != nil {
			return Job{}, err
		}
	}
	var job Job
	var d admission.Decision // stays empty when the job was there
	err := s.commitContent(ctx, []content{pkg}, func(tx Tx) (err error) {
		made, done, err := alreadyMade(tx, p, preview, q.sub.Key)
		if job = made; done || err != nil {
			return err
		}
		if prepared.ID != "" && s.holds(q.answer) {
			job, d = prepared, q.answer.decision
		} else if job, d, err = s.decideAgain(tx, p, q, pkg); err != nil {
			return err
		}
		if err := tx.InsertJob(job); err != nil {
			return err
		}
		if err := s.announceAdmitted(tx, job); err != nil {
			return err
		}
		if preview != "" {
			if err := tx.MarkPreviewCommitted(preview, job.ID); err != nil {
				return err
			}
		}
		return s.audit(tx, p, "job.submit", job.ID, job.SpecDigest.String())
	})
	if err == nil && d.Allowed {
		s.decided(d)
		s.handover.wake()
	}
	if denied, ok := errors.AsType[*rule.Denied](err); ok {
		s.decided(denied.Decision)
		s.auditRefusal(ctx, p, "job.submit", denied.Decision.Subject.Name, err)
	}
	return job, err
}

// decideAgain runs gate 2 in the transaction that stores the job.
func (s *Service) decideAgain(tx Tx, p auth.Principal, q question, pkg content) (Job, admission.Decision, error) {
	d, spec, open, _, err := s.decideSubmission(tx, p, q)
	if err != nil {
		return Job{}, d, err
	}
	if len(open) > 0 && s.resolver != nil {
		return Job{}, d, Errorf(Unavailable, "%s %.200q went away while the job was checked; submit again", open[0].Kind, open[0].Text)
	}
	if err := d.Err(); err != nil {
		return Job{}, d, err
	}
	job, err := s.newJob(p, q.sub, d, spec, pkg.Descriptor)
	return job, d, err
}

// alreadyMade finds the job that a submission, which may come from a preview, made before.
func alreadyMade(tx Tx, p auth.Principal, preview, key string) (job Job, done bool, err error) {
	switch {
	case preview != "":
		return committed(tx, p, preview, key)
	case key == "":
		return job, false, nil
	}
	job, err = tx.JobByKey(p.Account, key)
	if errors.Is(err, ErrNotFound) {
		return Job{}, false, nil
	}
	return job, err == nil, err
}

// committed finds the job that a preview made already. Errors: Conflict when the key is that of another preview's job.
func committed(tx Tx, p auth.Principal, preview, key string) (job Job, done bool, err error) {
	pv, err := tx.Preview(preview)
	if err != nil {
		return job, false, err
	}
	if pv.JobID != "" {
		job, err = tx.Job(pv.JobID)
		return job, true, err
	}
	switch other, err := tx.JobByKey(p.Account, key); {
	case err == nil:
		return job, false, Errorf(Conflict, "key: %.100q is the key of job %s, which another preview made", key, other.ID)
	case !errors.Is(err, ErrNotFound):
		return job, false, err
	}
	return job, false, nil
}

// newJob makes the job of an allowed decision. Its stored spec, the receipt and what is handed over are the decision's
// bytes.
func (s *Service) newJob(p auth.Principal, sub Submission, d admission.Decision, spec *jobspec.Spec, pkg digest.Descriptor) (Job, error) {
	value, ok := d.Value.(admission.SubmissionValue)
	if !ok {
		return Job{}, errors.New("an allowed submission has no value")
	}
	decision, err := admission.EncodeDecision(d)
	if err != nil {
		return Job{}, err
	}
	now := s.now()
	job := Job{
		ID: "run-" + now.UTC().Format("20060102-150405") + "-" + randomHex(4), Account: p.Account, Dialect: spec.Dialect,
		Exp: spec.Source.Exp, Name: spec.Metadata.Name, Project: spec.Metadata.Project, Status: JobAdmitted,
		GPUs: int(value.TotalGPUs), Spec: value.Spec, SpecDigest: value.SpecBytes, Package: pkg, Meta: sub.Meta,
		Decision: decision, Warnings: d.Warnings, Pins: slices.Concat(value.Plugins, value.Recipes), Key: sub.Key, SubmittedAt: now, LeaseUntil: now.Add(s.set.LeaseTTL),
	}
	job.Receipt, err = s.signer.SignReceipt(receipt.Receipt{
		Audience: s.set.RegistryID, Job: job.ID, Dialect: job.Dialect, IssuedAt: now.Truncate(time.Second),
		Expires: now.Truncate(time.Second).Add(s.set.ReceiptTTL), SpecBytes: value.SpecBytes, SpecDigest: value.SpecDigest,
		JobPackage: pkg.Digest, Plugins: value.Plugins, Recipes: value.Recipes,
	})
	return job, err
}

// Trust is what a launch agent verifies this registry's receipts with, offline: its public key and its id.
func (s *Service) Trust() ([]byte, error) {
	set, err := s.signer.Trust(s.set.RegistryID)
	if err != nil {
		return nil, err
	}
	return set.Encode()
}
