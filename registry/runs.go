package registry

import (
	"context"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Who reads the index of runs: whoever may read all jobs, everything; everybody, the runs of their own jobs; the owner of a
// pack, also that there were runs of others which used it: their ids, times, states and modes of protection, and which
// versions of the owner's packs they used. Not whose jobs they were, where they ran, what else they used, nor what they ran.

// What a page of runs holds.
const (
	maxRuns     = 200
	defaultRuns = 50
)

// Runs is a page of the runs that a filter selects and the caller may know of, newest first, and the id by which to ask for the
// page behind it, "" when there is none. Errors: Denied, Invalid.
func (s *Service) Runs(ctx context.Context, p auth.Principal, f RunFilter) (list []Run, next string, err error) {
	if err := s.authorize(ctx, p, auth.ReadOwnJobs, "", "runs"); err != nil {
		return nil, "", err
	}
	repository, err := f.check()
	if err != nil {
		return nil, "", err
	}
	limit := f.Limit
	f.Limit++ // one more says whether there is another page
	err = s.meta.View(ctx, func(tx Tx) (err error) {
		if !p.Can(auth.ReadAllJobs) {
			owned := false
			if repository != "" {
				if owned, err = ownsRepository(tx, p, repository); err != nil {
					return err
				}
			}
			if !owned || f.Job != "" || f.Node != "" || !f.Digest.IsZero() { // of others' runs nobody learns these by asking
				f.Account = p.Account
			}
		}
		list, err = tx.Runs(f)
		for i := range list {
			if err == nil {
				list[i], err = s.visibleRun(tx, p, list[i])
			}
		}
		return err
	})
	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].ID
	}
	return list, next, err
}

// check makes a filter one that a page can be asked for by, and gives the repository of its pack. Errors: Invalid.
func (f *RunFilter) check() (repository string, err error) {
	if f.Limit <= 0 {
		f.Limit = defaultRuns
	}
	f.Limit = min(f.Limit, maxRuns)
	if f.State != "" && !slices.Contains([]RunState{RunStarted, RunEnded, RunRefused}, f.State) {
		return "", Errorf(Invalid, "state: %.40q is none of started, ended, refused", f.State)
	}
	if f.Pack == "" {
		return "", nil
	}
	owner, pack, ok := strings.Cut(f.Pack, "/")
	if repository, err = name.RepositoryName(owner, pack); err != nil || !ok || f.Version == "" {
		return "", Errorf(Invalid, "plugin: %.200q is no OWNER/NAME@VERSION", f.Pack+"@"+f.Version)
	}
	return repository, nil
}

// ownsRepository reports whether a repository is the caller's own.
func ownsRepository(tx Tx, p auth.Principal, repository string) (bool, error) {
	owner, err := ownerOf(tx, repository)
	return err == nil && owner == p.Namespace(), err
}

// visibleRun is a run as the caller may know it.
func (s *Service) visibleRun(tx Tx, p auth.Principal, run Run) (Run, error) {
	if run.Account == p.Account || p.Can(auth.ReadAllJobs) {
		return run, nil
	}
	own := []receipt.Pin{}
	for _, pin := range run.Packs {
		owner, pack, _ := strings.Cut(pin.ID, "/")
		repository, err := name.RepositoryName(owner, pack)
		if err != nil {
			continue // it ships in the client
		}
		owns, err := ownsRepository(tx, p, repository)
		if err != nil {
			return Run{}, err
		}
		if owns {
			own = append(own, pin)
		}
	}
	return Run{
		ID: run.ID, State: run.State, Attested: run.Attested, Mode: run.Mode, ExitCode: run.ExitCode, Packs: own,
		StartedAt: run.StartedAt, EndedAt: run.EndedAt, ReceivedAt: run.ReceivedAt, ChangedAt: run.ChangedAt,
	}, nil
}

// Run is one run with its envelopes, and the keys of its node, retired ones too; of somebody else's job without either and only
// for the owner of a pack that it used. Errors: Denied, NotFound.
func (s *Service) Run(ctx context.Context, p auth.Principal, id string) (run Run, keys []NodeKey, err error) {
	if err := s.authorize(ctx, p, auth.ReadOwnJobs, "", "run "+id); err != nil {
		return Run{}, nil, err
	}
	err = s.meta.View(ctx, func(tx Tx) error {
		whole, err := tx.Run(id)
		if err == nil {
			run, err = s.visibleRun(tx, p, whole)
		}
		if err == nil && run.Account == "" && len(run.Packs) == 0 {
			err = ErrNotFound
		}
		if err != nil || run.Sender != nodePrefix+run.Node {
			return notFound(err, "run %.100q does not exist", id)
		}
		keys, err = tx.NodeKeys(run.Node)
		return err
	})
	if err != nil {
		return Run{}, nil, err
	}
	return run, keys, nil
}
