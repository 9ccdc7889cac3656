package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// PutRubric makes a version of a rubric: a text of at most limit.RubricText bytes. A version never changes; the same text
// again is a conflict that says so. public counts for the first version only. Errors: Denied, NameInvalid, Invalid, Conflict,
// and a *rule.Denied.
func (s *Service) PutRubric(ctx context.Context, p auth.Principal, id SuiteID, version string, public bool, text []byte) (SuiteVersion, error) {
	repository, err := id.Repository()
	if err != nil {
		return SuiteVersion{}, err
	}
	if name.IsReservedOwner(id.Owner) {
		return SuiteVersion{}, Errorf(Invalid, "rubric: nobody publishes below %s", id.Owner)
	}
	if err := s.mayWrite(ctx, p, repository); err != nil {
		return SuiteVersion{}, err
	}
	t := Ticket{Kind: id.Kind, Owner: id.Owner, Name: id.Name, Version: version, File: suite.RubricFile, Public: public, Account: p.Account}
	if err := checkUpload(SuiteUpload{Kind: id.Kind, Version: version, File: t.File}); err != nil {
		return SuiteVersion{}, err
	}
	caller := CallerOf(ctx).Dialect
	report := suite.CheckRubric(text, s.set.Policy)
	if !report.OK() {
		return SuiteVersion{}, s.refusedSuite(ctx, p, t, report, caller)
	}
	file := suite.File{Name: suite.RubricFile, Size: int64(len(text)), Digest: digest.FromBytes(text)}
	stored, err := s.take(ctx, digest.Descriptor{MediaType: blobMediaType, Digest: file.Digest, Size: file.Size}, bytes.NewReader(text))
	if err != nil {
		return SuiteVersion{}, err
	}
	stored.MediaType = blobMediaType
	j := judged{document: json.RawMessage("null"), dialect: caller, decision: report.Decide(rule.Publish, suiteSubject(t, caller), nil)}
	v, manifest, fresh, err := s.suiteArtifact(ctx, p, t, repository, j, suite.Index{file})
	if err != nil {
		return v, err
	}
	fresh = append(fresh, stored)
	err = s.commitContent(ctx, fresh, s.charged(repository, func(tx Tx) error {
		if err := checkRubricVersion(tx, t, repository, v); err != nil {
			return err
		}
		return s.insertSuite(tx, p, t, v, manifest, fresh)
	}))
	if err != nil {
		return v, err
	}
	s.decided(j.decision)
	return v, s.ledgerFollows(ctx)
}

// checkRubricVersion is checkSealed, and says of the same version whether the text is the same. Errors: Conflict.
func checkRubricVersion(tx Tx, t Ticket, repository string, v SuiteVersion) error {
	have, err := tx.SuiteVersion(repository, t.Version)
	switch {
	case err == nil && have.Tree == v.Tree && have.Name == t.Name:
		return Errorf(Conflict, "rubric %s exists with the same text", t.ref())
	case err == nil && have.Name == t.Name:
		return Errorf(Conflict, "rubric %s exists with another text, and a version never changes: push another version", t.ref())
	case err != nil && !errors.Is(err, ErrNotFound):
		return err
	}
	return checkSealed(tx, t, repository)
}

// Rubric finds a version of a rubric with its text; "" is the newest. Errors: NotFound.
func (s *Service) Rubric(ctx context.Context, p auth.Principal, id SuiteID, version string) (Suite, string, error) {
	b, u, err := s.OpenSuiteFile(ctx, p, id, version, suite.RubricFile)
	if err != nil {
		return u, "", err
	}
	defer b.Close()
	text, err := io.ReadAll(b)
	return u, string(text), err
}
