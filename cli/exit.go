package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/lock"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/cli/project"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Exit codes (design.md 7). They are part of the public contract and stand in every command's help.
const (
	exitOK           = 0
	exitError        = 1
	exitUsage        = 2
	exitRefused      = 3
	exitForbidden    = 4
	exitNotFound     = 5
	exitConflict     = 6
	exitVerification = 7
	exitInterrupted  = 130
)

// exitHelp ends the help of every command.
const exitHelp = `
Exit status:
  0 ok, 1 error, 2 usage, 3 refused by a gate, 4 not signed in or forbidden, 5 not found,
  6 conflict (the version exists), 7 verification failed, 130 interrupted`

// usageError is a mistake in the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usagef makes a usageError.
func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exitStatus ends the process with a code and prints nothing: what there was to say has been said.
type exitStatus struct{ code int }

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// exitCode turns an error into an exit code: what only a command line knows here, everything else by the table of codes.
// The launch agent, which must not depend on the registry, has launchverify.ExitCode.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if e, ok := errors.AsType[exitStatus](err); ok {
		return e.code
	}
	if f, ok := errors.AsType[launchFailure](err); ok {
		return f.code
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	if _, ok := errors.AsType[*digest.MismatchError](err); ok {
		return exitVerification
	}
	return registry.CodeOf(err).Meaning().Exit
}

// codeOf is the code that programs are shown.
func codeOf(err error) registry.Code {
	if code := registry.CodeOf(err); code != registry.Internal {
		return code
	}
	if _, ok := errors.AsType[*project.Fault](err); ok {
		return registry.Invalid
	}
	if _, ok := errors.AsType[*lock.Refused](err); ok {
		return registry.Invalid
	}
	switch exitCode(err) {
	case exitUsage:
		return registry.Invalid
	case exitVerification:
		return registry.DigestInvalid
	}
	return registry.CodeOf(err)
}

// report prints an error once: to people as text with a hint a line, to programs as JSON on stdout when they asked.
func report(env *Env, asJSON bool, err error) {
	if _, silent := errors.AsType[exitStatus](err); err == nil || silent {
		return
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(env.Err, "sf: interrupted")
		return
	}
	decision := registry.DecisionOf(err)
	if asJSON {
		writeErrorJSON(env.Out, err, decision)
		return
	}
	if f, ok := errors.AsType[launchFailure](err); ok {
		fmt.Fprintln(env.Err, env.paint(red, "sf launch:"), f)
		return
	}
	if decision != nil {
		printDecision(env, *decision)
		return
	}
	fmt.Fprintln(env.Err, env.paint(red, "sf: error:"), printableLines(err.Error()))
	if _, ok := errors.AsType[usageError](err); ok {
		fmt.Fprintln(env.Err, "sf: hint: run the command with --help")
	}
	if registry.CodeOf(err) == registry.Unauthorized {
		fmt.Fprintln(env.Err, "sf: hint: sign in with sf login SERVER --token TOKEN")
	}
}

func writeErrorJSON(w io.Writer, err error, decision *rule.Decision) {
	out := struct {
		Error    string         `json:"error"`
		Code     registry.Code  `json:"code"`
		Decision *rule.Decision `json:"decision,omitempty"`
	}{err.Error(), codeOf(err), decision}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	_ = enc.Encode(out) // stdout is gone: nobody is left to tell
}

// printDecision shows a gate's answer to a person: every violation with its fix, then the warnings.
func printDecision(env *Env, d rule.Decision) {
	if !d.Allowed {
		gate := "sf: refused by the " + printable(string(d.Gate)) + " gate"
		if what := printable(strings.TrimSpace(d.Subject.Name + " " + d.Subject.Version)); what != "" {
			fmt.Fprintf(env.Err, "%s %s\n", env.paint(red, gate+":"), what)
		} else { // its name could not be read
			fmt.Fprintln(env.Err, env.paint(red, gate))
		}
	}
	for _, v := range d.Violations {
		printViolation(env, red, "violation", v)
	}
	for _, v := range d.Warnings {
		word := "warning"
		if v.Audit {
			word = "would refuse (audit mode)"
		}
		printViolation(env, yellow, word, v)
	}
}

func printViolation(env *Env, color, word string, v rule.Violation) {
	fmt.Fprintf(env.Err, "  %s %s\n", env.paint(color, word+":"), printable(v.String()))
	if v.Hint != "" {
		fmt.Fprintf(env.Err, "    hint: %s\n", printable(v.Hint))
	}
}
