package registry

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// packageType is what a job package is: a gzip tar of the experiment (wire.md 6).
const packageType = "application/gzip"

// Submit admits a job and stores it with its package, which may be nil. The gate is asked before the package is taken and
// again when the job is stored. Errors: Denied, TooLarge, and a *rule.Denied of gate 2.
func (s *Service) Submit(ctx context.Context, p auth.Principal, sub Submission, body io.Reader) (Job, error) {
	if err := s.authorize(ctx, p, auth.SubmitJobs, "", "a job"); err != nil {
		return Job{}, err
	}
	d, q, err := s.ask(ctx, p, sub, "job.submit")
	if err != nil {
		return Job{}, err
	}
	if err := d.Err(); err != nil {
		return Job{}, err
	}
	var pkg content
	if body != nil {
		if pkg, err = s.receivePackage(ctx, body); err != nil {
			return Job{}, err
		}
	}
	return s.admit(ctx, p, q, pkg, "")
}

// receivePackage takes a job package whose digest nobody told.
func (s *Service) receivePackage(ctx context.Context, body io.Reader) (content, error) {
	h := sha256.New()
	rec, err := s.receive(ctx, io.TeeReader(body, h), limit.JobPackage)
	if err != nil || rec.size == 0 {
		return content{}, err
	}
	c, err := s.keep(ctx, rec, digest.FromHash(digest.SHA256, h))
	c.MediaType = packageType
	return c, err
}

// StartPackage opens a lease for the upload of a job package of known digest and size (wire.md 6.2). The token is
// needed for the upload. Errors: Denied, TooLarge, Invalid.
func (s *Service) StartPackage(ctx context.Context, p auth.Principal, want digest.Descriptor) (u PackageUpload, token string, err error) {
	if err := s.authorize(ctx, p, auth.SubmitJobs, "", "a job"); err != nil {
		return u, "", err
	}
	switch {
	case want.Size > limit.JobPackage:
		return u, "", Errorf(TooLarge, "size: %d bytes, at most %d are allowed", want.Size, limit.JobPackage)
	case want.Size <= 0:
		return u, "", Errorf(Invalid, "size: %d is not positive", want.Size)
	}
	token = auth.NewSecret()
	want.MediaType = packageType
	u = PackageUpload{ID: randomHex(16), Account: p.Account, TokenHash: auth.HashSecret(token), Want: want, ExpiresAt: s.now().Add(s.set.UploadTTL)}
	err = s.meta.Update(ctx, func(tx Tx) error { return tx.InsertPackageUpload(u) })
	return u, token, err
}

// PutPackage takes the bytes of a lease; taking them twice is fine. Errors: NotFound, Denied (token), DigestInvalid.
func (s *Service) PutPackage(ctx context.Context, p auth.Principal, id, token string, body io.Reader) (PackageUpload, error) {
	u, err := s.packageUpload(ctx, p, id)
	if err != nil {
		return u, err
	}
	hash := auth.HashSecret(token)
	if subtle.ConstantTimeCompare(hash[:], u.TokenHash[:]) != 1 {
		return u, Errorf(Denied, "X-Upload-Token is not the one of upload %s", id)
	}
	stored, err := s.take(ctx, u.Want, body)
	if err != nil {
		if mismatch, ok := errors.AsType[*digest.MismatchError](err); ok {
			return u, Errorf(DigestInvalid, "job package: %w", mismatch)
		}
		return u, err
	}
	u.Stored = true
	return u, s.commitContent(ctx, []content{stored}, func(tx Tx) error { return tx.MarkPackageStored(id) })
}

func (s *Service) packageUpload(ctx context.Context, p auth.Principal, id string) (PackageUpload, error) {
	var u PackageUpload
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		u, err = tx.PackageUpload(id)
		return err
	})
	if err == nil && (u.Account != p.Account || s.now().After(u.ExpiresAt)) {
		err = ErrNotFound
	}
	return u, notFound(err, "upload %.64q does not exist or has expired", id)
}

// previewDocument is what a preview stores; the commit decides on these bytes and no others.
type previewDocument struct {
	Submission Submission `json:"submission"`
	Caller     Caller     `json:"caller"`
	Upload     string     `json:"upload"` // of the package, "" for none
}

// Preview runs gate 2 and keeps the submission for a commit within Settings.PreviewTTL. upload is the id of a stored
// package, or "".
// Errors: Denied, NotFound, and a *rule.Denied of gate 2.
func (s *Service) Preview(ctx context.Context, p auth.Principal, sub Submission, upload string) (Preview, admission.SubmissionValue, error) {
	if upload != "" {
		u, err := s.packageUpload(ctx, p, upload)
		if err != nil {
			return Preview{}, admission.SubmissionValue{}, err
		}
		if !u.Stored {
			return Preview{}, admission.SubmissionValue{}, Errorf(Conflict, "upload %s has no bytes yet", upload)
		}
	}
	d, _, err := s.ask(ctx, p, sub, "job.preview")
	if err == nil {
		err = d.Err()
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

// Commit submits a preview, whose digest the client repeats. The same preview or the same key again gives the same job.
// Errors: NotFound, Conflict (digest), and a *rule.Denied of gate 2, which is asked again.
func (s *Service) Commit(ctx context.Context, p auth.Principal, previewID, want, key string) (Job, error) {
	if err := s.authorize(ctx, p, auth.SubmitJobs, "", "a job"); err != nil {
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

// StopJob ends a job's hold on its GPUs and marks it stopped. Errors: NotFound.
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
	job.Status = JobStopped
	return job, s.meta.Update(ctx, func(tx Tx) error {
		if err := tx.SetJobStatus(id, JobStopped, s.now()); err != nil {
			return err
		}
		return s.audit(tx, p, "job.stop", id, "")
	})
}

// Usage is the caller's quota and what it holds.
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
