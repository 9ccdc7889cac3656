// Package rule is the vocabulary of the gates: rule ids, violations, reports and decisions, and the one table of
// all rules with what each checks, where it comes from and whether an administrator may soften it.
//
// Rule packages below admission find violations and add them to a Report; a gate turns a Report into a
// Decision. Nothing here does I/O.
package rule

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// Gate is a point at which content is checked (design.md 3).
type Gate string

// The three gates.
const (
	Publish    Gate = "publish"
	Submission Gate = "submission"
	Launch     Gate = "launch"
)

// ID names a rule for good: "family.subject.detail". It is part of the public contract.
type ID string

// Violation is one breach of a rule. Message says what was found and what was expected; Hint says how to fix
// it. Text that came from outside is escaped by whoever builds the violation (%q).
type Violation struct {
	Rule    ID     `json:"rule"`
	Field   string `json:"field"`  // the document's field, as the clients name it; "" when there is none
	File    string `json:"file"`   // the file inside the pack or job; "" when the input is one document
	Line    int    `json:"line"`   // 1-based; 0 when unknown
	Column  int    `json:"column"` // 1-based, in characters; 0 when unknown
	Message string `json:"message"`
	Hint    string `json:"hint"`
	// Pointer is the RFC 6901 pointer to the value, where the input is a JSON document that has one. The clients'
	// field names don't number every list.
	Pointer string `json:"pointer,omitempty"`
	// Audit marks a warning that would be a violation were its rule not in audit mode.
	Audit bool `json:"audit,omitempty"`
}

// String is the violation on one line, as terminals and the `detail` of a refusal show it.
func (v Violation) String() string {
	s := v.Message
	switch {
	case v.Field != "":
		s = v.Field + ": " + s
	case v.File == "" && v.Line > 0:
		s = fmt.Sprintf("line %d column %d: %s", v.Line, v.Column, s)
	}
	if v.File != "" {
		where := v.File
		if v.Line > 0 {
			where = fmt.Sprintf("%s:%d:%d", where, v.Line, v.Column)
		}
		s = where + ": " + s
	}
	return fmt.Sprintf("%s [%s]", s, v.Rule)
}

// Severity is what a rule's breach does by default.
type Severity uint8

// The severities.
const (
	Refuse Severity = iota
	Warn
)

// Class says what kind of answer a breach gets. Where several apply the greatest decides (design.md 9).
type Class uint8

// The classes, from the one that yields to the one that wins.
const (
	Invalid   Class = iota // the content is wrong: 400
	Conflict               // it clashes with what exists: 409
	TooLarge               // it is beyond a limit: 413
	Forbidden              // this principal may not do it: 403
)

// Info describes a rule in the table.
type Info struct {
	ID       ID
	Title    string            // one sentence: what holds when the rule is met
	Fix      string            // one sentence: how to meet it
	Source   string            // where it comes from, e.g. "packs.md 3.2"
	Gates    []Gate            // the gates that apply it
	Dialects []dialect.Dialect // empty: both
	Severity Severity
	// Ours marks a rule that is stricter than the real clients. An administrator may turn it into a warning
	// unless Fixed: then it would let two readers see two trees, or harm another client (design.md 9).
	Ours  bool
	Fixed bool
	// OursIn narrows Ours to some dialects: in the others the clients refuse too, and nothing softens the rule.
	OursIn []dialect.Dialect
	// WarnIn lists the dialects in which a breach only warns, though Severity refuses.
	WarnIn []dialect.Dialect
	Class  Class // how a refusal is answered
	// Deployment marks a rule whose strictness the deployment's settings decide (hosts of images, quotas, profiles). It is
	// not stricter than the platforms, so nothing softens it for good, but a setting may be tried in audit mode.
	Deployment bool
	// Example breaks the rule. Every rule about a document alone has one, and a test runs it.
	Example Example
}

// Softenable reports whether an administrator may turn the rule into a warning.
func (i Info) Softenable() bool { return i.Ours && !i.Fixed && i.Severity == Refuse }

// Auditable reports whether the rule may be put in audit mode: whatever may be softened, and what the deployment's own
// settings make strict.
func (i Info) Auditable() bool { return i.Softenable() || i.Deployment && i.Severity == Refuse }

// stricterIn reports whether the rule is stricter than the clients of the dialect; "" is no dialect in particular.
func (i Info) stricterIn(d dialect.Dialect) bool {
	return i.Ours && (d == "" || len(i.OursIn) == 0 || slices.Contains(i.OursIn, d))
}

// warns reports whether a breach in a document of the dialect is a warning whatever the policy audits.
func (i Info) warns(d dialect.Dialect, p Policy) bool {
	return i.Severity == Warn || slices.Contains(i.WarnIn, d) || (p.Softened(i.ID) && i.stricterIn(d))
}

// audited reports whether a breach is a warning only because its rule is in audit mode.
func (i Info) audited(d dialect.Dialect, p Policy) bool {
	return p.audit[i.ID] && (i.stricterIn(d) || i.Deployment) && !i.warns(d, p)
}

// Warns reports whether a breach in a document of the dialect is no more than a warning under the policy.
func (i Info) Warns(d dialect.Dialect, p Policy) bool { return i.warns(d, p) || i.audited(d, p) }

// Report collects what checks found. Set Policy, and Dialect once it is known, before the first Add; the zero
// Report is ready for use.
type Report struct {
	Policy     Policy
	Dialect    dialect.Dialect
	Violations []Violation
	Warnings   []Violation
}

// Add files v as a violation or, when its rule only warns or the policy softens it, as a warning. It reports
// whether v refuses, so that a check can stop or go on as the clients would.
func (r *Report) Add(v Violation) (refused bool) {
	info, ok := Lookup(v.Rule)
	if !ok {
		// A rule that is missing from the table can't have been reviewed: it refuses, and the table's test fails.
		r.Violations = append(r.Violations, v)
		return true
	}
	if v.Hint == "" {
		v.Hint = info.Fix
	}
	if info.Warns(r.Dialect, r.Policy) {
		v.Audit = info.audited(r.Dialect, r.Policy)
		r.Warnings = append(r.Warnings, v)
		return false
	}
	r.Violations = append(r.Violations, v)
	return true
}

// Merge adds what another report found, under the policy that other was made with.
func (r *Report) Merge(o Report) {
	r.Violations = append(r.Violations, o.Violations...)
	r.Warnings = append(r.Warnings, o.Warnings...)
}

// ClientsFirst puts the breaches of the clients' own rules before those of ours, each in the order found, so that
// the first violation is the one that a client would show.
func (r *Report) ClientsFirst() {
	ours := func(v Violation) int {
		if info, ok := Lookup(v.Rule); ok && info.stricterIn(r.Dialect) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(r.Violations, func(a, b Violation) int { return ours(a) - ours(b) })
}

// InDocumentOrder sorts violations and warnings by where they stand in their files, what has no place last. Those of one
// place stay in the order found.
func (r *Report) InDocumentOrder() {
	byPlace := func(a, b Violation) int {
		if a.Line == 0 || b.Line == 0 {
			return cmp.Compare(placeless(a), placeless(b))
		}
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	}
	slices.SortStableFunc(r.Violations, byPlace)
	slices.SortStableFunc(r.Warnings, byPlace)
}

// placeless is 1 for a violation without a place.
func placeless(v Violation) int {
	if v.Line == 0 {
		return 1
	}
	return 0
}

// OK reports whether nothing was violated.
func (r *Report) OK() bool { return len(r.Violations) == 0 }

// MediaTypeDecision is the media type of a Decision. A client of the OCI protocol that names it in Accept gets the decision as
// an error's detail; all others get its text, since what they show of a detail hides the message.
const MediaTypeDecision = "application/vnd.gatehouse.decision.v1+json"

// Decision is a gate's answer: every violation, never only the first.
type Decision struct {
	Gate       Gate        `json:"gate"`
	Allowed    bool        `json:"allowed"`
	Rules      string      `json:"rules"`               // Version of the table that decided
	Catalogue  string      `json:"catalogue,omitempty"` // digest of the catalogue that gate 2 compared with
	Subject    Subject     `json:"subject"`
	Violations []Violation `json:"violations"`
	Warnings   []Violation `json:"warnings"`
	// Value is the normalised document and its digests, when the input could be read that far.
	Value any `json:"value,omitempty"`
}

// Subject says what a decision is about. Empty parts are unknown.
type Subject struct {
	Name          string          `json:"name,omitempty"` // <owner>/<name>, a job's name, or a file's
	Version       string          `json:"version,omitempty"`
	Kind          string          `json:"kind,omitempty"`
	Dialect       dialect.Dialect `json:"dialect,omitempty"`
	ContentDigest string          `json:"contentDigest,omitempty"`
	TreeDigest    string          `json:"treeDigest,omitempty"`
	Digest        string          `json:"digest,omitempty"` // of the manifest or the spec
}

// Decide turns a report into a decision. The lists are never nil, so that their JSON is [].
func (r *Report) Decide(gate Gate, subject Subject, value any) Decision {
	return Decision{
		Gate: gate, Allowed: r.OK(), Rules: Version(), Subject: subject, Value: value,
		Violations: append([]Violation{}, r.Violations...),
		Warnings:   append([]Violation{}, r.Warnings...),
	}
}

// Class is the greatest class among the violations, Invalid when there is none.
func (d Decision) Class() Class {
	class := Invalid
	for _, v := range d.Violations {
		if info, ok := Lookup(v.Rule); ok {
			class = max(class, info.Class)
		}
	}
	return class
}

// Denied is the error form of a decision that does not allow.
type Denied struct{ Decision Decision }

func (e *Denied) Error() string {
	switch n := len(e.Decision.Violations); n {
	case 0:
		return fmt.Sprintf("refused by the %s gate", e.Decision.Gate)
	case 1:
		return e.Decision.Violations[0].String()
	default:
		return fmt.Sprintf("%s (and %d more)", e.Decision.Violations[0], n-1)
	}
}

// Err is nil when the decision allows, else a *Denied.
func (d Decision) Err() error {
	if d.Allowed {
		return nil
	}
	return &Denied{d}
}
