package registry

import (
	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// heldEnvironment looks for the environment that a job is about: one without a version is pinned to the newest.
func (s *Service) heldEnvironment(tx Tx, p auth.Principal, ref jobspec.Reference) (admission.Resolution, error) {
	return s.heldSuite(tx, p, suite.Environment, ref)
}

// heldTaskset looks for a job's taskset.
func (s *Service) heldTaskset(tx Tx, p auth.Principal, ref jobspec.Reference) (admission.Resolution, error) {
	return s.heldSuite(tx, p, suite.Taskset, ref)
}

// heldRubric looks for the rubric of an evaluation.
func (s *Service) heldRubric(tx Tx, p auth.Principal, ref jobspec.Reference) (admission.Resolution, error) {
	return s.heldSuite(tx, p, suite.Rubric, ref)
}

// heldSuite answers for a suite. One that is not here may be the platform's, where one is asked; a registry that holds no suite
// of the kind at all can't know either. Else it is not there, or not for this account: the two read alike. What is here and not
// for this account is never the platform's to allow: it knows nothing of who reads what here.
func (s *Service) heldSuite(tx Tx, p auth.Principal, kind suite.Kind, ref jobspec.Reference) (admission.Resolution, error) {
	named, err := name.VersionedRef(ref.Text, string(kind))
	if err != nil { // a bare name is the submitter's own
		bare, err := name.Segment(ref.Text, string(kind))
		if err != nil {
			return admission.Resolution{}, nil
		}
		named = name.Ref{Owner: p.Namespace(), Name: bare}
	}
	id := SuiteID{kind, named.Owner, named.Name}
	versions, err := s.readableSuite(tx, p, id)
	if CodeOf(err) == NotFound {
		return s.notOurs(tx, id, err)
	}
	if err != nil {
		return admission.Resolution{}, err
	}
	found, err := pickSuite(id, versions, named.Version)
	if CodeOf(err) == NotFound {
		return admission.Resolution{State: admission.NotFound, Detail: err.Error()}, nil
	}
	return admission.Resolution{State: admission.Resolved, Version: found.Version}, err
}

// notOurs answers for a suite of which nothing is here that the account may read; missing are the words for that.
func (s *Service) notOurs(tx Tx, id SuiteID, missing error) (admission.Resolution, error) {
	if s.resolver == nil {
		holds, err := tx.HoldsSuites(id.Kind)
		if err != nil || !holds {
			return admission.Resolution{}, err
		}
		return admission.Resolution{State: admission.NotFound, Detail: missing.Error()}, nil
	}
	repository, err := id.Repository()
	if err != nil {
		return admission.Resolution{}, nil
	}
	hidden, err := tx.SuiteVersions(repository)
	if err != nil || len(hidden) == 0 {
		return admission.Resolution{}, err
	}
	return admission.Resolution{State: admission.NotFound}, nil // in the words for a platform that says no more
}
