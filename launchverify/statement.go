package launchverify

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
)

// Witness says who tells of a run.
type Witness struct {
	Run   string         // runrecord.Predicate.Run
	Agent string         // the agent's version
	Node  runrecord.Node // without its key, which runrecord.Sign fills in
	// Keys is the folder of that key. What is told of a job that runs as root, and had this folder before it, is
	// self-asserted.
	Keys string
}

// StartedStatement is what a node says of a run whose command was executed: of the record that Options.Started is given.
func StartedStatement(r Record, w Witness) runrecord.Statement {
	p := predicate(r, w)
	p.State, p.StartedAt = runrecord.StateStarted, instant(r.StartedAt)
	return runrecord.New(p)
}

// EndedStatement is what a node says of a run that is over, of what Run returned: that it ended, or that nothing was started.
// code is the agent's exit code, now the present. There is nothing to say of a launch that only checked and found nothing
// wrong, nor of one whose options could not be followed, nor of one that no receipt held for: it is a run of no registry's job, so
// none would take it.
func EndedStatement(r Record, err error, code int, now time.Time, w Witness) (s runrecord.Statement, ok bool) {
	if _, usage := errors.AsType[*UsageError](err); usage || r.Job == "" || err == nil && !r.Started {
		return s, false
	}
	p := predicate(r, w)
	p.ExitCode = &code
	if r.Decision == nil || r.Decision.Allowed {
		if err != nil {
			p.Problem = plain(err.Error(), runrecord.MaxText)
		}
	}
	if !r.Started {
		p.State, p.EndedAt = runrecord.StateRefused, instant(now)
		return runrecord.New(p), true
	}
	end := r.EndedAt
	if end.IsZero() { // the stage ended without a word
		end = now
	}
	// The difference is measured by the clock that nobody sets.
	p.State, p.StartedAt = runrecord.StateEnded, instant(r.StartedAt)
	p.EndedAt = instant(p.StartedAt.Add(max(0, end.Sub(r.StartedAt))))
	p.Signal, p.Killed, p.Changed = r.Signal, r.Killed, r.Changed
	p.Training = r.Training
	p.Training.Unopened = plain(r.Training.Unopened, runrecord.MaxText)
	return runrecord.New(p), true
}

// instant is a time as statements hold it.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// predicate is what a record says whatever became of the run.
func predicate(r Record, w Witness) runrecord.Predicate {
	p := runrecord.Predicate{
		Run: w.Run, Agent: w.Agent, Node: w.Node, Dialect: r.Dialect, SpecBytes: r.SpecBytes, CoreVersion: plain(r.CoreVersion, runrecord.MaxName),
		Protection: runrecord.Protection{Mode: string(r.Mode), PIDNamespace: r.PIDNamespace, Tracking: string(r.Tracking), Unavailable: map[string]string{}},
		Decision:   findings(r.Decision), DenyList: r.DenyList, RemovedEnv: names(r.RemovedEnv), SetEnv: names(r.SetEnv),
		User: runrecord.User{UID: r.User.UID, GID: r.User.GID},
	}
	if r.User.UID == 0 && r.Started && !slices.Contains(r.Hidden, w.Keys) {
		p.Node.SelfAsserted = true
	}
	p.Node.SelfAsserted = p.Node.SelfAsserted || ownedRoot() != "" // a key that such a root alone may read is that user's too
	p.Command, p.CommandCut = commandLine(r.Command)
	if r.Job != "" { // the receipt holds
		p.Job, p.Registry, p.Receipt, p.KeysFrom = r.Job, r.Audience, r.Receipt, r.KeysFrom
		p.Plugins, p.JobPackage = r.Plugins, r.Package
	}
	for _, pin := range r.Recipes {
		if !pin.Content.IsZero() {
			p.Recipes = append(p.Recipes, receipt.Pin{
				ID: plain(pin.ID, runrecord.MaxName), Version: plain(pin.Version, runrecord.MaxName), Kind: plain(pin.Kind, runrecord.MaxName),
				Content: pin.Content, Tree: pin.Tree, Manifest: pin.Manifest, RuntimeSupplied: pin.RuntimeSupplied,
			})
		}
	}
	for mode, why := range r.Unavailable {
		p.Protection.Unavailable[string(mode)] = plain(why, runrecord.MaxText)
	}
	return p
}

// findings is a gate's decision, bounded.
func findings(d *rule.Decision) *runrecord.Decision {
	if d == nil {
		return nil
	}
	short := &runrecord.Decision{Allowed: d.Allowed, Rules: d.Rules}
	for _, list := range []struct {
		from []rule.Violation
		into *[]runrecord.Finding
	}{{d.Violations, &short.Violations}, {d.Warnings, &short.Warnings}} {
		for i, v := range list.from {
			if i == runrecord.MaxFindings {
				short.Omitted += len(list.from) - i
				break
			}
			message := v.Message
			v.Message = ""
			where := strings.TrimSuffix(v.String(), " ["+string(v.Rule)+"]")
			*list.into = append(*list.into, runrecord.Finding{
				Rule: v.Rule, Where: plain(strings.TrimSuffix(where, ": "), runrecord.MaxText), Message: plain(message, runrecord.MaxText),
			})
		}
	}
	return short
}

// commandLine bounds a command, and makes text of it. cut says that something was lost.
func commandLine(command []string) (bounded []string, cut bool) {
	room := runrecord.MaxCommand
	for i, arg := range command {
		text := plain(arg, min(runrecord.MaxText, room))
		cut = cut || text != arg
		if i == runrecord.MaxArguments || room < runrecord.MaxText && text != arg {
			return bounded, true
		}
		bounded = append(bounded, text)
		room -= len(text)
	}
	return bounded, cut
}

// names are the names of variables, never their values.
func names(variables []string) []string {
	var list []string
	for _, v := range variables {
		if len(list) == runrecord.MaxVariables {
			break
		}
		name, _, _ := strings.Cut(v, "=")
		list = append(list, plain(name, runrecord.MaxName))
	}
	return list
}

// plain is a text of at most limit bytes that strict JSON can hold, without control characters.
func plain(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	end := max(0, limit-len(mark))
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	if limit < len(mark) {
		return ""
	}
	return s[:end] + mark
}
