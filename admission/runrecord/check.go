package runrecord

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

// Bounds of what a statement holds: bytes of a text, members of a list.
const (
	MaxText      = 1024      // a message, an argument, a reason
	MaxName      = 256       // a name of a node, a job, a registry, a variable
	MaxCommand   = 32 * 1024 // all arguments together
	MaxArguments = 512
	MaxVariables = 512
	MaxFindings  = 100 // violations; warnings
	maxPins      = 10_000
)

// Check says what makes a statement unfit to be signed or kept: a part that is missing, malformed or beyond a bound, a
// state that the other fields contradict, subjects that are not those of the predicate.
func (s *Statement) Check() error {
	if s.Type != StatementType || s.PredicateType != PredicateType {
		return fmt.Errorf("expected a %s with a predicate %s, found %.100q with %.100q", StatementType, PredicateType, s.Type, s.PredicateType)
	}
	p := &s.Predicate
	for _, err := range []error{p.checkIdentity(), p.checkPins(), p.checkState(), p.checkDecision(), p.checkDenyList(), p.checkLists(), p.checkTraining()} {
		if err != nil {
			return fmt.Errorf("predicate.%w", err)
		}
	}
	same := func(a, b Subject) bool { return a.Name == b.Name && maps.Equal(a.Digest, b.Digest) }
	if !slices.EqualFunc(s.Subject, Subjects(*p), same) {
		return errors.New("subject: these are not the bytes that the predicate names")
	}
	return nil
}

var errEmpty = errors.New("it must not be empty")

var (
	runForm  = pattern.New(`^[0-9a-f]{32}$`)
	keyForm  = pattern.New(`^sha256:[0-9a-f]{64}$`)
	modeForm = pattern.New(`^[a-z]+(-[a-z]+)*$`)
)

func (p *Predicate) checkIdentity() error {
	switch {
	case !runForm.MatchString(p.Run):
		return fmt.Errorf("run: expected 32 hexadecimal digits, found %.100q", p.Run)
	case p.Node.Name == "":
		return fmt.Errorf("node.name: %w", errEmpty)
	case !keyForm.MatchString(p.Node.Key):
		return fmt.Errorf("node.key: %.100q is no key id", p.Node.Key)
	case p.Agent == "":
		return fmt.Errorf("agent: %w", errEmpty)
	case p.Dialect != "" && p.Dialect != dialect.Forge && p.Dialect != dialect.TunePlane:
		return fmt.Errorf("dialect: unknown dialect %.40q", p.Dialect)
	case (p.Receipt.IsZero()) != (p.Job == "") || p.Receipt.IsZero() != (p.Registry == ""):
		return errors.New("receipt: receipt, job and registry go together")
	case !p.Receipt.IsZero() && p.SpecBytes.IsZero():
		return errors.New("specBytes: a receipt that holds is of a spec")
	case p.KeysFrom != "" && (p.Receipt.IsZero() || p.KeysFrom != KeysFromFile && p.KeysFrom != KeysFromRegistry):
		return fmt.Errorf("keysFrom: found %.40q, expected %s or %s, with a receipt", p.KeysFrom, KeysFromFile, KeysFromRegistry)
	case p.User.UID < 0 || p.User.GID < 0:
		return fmt.Errorf("user: found uid %d and gid %d", p.User.UID, p.User.GID)
	case !p.JobPackage.IsZero() && p.Receipt.IsZero():
		return errors.New("jobPackage: without a receipt nothing is pinned")
	case p.Protection.Mode != "" && !modeForm.MatchString(p.Protection.Mode):
		return fmt.Errorf("protection.mode: %.40q is no mode", p.Protection.Mode)
	case p.Protection.Tracking != "" && !modeForm.MatchString(p.Protection.Tracking):
		return fmt.Errorf("protection.tracking: %.40q is none", p.Protection.Tracking)
	}
	for field, text := range map[string]string{
		"node.name": p.Node.Name, "agent": p.Agent, "registry": p.Registry, "job": p.Job, "coreVersion": p.CoreVersion, "protection.mode": p.Protection.Mode, "protection.tracking": p.Protection.Tracking,
	} {
		if err := checkText(text, MaxName); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	for field, d := range map[string]digest.Digest{"specBytes": p.SpecBytes, "receipt": p.Receipt, "jobPackage": p.JobPackage} {
		if !d.IsZero() && d.Algorithm() != digest.SHA256 {
			return fmt.Errorf("%s: expected a sha256 digest, found %s", field, d)
		}
	}
	return nil
}

// checkText bounds a text. What JSON can't hold never gets this far; what strict JSON refuses would not be read again.
func checkText(s string, max int) error {
	switch {
	case len(s) > max:
		return fmt.Errorf("%d bytes, at most %d allowed", len(s), max)
	case !utf8.ValidString(s):
		return errors.New("it is no UTF-8")
	}
	for _, r := range s {
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' {
			return fmt.Errorf("it holds the control character %q", r)
		}
	}
	return nil
}

func (p *Predicate) checkPins() error {
	for field, pins := range map[string][]receipt.Pin{"plugins": p.Plugins, "recipes": p.Recipes} {
		if pins == nil || len(pins) > maxPins {
			return fmt.Errorf("%s: expected a list of at most %d packs", field, maxPins)
		}
		for i, pin := range pins {
			switch {
			case pin.ID == "" || checkText(pin.ID, 2*MaxName) != nil || checkText(pin.Version, MaxName) != nil || checkText(pin.Kind, MaxName) != nil:
				return fmt.Errorf("%s[%d]: id, version or kind is empty or too long", field, i)
			case pin.Content.Algorithm() != digest.SHA256:
				return fmt.Errorf("%s[%d]: content must be a sha256 digest, found %.100q", field, i, pin.Content)
			case field == "plugins" && pin.RuntimeSupplied != pin.Manifest.IsZero():
				return fmt.Errorf("%s[%d]: a plugin has a manifest digest, or comes with the client", field, i)
			}
		}
	}
	if p.Receipt.IsZero() && len(p.Plugins) > 0 {
		return errors.New("plugins: without a receipt nothing is pinned")
	}
	return nil
}

// checkState holds the rest against the state.
func (p *Predicate) checkState() error {
	ran := !p.StartedAt.IsZero()
	over := !p.EndedAt.IsZero() && p.ExitCode != nil
	none := p.EndedAt.IsZero() && p.ExitCode == nil && p.Signal == 0 && p.Killed == 0 && !p.Changed && !p.Training.Seen
	switch p.State {
	case StateStarted:
		if !ran || !none || p.Problem != "" {
			return errors.New("state: a run that has only started has a start and no end")
		}
	case StateEnded:
		if !ran || !over || p.EndedAt.Before(p.StartedAt) {
			return errors.New("state: a run that has ended has a start, a later end and an exit code")
		}
	case StateRefused:
		denied := p.Decision != nil && !p.Decision.Allowed
		if ran || !over || *p.ExitCode == 0 || p.Signal != 0 || p.Killed != 0 || p.Changed || p.Training.Seen || !(denied || p.Problem != "") {
			return errors.New("state: a refused run has an end, an exit code other than 0 and a reason, and no start")
		}
		return p.checkTimes()
	default:
		return fmt.Errorf("state: unknown state %.40q", p.State)
	}
	switch {
	case p.Decision == nil || !p.Decision.Allowed:
		return errors.New("decision: what was started had been allowed")
	case p.Protection.Mode == "" || p.Receipt.IsZero() || len(p.Command) == 0:
		return errors.New("state: what was started had a protection, a receipt and a command")
	}
	return p.checkTimes()
}

func (p *Predicate) checkTimes() error {
	for _, at := range []time.Time{p.StartedAt, p.EndedAt} {
		if _, offset := at.Zone(); offset != 0 || at.Year() > 9999 {
			return errors.New("startedAt, endedAt: expected times in UTC")
		}
	}
	if c := p.ExitCode; c != nil && (*c < 0 || *c > 255) {
		return fmt.Errorf("exitCode: expected 0 to 255, found %d", *c)
	}
	if p.Signal < 0 || p.Signal > 128 || p.Killed < 0 {
		return fmt.Errorf("signal, killed: found %d and %d", p.Signal, p.Killed)
	}
	if err := checkText(p.Problem, MaxText); err != nil {
		return fmt.Errorf("problem: %w", err)
	}
	return nil
}

func (p *Predicate) checkDecision() error {
	d := p.Decision
	if d == nil {
		return nil
	}
	if d.Allowed == (len(d.Violations) > 0) || d.Omitted < 0 || d.Rules == "" || checkText(d.Rules, MaxName) != nil {
		return errors.New("decision: it contradicts itself, or names no rules")
	}
	for field, list := range map[string][]Finding{"violations": d.Violations, "warnings": d.Warnings} {
		if list == nil || len(list) > MaxFindings {
			return fmt.Errorf("decision.%s: expected a list of at most %d", field, MaxFindings)
		}
		for i, f := range list {
			if f.Rule == "" || checkText(string(f.Rule), MaxName) != nil || checkText(f.Where, MaxText) != nil || checkText(f.Message, MaxText) != nil {
				return fmt.Errorf("decision.%s[%d]: a part is empty or too long", field, i)
			}
		}
	}
	return nil
}

func (p *Predicate) checkDenyList() error {
	l := p.DenyList
	switch {
	case l == nil:
		return nil
	case checkText(l.Problem, MaxText) != nil:
		return errors.New("denyList.problem: it is too long")
	case l.Number == 0 && (l.Problem == "" || l.Source != ""):
		return errors.New("denyList: without a list there is a problem, and no source")
	case l.Number > 0 && l.Source != SourceRegistry && l.Source != SourceCache:
		return fmt.Errorf("denyList.source: unknown source %.40q", l.Source)
	case l.Number > 0 && !l.Expires.After(l.IssuedAt):
		return errors.New("denyList: it must expire after it was issued")
	}
	return nil
}

func (p *Predicate) checkLists() error {
	for _, list := range []struct {
		field      string
		texts      []string
		items, max int
	}{{"command", p.Command, MaxArguments, MaxText}, {"removedEnv", p.RemovedEnv, MaxVariables, MaxName}, {"setEnv", p.SetEnv, MaxVariables, MaxName}} {
		if list.texts == nil || len(list.texts) > list.items {
			return fmt.Errorf("%s: expected a list of at most %d", list.field, list.items)
		}
		sum := 0
		for i, text := range list.texts {
			if err := checkText(text, list.max); err != nil {
				return fmt.Errorf("%s[%d]: %w", list.field, i, err)
			}
			if sum += len(text); list.field == "command" && sum > MaxCommand {
				return fmt.Errorf("command: more than %d bytes", MaxCommand)
			}
			if list.field != "command" && slices.Contains([]byte(text), '=') {
				return fmt.Errorf("%s[%d]: names of variables only, never values", list.field, i)
			}
		}
	}
	for mode, why := range p.Protection.Unavailable {
		if !modeForm.MatchString(mode) || len(p.Protection.Unavailable) > 16 || checkText(why, MaxText) != nil || checkText(mode, MaxName) != nil {
			return errors.New("protection.unavailable: expected modes and why they are not to be had")
		}
	}
	return nil
}

func (p *Predicate) checkTraining() error {
	if t := p.Training; t.Seen == (t.How == "") || t.Seen && (t.Unknown || t.Unopened != "") || checkText(t.How, MaxName) != nil || checkText(t.Unopened, MaxText) != nil {
		return errors.New("training: it says how a process was seen when one was seen, and only then")
	}
	return nil
}
