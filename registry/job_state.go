package registry

import (
	"context"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// reported are the states that who runs a job may report, by the words for them.
var reported = map[string]JobStatus{
	"queued": JobQueued, "running": JobRunning, "succeeded": JobSucceeded, "failed": JobFailed, "stopped": JobStopped, "cancelled": JobStopped,
}

// ReportJob notes how far a job has come, as who runs it says: queued, running, succeeded, failed, or cancelled. A state that
// is not final renews the job's hold on its GPUs for Settings.LeaseTTL, whether or not it had lapsed; a final one ends it, and
// may be said again but not changed. Administrators may, and robots of theirs whose scopes have the verb report for the job.
// Errors: Denied, NotFound, Invalid, Conflict.
func (s *Service) ReportJob(ctx context.Context, p auth.Principal, id, word string) (Job, error) {
	if err := s.authorize(ctx, p, auth.ReportJobs, "", "job "+id); err != nil {
		return Job{}, err
	}
	state, ok := reported[word]
	if !ok {
		return Job{}, Errorf(Invalid, "state: %.40q is none of queued, running, succeeded, failed, cancelled", word)
	}
	var job Job
	err := s.meta.Update(ctx, func(tx Tx) (err error) {
		job, err = tx.Job(id)
		if err == nil && !p.InScope(auth.Report, auth.JobScope(job.Account, job.ID)) {
			err = ErrNotFound
		}
		if err != nil {
			return notFound(err, "job %.100q does not exist, or the robot's scopes don't have it", id)
		}
		if before := job.Status; before.Ended() {
			if state == before {
				return nil
			}
			return Errorf(Conflict, "job %s has ended: it is %s", id, before)
		}
		job, err = s.setJobState(tx, p, job, state)
		return err
	})
	return job, err
}

// setJobState gives a job that has not ended a state, and renews or ends its hold on its GPUs: whoever says so, ReportJob or the
// record of a run (run_record.go).
func (s *Service) setJobState(tx Tx, p auth.Principal, job Job, state JobStatus) (Job, error) {
	before, now := job.Status, s.now()
	job.Status, job.LeaseUntil = state, now.Add(s.set.LeaseTTL)
	if state.Ended() {
		job.LeaseUntil = now
	}
	if err := tx.SetJobStatus(job.ID, state, job.LeaseUntil); err != nil || state == before {
		return job, err // a sign of life is nothing to audit
	}
	return job, s.audit(tx, p, "job.state", job.ID, string(state))
}

// Lease is until when a job's GPUs count; the zero time when they do no more.
func (s *Service) Lease(job Job) time.Time {
	if !job.LeaseUntil.After(s.now()) {
		return time.Time{}
	}
	return job.LeaseUntil
}
