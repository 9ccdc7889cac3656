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
	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// A job package comes as the body of forge's submission, or by a lease: tuneplane's clients put it whole, ours may append
// it piece by piece and go on after a lost connection. It lies in an upload session until it is judged; one that is refused
// becomes no blob.

// packageType is what a job package is: a gzip tar of the experiment (wire.md 6).
const packageType = "application/gzip"

// receivePackage takes a job package whose digest nobody told, for a job that the gate's decision d allows.
func (s *Service) receivePackage(ctx context.Context, p auth.Principal, d admission.Decision, body io.Reader) (content, error) {
	h := sha256.New()
	rec, err := s.receive(ctx, io.TeeReader(body, h), limit.JobPackage)
	if err != nil || rec.size == 0 {
		return content{}, err
	}
	pkg, err := s.checkPackage(ctx, p, rec)
	if err == nil {
		err = s.checkExperiment(ctx, p, d, pkg.Experiment)
	}
	if err != nil {
		s.abandon(ctx, rec)
		return content{}, err
	}
	c, err := s.keep(ctx, rec, digest.FromHash(digest.SHA256, h))
	c.MediaType = packageType
	return c, err
}

// checkPackage judges what was received. Errors: a *rule.Denied.
func (s *Service) checkPackage(ctx context.Context, p auth.Principal, rec received) (archive.JobPackage, error) {
	select {
	case s.inspections <- struct{}{}:
		defer func() { <-s.inspections }()
	case <-ctx.Done():
		return archive.JobPackage{}, ctx.Err()
	}
	src := archive.Source{Size: rec.size, Open: func() (io.ReadCloser, error) { return s.open(ctx, rec) }}
	pkg, report, err := archive.CheckJob(src, s.set.Policy)
	if err != nil {
		return pkg, err
	}
	return pkg, s.packageVerdict(ctx, p, report, "job package")
}

// checkExperiment judges where a package's files lie against the job's spec. Errors: a *rule.Denied.
func (s *Service) checkExperiment(ctx context.Context, p auth.Principal, d admission.Decision, experiment string) error {
	value, ok := d.Value.(admission.SubmissionValue)
	if !ok {
		return fmt.Errorf("an allowed submission has no value")
	}
	var document struct {
		Spec struct {
			Source struct {
				Exp string `json:"exp"`
			} `json:"source"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(value.Spec, &document); err != nil {
		return err
	}
	report := rule.Report{Policy: s.set.Policy, Dialect: d.Subject.Dialect}
	for _, v := range archive.CheckExperiment(experiment, document.Spec.Source.Exp) {
		report.Add(v)
	}
	return s.packageVerdict(ctx, p, report, d.Subject.Name)
}

// packageVerdict is the error of what was found in a package; a refusal is told and audited.
func (s *Service) packageVerdict(ctx context.Context, p auth.Principal, report rule.Report, name string) error {
	d := report.Decide(rule.Submission, rule.Subject{Name: name, Dialect: report.Dialect}, nil)
	err := d.Err()
	if err != nil {
		s.decided(d)
		s.auditRefusal(ctx, p, "job.package", name, err)
	}
	return err
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
	now := s.now()
	u = PackageUpload{ID: newSession(now), Account: p.Account, TokenHash: auth.HashSecret(token), Want: want, ExpiresAt: now.Add(s.set.UploadTTL)}
	err = s.meta.Update(ctx, func(tx Tx) error { return tx.InsertPackageUpload(u) })
	return u, token, err
}

// PutPackage takes the bytes of a lease at once; taking them twice is fine. Errors: NotFound, Denied (token), DigestInvalid,
// and a *rule.Denied of the package.
func (s *Service) PutPackage(ctx context.Context, p auth.Principal, id, token string, body io.Reader) (PackageUpload, error) {
	u, err := s.leasedUpload(ctx, p, id, token)
	if err != nil {
		return u, err
	}
	rec, err := s.receive(ctx, body, u.Want.Size)
	if CodeOf(err) == TooLarge {
		err = Errorf(DigestInvalid, "job package: it has more than the %d bytes that were announced", u.Want.Size)
	}
	if err != nil {
		return u, err
	}
	if u, err = s.storePackage(ctx, p, u, rec); err != nil {
		s.abandon(ctx, rec)
	}
	return u, err
}

// AppendPackage adds bytes to a lease at an offset, which must be what it holds, and gives how much it holds then. With the
// last byte the package is judged and stored. What came before a connection broke stays. Errors: those of PutPackage;
// RangeInvalid, Conflict while another request appends.
func (s *Service) AppendPackage(ctx context.Context, p auth.Principal, id, token string, offset int64, body io.Reader) (u PackageUpload, held int64, err error) {
	if u, err = s.leasedUpload(ctx, p, id, token); err != nil {
		return u, 0, err
	}
	if u.Stored {
		return u, u.Want.Size, nil
	}
	if err := s.blobs.CreateUpload(ctx, id); err != nil && CodeOf(err) != Conflict {
		return u, 0, err
	}
	held, err = s.blobs.AppendUpload(ctx, id, offset, body, u.Want.Size)
	if err != nil || held < u.Want.Size {
		return u, held, err
	}
	rec := received{session: id, size: held}
	if u, err = s.storePackage(ctx, p, u, rec); err != nil && CodeOf(err) != Unavailable {
		s.abandon(ctx, rec) // it can never become the package: the upload begins anew
	}
	return u, held, err
}

// PackageOffset is how many bytes a lease holds. Errors: NotFound, Denied (token).
func (s *Service) PackageOffset(ctx context.Context, p auth.Principal, id, token string) (PackageUpload, int64, error) {
	u, err := s.leasedUpload(ctx, p, id, token)
	if err != nil || u.Stored {
		return u, u.Want.Size, err
	}
	held, err := s.blobs.UploadSize(ctx, id)
	if errors.Is(err, ErrUploadUnknown) {
		return u, 0, nil
	}
	return u, held, err
}

// storePackage judges and stores what was received for a lease.
func (s *Service) storePackage(ctx context.Context, p auth.Principal, u PackageUpload, rec received) (PackageUpload, error) {
	if rec.size != u.Want.Size {
		return u, Errorf(DigestInvalid, "job package: it has %d bytes, announced were %d", rec.size, u.Want.Size)
	}
	if err := s.verifyReceived(ctx, rec, u.Want); err != nil {
		return u, err
	}
	pkg, err := s.checkPackage(ctx, p, rec)
	if err != nil {
		return u, err
	}
	stored, err := s.keep(ctx, rec, u.Want.Digest)
	if err != nil {
		return u, err
	}
	u.Stored, u.Experiment = true, pkg.Experiment
	return u, s.commitContent(ctx, []content{stored}, func(tx Tx) error { return tx.MarkPackageStored(u.ID, u.Experiment) })
}

// verifyReceived compares what was received with its digest before it is judged: bytes that were damaged on the way are no fault
// of the package. Errors: DigestInvalid.
func (s *Service) verifyReceived(ctx context.Context, rec received, want digest.Descriptor) error {
	b, err := s.open(ctx, rec)
	if err != nil {
		return err
	}
	defer b.Close()
	h := sha256.New()
	if _, err := io.Copy(h, b); err != nil {
		return err
	}
	if got := digest.FromHash(digest.SHA256, h); got != want.Digest {
		return Errorf(DigestInvalid, "job package: %w", &digest.MismatchError{Want: want.Digest, Got: got, WantSize: want.Size, GotSize: rec.size})
	}
	return nil
}

// leasedUpload finds a lease for who holds its token.
func (s *Service) leasedUpload(ctx context.Context, p auth.Principal, id, token string) (PackageUpload, error) {
	if err := s.authorize(ctx, p, auth.SubmitJobs, "", "a job"); err != nil {
		return PackageUpload{}, err
	}
	u, err := s.packageUpload(ctx, p, id)
	if err != nil {
		return u, err
	}
	hash := auth.HashSecret(token)
	if subtle.ConstantTimeCompare(hash[:], u.TokenHash[:]) != 1 {
		return u, Errorf(Denied, "X-Upload-Token is not the one of upload %s", id)
	}
	return u, nil
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
