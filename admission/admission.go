// Package admission holds the gates: pure functions from values to a Decision. Publish is gate 1; the submission
// and launch gates stand beside it. A gate does no I/O of its own, asks no clock and keeps no state: who calls it hands in everything that it
// decides on, so the command line, the server and the launch agent get one answer.
//
// A Decision lists every violation, never only the first, each with a stable rule id from the one table of rules (package rule).
// The checks themselves live in the packages below: archive, pack, jobspec and the readers they use.
package admission

import (
	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// The vocabulary of the gates, so that callers need not import package rule for it.
type (
	// Decision is a gate's answer.
	Decision = rule.Decision
	// Denied is the error form of a decision that does not allow.
	Denied = rule.Denied
	// Gate is a point at which content is checked.
	Gate = rule.Gate
	// Policy is what an administrator decided about softenable rules.
	Policy = rule.Policy
	// Report collects what checks found.
	Report = rule.Report
	// RuleID names a rule for good.
	RuleID = rule.ID
	// Subject says what a decision is about.
	Subject = rule.Subject
	// Violation is one breach of a rule.
	Violation = rule.Violation
)

// The gates.
const (
	Publish    = rule.Publish
	Submission = rule.Submission
	Launch     = rule.Launch
)
