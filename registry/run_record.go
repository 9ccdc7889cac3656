package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// What is kept of one job: a run for each machine and each try, where a node vouches for it. What people say of their own jobs
// has smaller bounds, since nobody vouches for that.
const (
	maxRunsOfJob     = 10_000
	maxAssertedRuns  = 1_000
	maxAssertedBytes = 256 << 10 // of an envelope
	maxUnpinned      = 16        // recipe packs of the job directory in one statement
)

// signedRun is a statement that came in, with who vouches for it.
type signedRun struct {
	*runrecord.Statement
	envelope []byte
	key      string // the id of the node's key that signed it; "" when none of the sender's did
	node     string // a node's name; what the sender calls the machine where the sender is none
}

// RecordRun keeps a statement about a run, verbatim. The job must be one that this registry admitted, and what the statement
// names what its receipt pins. A node records the runs of any job, everybody else those of their own. The statement of a node
// that one of its keys in use signed is attested, unless it calls itself self-asserted; any other is kept as self-asserted.
// The same run and state again changes nothing, and of two states the later one counts. It also says how far
// the job has come (jobOfRun).
// Errors: Denied, Invalid with what is not as the receipt says, NotFound, Conflict.
func (s *Service) RecordRun(ctx context.Context, p auth.Principal, envelope []byte) (Run, error) {
	run, err := s.recordRun(ctx, p, envelope)
	s.toldRun(run.State, err)
	if err != nil && !p.Anonymous() && CodeOf(err) != Internal && CodeOf(err) != Unavailable {
		s.auditRefusal(ctx, p, "run.record", run.ID, err)
	}
	return run, err
}

func (s *Service) recordRun(ctx context.Context, p auth.Principal, envelope []byte) (Run, error) {
	if err := s.authorize(ctx, p, auth.WriteRuns, "", "records of runs"); err != nil {
		return Run{}, err
	}
	in, err := s.readRun(ctx, p, envelope)
	if err != nil {
		return Run{}, err
	}
	var run Run
	err = s.meta.Update(ctx, func(tx Tx) error {
		run = Run{ID: in.Predicate.Run}
		job, err := tx.Job(in.Predicate.Job)
		if err == nil && p.Role != auth.Node && job.Account != p.Account {
			err = ErrNotFound
		}
		if err != nil {
			return notFound(err, "job %.100q does not exist, or is not yours", in.Predicate.Job)
		}
		if err := s.checkRun(job, in.Predicate); err != nil {
			return err
		}
		made, changed, err := s.keepRun(tx, p, job, in)
		if run = made; err != nil || !changed {
			return err
		}
		if err := s.jobOfRun(tx, p, job, run, in.key != ""); err != nil {
			return err
		}
		return s.audit(tx, p, "run.record", run.ID, fmt.Sprintf("%s, job %s, node %s, attested %t", in.Predicate.State, job.ID, run.Node, run.Attested))
	})
	return run, err
}

// readRun reads a statement and finds out who vouches for it. Errors: Invalid; Denied when it names a key of the node that did
// not sign it, or another node; TooLarge.
func (s *Service) readRun(ctx context.Context, p auth.Principal, envelope []byte) (signedRun, error) {
	in, err := s.whoSigned(ctx, p, envelope)
	if err == nil && in.key == "" && len(envelope) > maxAssertedBytes {
		err = Errorf(TooLarge, "run record: %d bytes, at most %d are kept of one that no node's key signed", len(envelope), maxAssertedBytes)
	}
	return in, err
}

// whoSigned finds the key of the calling node that signed a statement.
func (s *Service) whoSigned(ctx context.Context, p auth.Principal, envelope []byte) (signedRun, error) {
	st, err := runrecord.Read(envelope)
	if err != nil {
		return signedRun{}, Errorf(Invalid, "run record: %w", err)
	}
	in := signedRun{Statement: st, envelope: envelope, node: st.Predicate.Node.Name}
	if got := st.Predicate.Registry; got != s.set.RegistryID {
		return in, Errorf(Invalid, "registry: the record is of a job of registry %.100q, this one is %s", got, s.set.RegistryID)
	}
	if p.Role != auth.Node {
		return in, nil
	}
	claimed := in.node
	in.node = strings.TrimPrefix(p.Account, nodePrefix)
	var keys []NodeKey
	err = s.meta.View(ctx, func(tx Tx) (err error) {
		keys, err = keysInUse(tx, in.node)
		return err
	})
	if err != nil || !slices.ContainsFunc(keys, func(k NodeKey) bool { return k.ID == st.Predicate.Node.Key }) {
		return in, err
	}
	set, err := receipt.NewTrustSet("", publicKeys(keys)...)
	if err != nil {
		return in, err
	}
	if _, in.key, err = runrecord.Open(envelope, set); err != nil {
		return in, Errorf(Denied, "run record: it names a key of node %s, %w", in.node, err)
	}
	if claimed != in.node {
		return in, Errorf(Denied, "node.name: the record is of node %.100q, its key is one of node %s", claimed, in.node)
	}
	return in, nil
}

// checkRun holds a statement against the job that it names. Errors: Invalid, which names every difference.
func (s *Service) checkRun(job Job, p runrecord.Predicate) error {
	var faults []string
	differ := func(field string, got, want any) {
		faults = append(faults, fmt.Sprintf("%s: the record says %v, the receipt of job %s says %v", field, got, job.ID, want))
	}
	// That a node refused another spec than the admitted one is what it should tell.
	if p.SpecBytes != job.SpecDigest && p.State != runrecord.StateRefused {
		differ("specBytes", p.SpecBytes, job.SpecDigest)
	}
	if want := digest.FromBytes(job.Receipt); p.Receipt != want {
		differ("receipt", p.Receipt, want)
	}
	pins, err := pinsOf(job)
	if err != nil {
		return err
	}
	used := packsOf(p)
	if len(used) > 0 || p.State != runrecord.StateRefused {
		faults = append(faults, packDifferences(job.ID, used, pins)...)
	}
	if n := len(p.Plugins) + len(p.Recipes) - len(used); n > maxUnpinned {
		faults = append(faults, fmt.Sprintf("recipes: %d are pinned by no receipt, at most %d", n, maxUnpinned))
	}
	if len(faults) > 0 {
		return Errorf(Invalid, "the record is not of this job as it was admitted\n- %s", strings.Join(faults, "\n- "))
	}
	return nil
}

// packsOf are the packs of a statement that a receipt can pin. What a job directory brought along has no manifest here.
func packsOf(p runrecord.Predicate) []receipt.Pin {
	used := slices.Clone(p.Plugins)
	for _, pin := range p.Recipes {
		if !pin.Manifest.IsZero() {
			used = append(used, pin)
		}
	}
	return used
}

// maxDifferences bounds what a refusal names.
const maxDifferences = 20

// packDifferences says in which packs a record differs from the receipt.
func packDifferences(job string, used, pins []receipt.Pin) (faults []string) {
	of := func(list []receipt.Pin, id string) (receipt.Pin, bool) {
		i := slices.IndexFunc(list, func(p receipt.Pin) bool { return p.ID == id })
		if i < 0 {
			return receipt.Pin{}, false
		}
		return list[i], true
	}
	for _, got := range used {
		want, ok := of(pins, got.ID)
		switch {
		case !ok:
			faults = append(faults, fmt.Sprintf("%s: the receipt of job %s does not pin it", Shown(got.String()), job))
		case got != want:
			faults = append(faults, fmt.Sprintf("%s: the record says %s, the receipt of job %s pins %s", got.ID, Shown(pinText(got)), job, pinText(want)))
		}
	}
	for _, want := range pins {
		if _, ok := of(used, want.ID); !ok {
			faults = append(faults, fmt.Sprintf("%s: the receipt of job %s pins it, the record does not name it", want, job))
		}
	}
	if len(faults) == 0 && len(used) != len(pins) {
		faults = append(faults, fmt.Sprintf("the record names %d packs, the receipt of job %s pins %d", len(used), job, len(pins)))
	}
	if n := len(faults); n > maxDifferences {
		faults = append(faults[:maxDifferences], fmt.Sprintf("and %d more", n-maxDifferences))
	}
	return faults
}

func pinText(p receipt.Pin) string {
	return fmt.Sprintf("%s (%s) content %s, tree %s, manifest %s", p.Version, p.Kind, p.Content, p.Tree, p.Manifest)
}

// keepRun writes what is new in a statement, and reports whether anything was.
func (s *Service) keepRun(tx Tx, p auth.Principal, job Job, in signedRun) (run Run, changed bool, err error) {
	pred := in.Predicate
	state := RunState(pred.State)
	run, err = tx.Run(pred.Run)
	if errors.Is(err, ErrNotFound) {
		count, err := tx.JobRuns(job.ID)
		if err != nil {
			return run, false, err
		}
		if count.All >= maxRunsOfJob || in.key == "" && count.All >= maxAssertedRuns {
			return run, false, Errorf(Conflict, "job %s has %d runs, the most that is kept", job.ID, count.All)
		}
		run = Run{
			ID: pred.Run, Job: job.ID, Account: job.Account, Node: in.node, Sender: p.Account, ExitCode: NoExitCode,
			Packs: slices.Concat(pred.Plugins, pred.Recipes), ReceivedAt: s.now(),
		}
		s.tell(&run, state, in)
		return run, true, tx.InsertRun(run)
	}
	switch {
	case err != nil:
		return run, false, err
	case run.Job != job.ID || run.Sender != p.Account:
		return run, false, Errorf(Conflict, "run %s is another one: of another job, or told by somebody else", run.ID)
	case state.Final() && !run.State.Final():
		s.tell(&run, state, in)
	case !state.Final() && run.Started == nil: // it came late
		run.Started, run.ChangedAt = in.envelope, s.now()
	default:
		return run, false, nil // said before
	}
	return run, true, tx.UpdateRun(run)
}

// tell notes what a statement says.
func (s *Service) tell(run *Run, state RunState, in signedRun) {
	pred := in.Predicate
	run.State, run.Mode, run.StartedAt, run.EndedAt, run.ChangedAt = state, pred.Protection.Mode, pred.StartedAt, pred.EndedAt, s.now()
	run.Key, run.Attested = in.key, in.key != "" && !pred.Node.SelfAsserted
	if state.Final() {
		run.Final = in.envelope
		if pred.ExitCode != nil {
			run.ExitCode = *pred.ExitCode
		}
		return
	}
	run.Started = in.envelope
}

// jobOfRun lets a run say how far its job has come: started, it runs; when the last run of it that has started is over, it has
// ended, well if all of them did. A refused launch says nothing: the platform may try elsewhere. That it runs holds its GPUs, which
// the sender's own word is enough for; that it ended frees them for another job, so there the word of a key that no user has is
// asked for.
func (s *Service) jobOfRun(tx Tx, p auth.Principal, job Job, run Run, keyed bool) error {
	switch {
	case job.Status.Ended(), run.State == RunRefused:
		return nil
	case run.State == RunEnded && !run.Attested, !keyed && job.Account != p.Account:
		return nil
	}
	state := JobRunning
	if run.State == RunEnded {
		runs, err := tx.JobRuns(job.ID)
		switch {
		case err != nil:
			return err
		case runs.Open > 0:
		case runs.Failed > 0:
			state = JobFailed
		default:
			state = JobSucceeded
		}
	}
	_, err := s.setJobState(tx, p, job, state)
	return err
}
