package launchverify

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodecache"
)

// Exit codes of the agent itself (design.md 7). Every other code is the command's.
const (
	exitError       = 1
	exitUsage       = 2
	exitRefused     = 3
	exitNotFound    = 5
	exitUnverified  = 7
	exitInterrupted = 130
	exitNoExec      = 126 // the command can't be executed, as in a shell
	exitNoCommand   = 127 // the command does not exist, as in a shell
)

// ErrNotFound is wrapped by a Fetcher's error for a version or manifest that the registry does not have.
var ErrNotFound = nodecache.ErrNotFound

// errInterrupted says that a signal ended the launch before the command was started.
var errInterrupted = errors.New("interrupted before the command was started")

// A UsageError says that the options can't be followed.
type UsageError struct{ Message string }

func (e *UsageError) Error() string { return e.Message }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// commandError says why the command was not executed. Everything before it had passed.
type commandError struct {
	err  error
	code int
}

func (e *commandError) Error() string { return "command: " + e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

// lineError is an error on one line, whatever names from outside its text holds.
type lineError struct{ err error }

func (e *lineError) Error() string { return oneLine(e.err.Error()) }
func (e *lineError) Unwrap() error { return e.err }

// oneLine escapes what would break a line or is no text.
func oneLine(s string) string {
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\n", "; "), "\uFFFD")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// refusal is the error of one violation that stands alone: what made further checks pointless.
func refusal(id rule.ID, subject rule.Subject, format string, args ...any) error {
	var report rule.Report
	report.Add(rule.Violation{Rule: id, Message: oneLine(fmt.Sprintf(format, args...))})
	return report.Decide(rule.Launch, subject, nil).Err()
}

// ExitCode is the code that the agent's process ends with: the command's own when it ran to its end, 128+s when
// signal s killed it, otherwise what design.md 7 lays down.
func ExitCode(record Record, err error) int {
	if err == nil {
		return record.ExitCode
	}
	if denied, ok := errors.AsType[*rule.Denied](err); ok {
		return exitOfDecision(denied.Decision)
	}
	if command, ok := errors.AsType[*commandError](err); ok {
		return command.code
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		return exitUsage
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return exitNotFound
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitError
}

// A breach of these families means that bytes or a signature are not what they claim to be.
var unverified = []string{"launch.receipt.", "launch.digest.", "launch.package.digest", "launch.denylist."}

func exitOfDecision(d rule.Decision) int {
	for _, v := range d.Violations {
		for _, family := range unverified {
			if strings.HasPrefix(string(v.Rule), family) {
				return exitUnverified
			}
		}
	}
	return exitRefused
}
