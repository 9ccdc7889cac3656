package httperr

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// The most violations that a text shows. A decision in JSON beside it holds all of them.
const (
	maxBullets   = 100
	maxInMessage = 10
)

// remark separates a bullet's main clause from its remark where the real clients split it (wire.md 1).
const remark = "；"

// envelope is the OCI form. The request's id stands beside the errors: clients print what is in an error, and pass over what
// is not, so it is there for who looks and in nobody's way.
type envelope struct {
	Errors    []envelopeError `json:"errors"`
	RequestID string          `json:"requestId,omitempty"`
}

type envelopeError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Detail  any    `json:"detail,omitempty"`
}

func (a answer) envelope() any {
	e := envelopeError{Code: string(a.code), Message: a.message, Detail: a.detail}
	if a.decision != nil {
		e.Message += violationsInLine(a.decision.Violations)
		if a.showDecision {
			e.Detail = a.decision
		}
	}
	return envelope{[]envelopeError{e}, a.requestID}
}

// clientError is the form that the real clients can show.
type clientError struct {
	Detail   string         `json:"detail"`
	Code     registry.Code  `json:"code"` // read by our own client; the others pass it over
	Decision *rule.Decision `json:"decision,omitempty"`

	RequestID string `json:"requestId,omitempty"`
}

func (a answer) forClients() any {
	text := a.message
	if a.decision != nil {
		text += bullets(a.decision.Violations)
	}
	return clientError{Detail: text, Code: a.code, Decision: a.decision, RequestID: a.requestID}
}

// title says which gate refused what.
func title(d rule.Decision) string {
	what := strings.TrimSpace(registry.Shown(d.Subject.Name) + " " + registry.Shown(d.Subject.Version))
	if what == "" {
		return fmt.Sprintf("refused by the %s gate", d.Gate)
	}
	return fmt.Sprintf("%s: refused by the %s gate", what, d.Gate)
}

// violationsInLine is for clients that show a message on one line and no detail.
func violationsInLine(list []rule.Violation) string {
	var b strings.Builder
	for i, v := range list {
		if i == maxInMessage {
			fmt.Fprintf(&b, "; and %d more", len(list)-i)
			break
		}
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		b.WriteString(sep + oneLine(v.String()))
		if v.Hint != "" {
			b.WriteString(" (" + oneLine(v.Hint) + ")")
		}
	}
	return b.String()
}

// bullets is one line a violation.
func bullets(list []rule.Violation) string {
	var b strings.Builder
	for i, v := range list {
		if i == maxBullets {
			fmt.Fprintf(&b, "\n- and %d more", len(list)-i)
			break
		}
		b.WriteString("\n- " + oneLine(v.String()))
		if v.Hint != "" {
			b.WriteString(remark + oneLine(v.Hint))
		}
	}
	return b.String()
}

// oneLine keeps a text on its line: who words it escapes what comes from outside, this holds it even so.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
