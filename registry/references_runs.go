package registry

import (
	"errors"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// ownRun is the form of the run ids that this registry gives out. No other run is known here, so a run of another form is
// the platform's to know.
var ownRun = pattern.New(`^run-[0-9]{8}-[0-9]{6}-[0-9a-f]{8}$`)

// heldRun looks for a run of ours by its id.
func (s *Service) heldRun(tx Tx, p auth.Principal, ref jobspec.Reference) (admission.Resolution, error) {
	return s.runResolution(tx, p, ref.Text, "it")
}

// heldArtifact looks for the run that an artifact, run/<id>/<kind>[@…], comes from.
func (s *Service) heldArtifact(tx Tx, p auth.Principal, ref jobspec.Reference) (admission.Resolution, error) {
	id, _, _ := strings.Cut(strings.TrimPrefix(ref.Text, "run/"), "/")
	return s.runResolution(tx, p, id, "its run")
}

// runResolution answers for a run of ours. Whether it left the artifact behind only the platform knows: where one is asked,
// it has the last word on a run that is there. what names the run in a refusal.
func (s *Service) runResolution(tx Tx, p auth.Principal, id, what string) (admission.Resolution, error) {
	if !ownRun.MatchString(id) {
		return admission.Resolution{}, nil
	}
	job, err := tx.Job(id)
	if err == nil && job.Account != p.Account && !p.Can(auth.ReadAllJobs) {
		err = ErrNotFound
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return admission.Resolution{State: admission.NotFound, Detail: what + " is not there, or not for this account"}, nil
	case err != nil || s.resolver != nil:
		return admission.Resolution{}, err
	}
	return admission.Resolution{State: admission.Resolved}, nil
}
