// Package httperr turns errors into HTTP answers, and is the only place that does. A handler returns its error; Write
// finds the status and the public text in the registry's one table of codes and answers in the form that the
// clients of the route can read.
//
// A *registry.Error and a *rule.Denied say what clients may see. Of any other error they see nothing but a request id;
// its cause is logged here, once. A client that has gone away gets no body.
package httperr

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Form is the shape of the errors of a family of routes.
type Form uint8

// The forms.
const (
	OCI  Form = iota // /v2: {"errors":[{"code","message","detail"}]}, as distribution-spec says; the message says all
	API              // /api: {"detail":"title\n- violation\n- violation","decision":{…}}, as both real clients read it (wire.md 1)
	Page             // a page for people, which WithPage made; without one plain text
)

// statusClientGone is the status when nobody waits for the answer any more. It is written, since a handler that writes
// nothing answers 200, and a client that only seems to be gone must not take that for success.
const statusClientGone = 499

// Times to wait when an error that passes names none.
const (
	busyRetry        = time.Second
	unavailableRetry = 5 * time.Second
)

// Write answers r with err in the given form. The handler must not have written anything. log takes the cause of what
// is the server's fault.
func Write(w http.ResponseWriter, r *http.Request, log *slog.Logger, form Form, err error) {
	a := newAnswer(err)
	if a.unheard(r) {
		log.DebugContext(r.Context(), "client gone", "status", statusClientGone, "method", r.Method, "path", r.URL.Path, "err", err)
		w.WriteHeader(statusClientGone)
		return
	}
	a.showDecision = readsDecisions(r)
	a.record(r, log, err)
	head(w.Header(), a, a.requestID)
	if form == Page {
		writePage(w, r, a)
		return
	}
	if a.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", challenge(r.Context(), form, err))
	}
	w.WriteHeader(a.status)
	w.Write(a.body(form)) // a client that is gone is no fault of ours
}

// Late is what an error says that comes when its answer has begun: its code and public text, for the answer's last line. log
// takes the cause as in Write.
func Late(r *http.Request, log *slog.Logger, err error) (registry.Code, string) {
	a := newAnswer(err)
	if !a.unheard(r) {
		a.record(r, log, err)
	}
	return a.code, a.message
}

// unheard reports whether the error is that nobody waits for the answer any more.
func (a answer) unheard(r *http.Request) bool {
	return a.code == registry.Internal && errors.Is(r.Context().Err(), context.Canceled)
}

// record gives the answer the request's id, and logs what an operator must hear of.
func (a *answer) record(r *http.Request, log *slog.Logger, err error) {
	a.requestID = RequestID(r.Context())
	if a.code == registry.Internal {
		if a.requestID == "" {
			a.requestID = NewRequestID()
		}
		a.message += " (request " + a.requestID + ")"
	}
	if a.ours() {
		log.ErrorContext(r.Context(), "request failed", "status", a.status, "code", string(a.code), "method", r.Method,
			"path", r.URL.Path, "request", a.requestID, "err", err, "cause", hiddenCause(err))
	}
}

// head sets the headers of an answer, and removes those of the success that did not come about.
func head(h http.Header, a answer, requestID string) {
	for _, name := range []string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified", "Cache-Control"} {
		h.Del(name)
	}
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	if requestID != "" {
		h.Set(RequestIDHeader, requestID)
	}
	if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(a.retry.Seconds()))))
	}
}

// answer is an error as clients may see it.
type answer struct {
	code     registry.Code
	status   int
	message  string
	decision *rule.Decision // of a gate that refused
	detail   any
	retry    time.Duration

	requestID string

	showDecision bool // in the OCI form too
}

// readsDecisions reports whether the client asks for decisions in the OCI form. oras and crane print a detail as Go prints
// a map, and regctl the whole body: a decision there buries the message that the user needs.
func readsDecisions(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		if strings.Contains(accept, rule.MediaTypeDecision) {
			return true
		}
	}
	return false
}

// newAnswer classifies an error. The outermost *registry.Error counts, except that a gate's refusal always shows.
func newAnswer(err error) answer {
	var a answer
	e, public := errors.AsType[*registry.Error](err)
	switch {
	case public:
		a = answer{code: e.Code, message: e.Error(), detail: e.Detail, retry: e.RetryAfter}
	case errors.Is(err, context.DeadlineExceeded):
		a = answer{code: registry.Unavailable}
	default:
		a = answer{code: registry.Internal}
	}
	if d := registry.DecisionOf(err); d != nil {
		a.decision, a.detail = d, nil
		if !public || e.Code == registry.AdmissionDenied {
			a.code, a.message = registry.CodeOfDecision(*d), title(*d)
		}
	}
	meaning := a.code.Meaning()
	a.status = meaning.Status
	if meaning == registry.Internal.Meaning() {
		a = answer{code: registry.Internal, status: a.status}
	}
	if a.message == "" {
		a.message = meaning.Text
	}
	a.message = oneLine(a.message)
	if a.retry <= 0 {
		a.retry = busyRetry
		if a.status == http.StatusServiceUnavailable {
			a.retry = unavailableRetry
		}
	}
	return a
}

// ours reports whether an operator must hear of it: the fault is the server's, or that of something it needs.
func (a answer) ours() bool {
	return a.code == registry.Internal || a.code == registry.Unavailable || a.code == registry.Damaged
}

// hiddenCause is the text of the cause that a public error hides, "" when it hides none.
func hiddenCause(err error) string {
	if e, ok := errors.AsType[*registry.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return ""
}

func (a answer) body(form Form) []byte {
	shape := answer.envelope
	if form == API {
		shape = answer.forClients
	}
	body, err := json.Marshal(shape(a))
	if err != nil { // a detail that is no JSON value
		a.detail, a.decision = nil, nil
		body, _ = json.Marshal(shape(a))
	}
	return append(body, '\n')
}
