package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/launchverify"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// denied is the refusal of a gate by one rule.
func denied(gate rule.Gate, id rule.ID) error {
	var r rule.Report
	r.Add(rule.Violation{Rule: id, Message: "found"})
	return r.Decide(gate, rule.Subject{Name: "a/b"}, nil).Err()
}

func TestExitCodes(t *testing.T) {
	decision := rule.Decision{Gate: rule.Submission}
	for _, test := range []struct {
		name string
		err  error
		exit int
		code registry.Code
	}{
		{"nothing", nil, 0, ""},
		{"anything", errors.New("x"), 1, registry.Internal},
		{"a file that is not there", fs.ErrNotExist, 1, registry.Internal},
		{"usage", usagef("x"), 2, registry.Invalid},
		{"gate 1", denied(rule.Publish, "manifest.name"), 3, registry.ManifestInvalid},
		{"gate 1: a clash", denied(rule.Publish, "publish.version.taken"), 6, registry.Conflict},
		{"gate 1: not theirs", denied(rule.Publish, "publish.owner"), 4, registry.Denied},
		{"gate 1: too large", denied(rule.Publish, "archive.limit.files"), 3, registry.TooLarge},
		{"gate 2", denied(rule.Submission, "job.root.object"), 3, registry.AdmissionDenied},
		{"the server's gate", &registry.Error{Code: registry.AdmissionDenied, Detail: decision}, 3, registry.AdmissionDenied},
		{"the server's gate, malformed", &registry.Error{Code: registry.ManifestInvalid, Detail: decision}, 3, registry.ManifestInvalid},
		{"the server's gate, a clash", &registry.Error{Code: registry.VersionImmutable, Detail: decision}, 6, registry.VersionImmutable},
		{"not signed in", registry.Errorf(registry.Unauthorized, "x"), 4, registry.Unauthorized},
		{"forbidden", fmt.Errorf("a/b: %w", registry.Errorf(registry.Denied, "x")), 4, registry.Denied},
		{"not found", registry.Errorf(registry.NotFound, "x"), 5, registry.NotFound},
		{"other bytes", fmt.Errorf("x: %w", &digest.MismatchError{}), 7, registry.DigestInvalid},
		{"interrupted", fmt.Errorf("x: %w", context.Canceled), 130, registry.Internal},
		{"said already", exitStatus{42}, 42, registry.Internal},
		{"launch", launchFailure{errors.New("x"), 126}, 126, registry.Internal},
		{"launch: usage", launchFailure{&launchverify.UsageError{Message: "x"}, 2}, 2, registry.Invalid},
	} {
		if got := exitCode(test.err); got != test.exit {
			t.Errorf("%s: exit %d, want %d", test.name, got, test.exit)
		}
		if test.err != nil && codeOf(test.err) != test.code {
			t.Errorf("%s: code %s, want %s", test.name, codeOf(test.err), test.code)
		}
	}
}

// Every code of the registry has one of the exit codes that the help lists.
func TestEveryCodeHasADocumentedExit(t *testing.T) {
	for _, code := range registry.Codes() {
		exit := exitCode(registry.Errorf(code, "x"))
		if !strings.Contains(exitHelp, fmt.Sprintf("%d ", exit)) {
			t.Errorf("%s exits with %d, which the help does not explain", code, exit)
		}
	}
}

// Programs get one JSON document, people text on stderr; a launch's refusal is one line.
func TestReport(t *testing.T) {
	var out, errOut bytes.Buffer
	env := &Env{Out: &out, Err: &errOut, Vars: map[string]string{}}
	err := denied(rule.Publish, "manifest.name")
	report(env, true, err)
	var doc struct {
		Error    string
		Code     registry.Code
		Decision *rule.Decision
	}
	if jsonErr := json.Unmarshal(out.Bytes(), &doc); jsonErr != nil || doc.Decision == nil || len(doc.Decision.Violations) != 1 || doc.Code != registry.ManifestInvalid {
		t.Errorf("%v: %s", jsonErr, out.String())
	}
	if errOut.Len() > 0 {
		t.Errorf("stderr has %q", errOut.String())
	}
	out.Reset()
	report(env, false, launchFailure{denied(rule.Launch, "launch.digest.tree"), 7})
	if got := errOut.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "sf launch: refused: found [launch.digest.tree]") || out.Len() > 0 {
		t.Errorf("stderr has %q, stdout %q", got, out.String())
	}
}

// What a pack or a server made up can't steer a terminal.
func TestReportIsPrintable(t *testing.T) {
	var errOut bytes.Buffer
	env := &Env{Out: io.Discard, Err: &errOut, Vars: map[string]string{}}
	var r rule.Report
	r.Add(rule.Violation{Rule: "archive.path.control", File: "a\x1b]0;owned\x07b", Message: "found\x1b[2J", Hint: "\u202etxt"})
	report(env, false, r.Decide(rule.Publish, rule.Subject{Name: "x\x1b[31m", Version: "1\r2"}, nil).Err())
	report(env, false, registry.Errorf(registry.NotFound, "first\x1b[0m\nsecond\x08"))
	if got := errOut.String(); strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }) {
		t.Errorf("control characters get through: %q", got)
	}
	if got := errOut.String(); !strings.Contains(got, "first") || !strings.Contains(got, "\nsecond") || !strings.Contains(got, "hint: txt") {
		t.Errorf("text is lost: %q", got)
	}
}
