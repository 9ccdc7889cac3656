package webhook

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Resolver asks the platform what jobs name that the registry does not hold, by one signed request for a submission
// (docs/resolver.md).
type Resolver struct{ client *Client }

var _ registry.Resolver = (*Resolver)(nil)

// MaxResolverAnswer bounds an answer, in bytes. It repeats texts of a JobSpec, which has at most a quarter of that.
const MaxResolverAnswer = 4 << 20

// NewResolver makes the resolver behind a target.
func NewResolver(t Target) (*Resolver, error) {
	if t.MaxAnswer == 0 {
		t.MaxAnswer = MaxResolverAnswer
	}
	c, err := New(t)
	if err != nil {
		return nil, err
	}
	return &Resolver{c}, nil
}

// question is the body of a request.
type question struct {
	Type       string          `json:"type"` // always questionType
	Account    string          `json:"account"`
	Dialect    dialect.Dialect `json:"dialect"`
	Job        string          `json:"job"`
	References []reference     `json:"references"`
}

const questionType = "references.resolve"

// reference says which of the job's references is meant. An answer repeats kind, path and text.
type reference struct {
	Kind   jobspec.RefKind `json:"kind"`
	Path   string          `json:"path"`
	Text   string          `json:"text"`
	Access string          `json:"access,omitempty"`
}

// verdict is one reference of an answer.
type verdict struct {
	Kind    jobspec.RefKind `json:"kind"`
	Path    string          `json:"path"`
	Text    string          `json:"text"`
	State   string          `json:"state"`
	Version string          `json:"version"`
	Detail  string          `json:"detail"`
}

// states are what a platform may say of a reference.
var states = map[string]admission.ResolutionState{
	"resolved": admission.Resolved, "not_found": admission.NotFound, "not_allowed": admission.NotAllowed, "unknown": admission.Unresolved,
}

// Bounds of an answer's texts, in bytes; and when to try again if the platform does not say.
const (
	maxVersion   = 128
	maxDetail    = 500
	answerDepth  = 8
	defaultRetry = 5 * time.Second
)

// Resolve implements registry.Resolver.
func (r *Resolver) Resolve(ctx context.Context, req registry.ResolveRequest) ([]admission.Resolution, error) {
	q := question{Type: questionType, Account: req.Account, Dialect: req.Dialect, Job: req.Job, References: make([]reference, len(req.References))}
	for i, ref := range req.References {
		q.References[i] = reference{ref.Kind, ref.Path, ref.Text, ref.Access}
	}
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	a, err := r.client.Post(ctx, newID(), "application/json", body)
	switch {
	case ctx.Err() != nil: // nobody waits for it any more
		return nil, ctx.Err()
	case err != nil:
		return nil, unavailable("does not answer", defaultRetry, err)
	case !a.OK():
		after := a.RetryAfter
		if after == 0 {
			after = defaultRetry
		}
		return nil, unavailable("does not answer", after, fmt.Errorf("%s answered with status %d", r.client.Host(), a.Status))
	}
	said, err := readAnswer(a.Body, q.References)
	if err != nil {
		return nil, unavailable("gave an answer that can't be used", defaultRetry, fmt.Errorf("%s: %w", r.client.Host(), err))
	}
	return said, nil
}

func newID() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails (crypto/rand)
	return "resolve-" + hex.EncodeToString(b)
}

// unavailable is the error of a resolver that is of no use now. Clients learn that, the log learns the cause.
func unavailable(what string, after time.Duration, cause error) error {
	return &registry.Error{
		Code: registry.Unavailable, RetryAfter: after, Err: cause,
		Message: "the platform, which must be asked about some of what the job names, " + what + "; nothing was submitted, try again",
	}
}

// strictAnswer is how strictly an answer is read. A control character in a text is put right by plain, not refused.
var strictAnswer = strictjson.Options{MaxDepth: answerDepth, Tolerate: func(f *strictjson.Fault) bool { return f.Kind == strictjson.Control }}

// readAnswer reads what was said of each of the references that were asked about: each exactly once, and of nothing else.
func readAnswer(body []byte, asked []reference) ([]admission.Resolution, error) {
	var answer struct {
		References []verdict `json:"references"`
	}
	if err := strictjson.Scan(body, strictAnswer); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	type key struct {
		kind       jobspec.RefKind
		path, text string
	}
	said := make(map[key]admission.Resolution, len(answer.References))
	for i, v := range answer.References {
		k := key{v.Kind, v.Path, v.Text}
		if _, twice := said[k]; twice {
			return nil, fmt.Errorf("references[%d]: %s %.100q at %.100q is answered twice", i, v.Kind, v.Text, v.Path)
		}
		res, err := v.resolution()
		if err != nil {
			return nil, fmt.Errorf("references[%d]: %w", i, err)
		}
		said[k] = res
	}
	all, left := make([]admission.Resolution, len(asked)), len(said)
	seen := make(map[key]bool, len(asked))
	for i, ref := range asked {
		k := key{ref.Kind, ref.Path, ref.Text}
		res, ok := said[k]
		if !ok {
			return nil, fmt.Errorf("%s %.100q at %s is not answered", ref.Kind, ref.Text, ref.Path)
		}
		if !seen[k] {
			left--
		}
		all[i], seen[k] = res, true
	}
	if left > 0 {
		return nil, fmt.Errorf("%d references are answered that were not asked about", left)
	}
	return all, nil
}

// resolution checks one verdict. What it says ends in the stored spec, or in a message to the user.
func (v verdict) resolution() (admission.Resolution, error) {
	state, ok := states[v.State]
	_, err := name.ParseVersion(v.Version)
	switch {
	case !ok:
		return admission.Resolution{}, fmt.Errorf("state: %.40q is none of resolved, not_found, not_allowed, unknown", v.State)
	case v.Version != "" && state != admission.Resolved:
		return admission.Resolution{}, errors.New("version: only what is resolved has one")
	case v.Version != "" && (len(v.Version) > maxVersion || err != nil || !name.IsSegment(v.Version)): // "latest" would pin nothing
		return admission.Resolution{}, fmt.Errorf("version: %.100q is no version", v.Version)
	}
	return admission.Resolution{State: state, Version: v.Version, Detail: plain(v.Detail)}, nil
}

// plain is a text on one line, without what a terminal could take for a command, and cut.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > maxDetail {
		s = strings.ToValidUTF8(s[:maxDetail], "")
	}
	return strings.TrimSpace(s)
}
