package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Submit admits a job and stores it with its package, which may be nil. The gate is asked before the package is taken and
// again when the job is stored. A submission with the key of a job that the account submitted is that job, whatever else it
// holds. Errors: Denied, TooLarge, and a *rule.Denied of gate 2 or of the package.
func (s *Service) Submit(ctx context.Context, p auth.Principal, sub Submission, body io.Reader) (Job, error) {
	if err := s.authorize(ctx, p, auth.SubmitJobs, "", "a job"); err != nil {
		return Job{}, err
	}
	if err := checkKey(sub.Key); err != nil {
		return Job{}, err
	}
	if job, done, err := s.jobOfKey(ctx, p, sub.Key); done || err != nil {
		return job, err
	}
	d, q, err := s.weigh(ctx, p, sub)
	if err != nil {
		return Job{}, err
	}
	if !d.Allowed { // perhaps for what the key's own job holds, which another request has made meanwhile
		if made, done, err := s.jobOfKey(ctx, p, sub.Key); done || err != nil {
			return made, err
		}
	}
	s.answered(ctx, p, "job.submit", d)
	if err := d.Err(); err != nil {
		return Job{}, err
	}
	var pkg content
	if body != nil {
		if pkg, err = s.receivePackage(ctx, p, d, body); err != nil {
			return Job{}, err
		}
	}
	job, err := s.admit(ctx, p, q, pkg, "")
	if CodeOf(err) == Conflict { // another request with the key was first, on another replica
		if made, done, lookErr := s.jobOfKey(ctx, p, sub.Key); done && lookErr == nil {
			return made, nil
		}
	}
	return job, err
}

// jobOfKey finds the job that a submission of the account with the key made before.
func (s *Service) jobOfKey(ctx context.Context, p auth.Principal, key string) (job Job, done bool, err error) {
	if key == "" {
		return job, false, nil
	}
	err = s.meta.View(ctx, func(tx Tx) (err error) {
		job, err = tx.JobByKey(p.Account, key)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return Job{}, false, nil
	}
	return job, err == nil, err
}

// previewDocument is what a preview stores; the commit decides on these bytes and no others.
type previewDocument struct {
	Submission Submission `json:"submission"`
	Caller     Caller     `json:"caller"`
	Upload     string     `json:"upload"` // of the package, "" for none
}

// Preview runs gate 2 and keeps the submission for a commit within Settings.PreviewTTL. upload is the id of a stored
// package, or "".
// Errors: Denied, NotFound, Conflict for an upload without bytes, and a *rule.Denied of gate 2 or of the package.
func (s *Service) Preview(ctx context.Context, p auth.Principal, sub Submission, upload string) (Preview, admission.SubmissionValue, error) {
	var u PackageUpload
	if upload != "" {
		var err error
		if u, err = s.packageUpload(ctx, p, upload); err != nil {
			return Preview{}, admission.SubmissionValue{}, err
		}
		if !u.Stored {
			return Preview{}, admission.SubmissionValue{}, Errorf(Conflict, "upload %s has no bytes yet", upload)
		}
	}
	d, err := s.ask(ctx, p, sub, "job.preview")
	if err == nil {
		err = d.Err()
	}
	if err == nil && upload != "" {
		err = s.checkExperiment(ctx, p, d, u.Experiment)
	}
	if err != nil {
		return Preview{}, admission.SubmissionValue{}, err
	}
	document, err := json.Marshal(previewDocument{sub, CallerOf(ctx), upload})
	if err != nil {
		return Preview{}, admission.SubmissionValue{}, err
	}
	value, _ := d.Value.(admission.SubmissionValue)
	pv := Preview{ID: randomHex(16), Account: p.Account, Digest: digest.FromBytes(document), Document: document, ExpiresAt: s.now().Add(s.set.PreviewTTL)}
	err = s.meta.Update(ctx, func(tx Tx) error { return tx.InsertPreview(pv) })
	return pv, value, err
}

// Commit submits a preview, whose digest the client repeats. The same preview again gives the same job.
// Errors: NotFound, Conflict (digest, or the key of another preview's job), and a *rule.Denied of gate 2, which is asked again.
func (s *Service) Commit(ctx context.Context, p auth.Principal, previewID, want, key string) (Job, error) {
	if err := s.authorize(ctx, p, auth.SubmitJobs, "", "a job"); err != nil {
		return Job{}, err
	}
	if err := checkKey(key); err != nil {
		return Job{}, err
	}
	var pv Preview
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		pv, err = tx.Preview(previewID)
		return err
	})
	if err == nil && pv.Account != p.Account {
		err = ErrNotFound
	}
	switch {
	case err != nil:
		return Job{}, notFound(err, "preview %.64q does not exist", previewID)
	case pv.Digest.String() != want:
		return Job{}, Errorf(Conflict, "digest: the preview is %s, not %.80q", pv.Digest, want)
	case pv.JobID != "":
		return s.Job(ctx, p, pv.JobID)
	case s.now().After(pv.ExpiresAt):
		return Job{}, Errorf(NotFound, "preview %s has expired; submit again", previewID)
	}
	return s.commit(ctx, p, pv, key)
}

func (s *Service) commit(ctx context.Context, p auth.Principal, pv Preview, key string) (Job, error) {
	var doc previewDocument
	if err := json.Unmarshal(pv.Document, &doc); err != nil {
		return Job{}, fmt.Errorf("stored preview %s: %w", pv.ID, err)
	}
	doc.Submission.Key = key
	if key == "" {
		doc.Submission.Key = "preview:" + pv.ID
	}
	var pkg content
	if doc.Upload != "" {
		u, err := s.packageUpload(ctx, p, doc.Upload)
		if err != nil {
			return Job{}, err
		}
		pkg.Descriptor = u.Want
	}
	q := s.question(WithCaller(ctx, doc.Caller), p, doc.Submission)
	if s.resolver != nil { // what it said of the preview may be true no more
		if _, err := s.answer(ctx, p, &q); err != nil {
			return Job{}, err
		}
	}
	return s.admit(ctx, p, q, pkg, pv.ID)
}

// checkKey bounds an idempotency key. Errors: Invalid.
func checkKey(key string) error {
	if len(key) > limit.IdempotencyKey || strings.ContainsFunc(key, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return Errorf(Invalid, "key: %.60q is no key: at most %d bytes that all print", key, limit.IdempotencyKey)
	}
	return nil
}

// Job finds a job of the caller, or of anybody for those who may read all. Errors: NotFound.
func (s *Service) Job(ctx context.Context, p auth.Principal, id string) (Job, error) {
	if err := s.authorize(ctx, p, auth.ReadOwnJobs, "", "job "+id); err != nil {
		return Job{}, err
	}
	var job Job
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		job, err = tx.Job(id)
		return err
	})
	if err == nil && job.Account != p.Account && !p.Can(auth.ReadAllJobs) {
		err = ErrNotFound
	}
	return job, notFound(err, "job %.100q does not exist", id)
}

// JobFiles is Job for who wants its spec, its receipt or its package: also for a node with the grant for the job's receipt.
// Errors: NotFound.
func (s *Service) JobFiles(ctx context.Context, p auth.Principal, id string) (Job, error) {
	l := p.Launching()
	if l == nil {
		return s.Job(ctx, p, id)
	}
	if l.Job != id {
		return Job{}, Errorf(NotFound, "job %.100q does not exist, or the grant is not for it", id)
	}
	var job Job
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		job, err = tx.Job(id)
		return err
	})
	return job, notFound(err, "job %.100q does not exist", id)
}

// Jobs lists the caller's own jobs, newest first, at most limit.
func (s *Service) Jobs(ctx context.Context, p auth.Principal, limit int) ([]Job, error) {
	if err := s.authorize(ctx, p, auth.ReadOwnJobs, "", "jobs"); err != nil {
		return nil, err
	}
	var jobs []Job
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		jobs, err = tx.Jobs(p.Account, limit)
		return err
	})
	return jobs, err
}

// FindJobs lists jobs, newest first, at most maxJobs: the caller's own, or for those who may read all, whoever's the filter
// names. Errors: Denied.
func (s *Service) FindJobs(ctx context.Context, p auth.Principal, f JobFilter) ([]Job, error) {
	action := auth.ReadAllJobs
	if f.Account == p.Account {
		action = auth.ReadOwnJobs
	}
	if err := s.authorize(ctx, p, action, "", "the jobs of others"); err != nil {
		return nil, err
	}
	if f.Limit < 0 || f.Limit > maxJobs {
		f.Limit = maxJobs
	}
	var jobs []Job
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		jobs, err = tx.FindJobs(f)
		return err
	})
	return jobs, err
}

// maxJobs is how many jobs a list has at most.
const maxJobs = 200

// JobPackage opens the package of a job that JobFiles finds. Errors: NotFound; Damaged.
func (s *Service) JobPackage(ctx context.Context, p auth.Principal, id string) (Job, Blob, error) {
	job, err := s.JobFiles(ctx, p, id)
	if err != nil {
		return job, nil, err
	}
	if job.Package.Digest.IsZero() {
		return job, nil, Errorf(NotFound, "job %s came without a package", id)
	}
	b, err := s.openContent(ctx, job.Package)
	return job, b, err
}

// StopJob ends a job's hold on its GPUs and marks it stopped, and tells the platforms that may run it. Of a job that has ended it
// changes nothing. Errors: NotFound.
func (s *Service) StopJob(ctx context.Context, p auth.Principal, id string) (Job, error) {
	job, err := s.Job(ctx, p, id)
	if err != nil {
		return job, err
	}
	if err := s.authorize(ctx, p, auth.SubmitJobs, "", "job "+id); err != nil {
		return job, err
	}
	if job.Account != p.Account && !p.Can(auth.ManageJobs) {
		return job, Errorf(Denied, "job %s is %s's", id, job.Account)
	}
	err = s.meta.Update(ctx, func(tx Tx) error {
		if job, err = tx.Job(id); err != nil || job.Status.Ended() {
			return err
		}
		job.Status = JobStopped
		if err := tx.SetJobStatus(id, JobStopped, s.now()); err != nil {
			return err
		}
		if err := s.announceCancelled(tx, job); err != nil {
			return err
		}
		return s.audit(tx, p, "job.stop", id, "")
	})
	s.handover.wake()
	return job, err
}
