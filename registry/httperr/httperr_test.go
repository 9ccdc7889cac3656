package httperr_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/httperr"
)

// answer writes err and gives the answer and what was logged.
func answer(t *testing.T, form httperr.Form, err error) (*httptest.ResponseRecorder, string) {
	t.Helper()
	return answerTo(t, httptest.NewRequest(http.MethodGet, "/v2/alice/x/manifests/1", nil), form, err)
}

func answerTo(t *testing.T, r *http.Request, form httperr.Form, err error) (*httptest.ResponseRecorder, string) {
	t.Helper()
	var logged bytes.Buffer
	w := httptest.NewRecorder()
	httperr.Write(w, r, slog.New(slog.NewTextHandler(&logged, nil)), form, err)
	return w, logged.String()
}

type ociBody struct {
	Errors []struct {
		Code    string          `json:"code"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	} `json:"errors"`
	RequestID string `json:"requestId"`
}

type apiBody struct {
	Detail   string         `json:"detail"`
	Code     registry.Code  `json:"code"`
	Decision *rule.Decision `json:"decision"`

	RequestID string `json:"requestId"`
}

func decode[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	var v T
	dec := json.NewDecoder(w.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("body: %v", err)
	}
	return v
}

func TestEveryCode(t *testing.T) {
	for _, code := range registry.Codes() {
		t.Run(string(code), func(t *testing.T) {
			meaning := code.Meaning()
			for form, prefix := range map[httperr.Form]string{httperr.OCI: "Basic ", httperr.API: "Bearer "} {
				w, logged := answer(t, form, fmt.Errorf("push: %w", &registry.Error{Code: code, Err: errors.New("secret cause")}))
				if w.Code != meaning.Status {
					t.Errorf("form %d: status %d, want %d", form, w.Code, meaning.Status)
				}
				if strings.Contains(w.Body.String(), "secret cause") {
					t.Errorf("form %d: the answer tells the hidden cause: %s", form, w.Body)
				}
				if got := w.Header().Get("WWW-Authenticate"); (w.Code == 401) != strings.HasPrefix(got, prefix) || (w.Code != 401) != (got == "") {
					t.Errorf("form %d: status %d with WWW-Authenticate %q", form, w.Code, got)
				}
				if got := w.Header().Get("Retry-After"); (w.Code == 429 || w.Code == 503) != (got != "") {
					t.Errorf("form %d: status %d with Retry-After %q", form, w.Code, got)
				}
				if ours := code == registry.Internal || code == registry.Unavailable || code == registry.Damaged; ours != strings.Contains(logged, "secret cause") {
					t.Errorf("form %d: logged %q", form, logged)
				}
				checkPublicText(t, w, form, code, meaning.Text)
			}
		})
	}
}

func checkPublicText(t *testing.T, w *httptest.ResponseRecorder, form httperr.Form, code registry.Code, text string) {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	if form == httperr.API {
		if body := decode[apiBody](t, w); !strings.HasPrefix(body.Detail, text) {
			t.Errorf("detail %q, want it to begin with %q", body.Detail, text)
		}
		return
	}
	body := decode[ociBody](t, w)
	if len(body.Errors) != 1 || body.Errors[0].Code != string(code) || !strings.HasPrefix(body.Errors[0].Message, text) {
		t.Errorf("errors %+v, want code %s and a message that begins with %q", body.Errors, code, text)
	}
}

func TestUnknownErrorShowsOnlyARequestID(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/v2/", nil)
	r = r.WithContext(httperr.WithRequestID(r.Context(), "R-17"))
	for _, form := range []httperr.Form{httperr.OCI, httperr.API} {
		w, logged := answerTo(t, r, form, errors.New("disk sector 7 is bad"))
		if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "sector") {
			t.Errorf("status %d, body %s", w.Code, w.Body)
		}
		if !strings.Contains(w.Body.String(), "internal error (request R-17)") || w.Header().Get(httperr.RequestIDHeader) != "R-17" {
			t.Errorf("body %s, headers %v: the request id is missing", w.Body, w.Header())
		}
		if !strings.Contains(logged, "sector 7") || !strings.Contains(logged, "R-17") {
			t.Errorf("logged %q, want the cause and the request id", logged)
		}
	}
	w, logged := answer(t, httperr.OCI, errors.New("x"))
	id := w.Header().Get(httperr.RequestIDHeader)
	if id == "" || !strings.Contains(w.Body.String(), id) || !strings.Contains(logged, id) {
		t.Errorf("a request without an id: header %q, body %s, log %q", id, w.Body, logged)
	}
}

// refusal is a decision with two violations, of the gravest class that the rule table gives them.
func refusal(gate rule.Gate) rule.Decision {
	return rule.Decision{
		Gate: gate, Subject: rule.Subject{Name: "alice/my-algo", Version: "1.0"},
		Violations: []rule.Violation{
			{Rule: "manifest.name", Field: "name", File: "plugin.yaml", Line: 3, Column: 1, Message: "missing\nfield", Hint: "add it"},
			{Rule: "archive.path", File: "../x", Message: "leads outside"},
		},
		Warnings: []rule.Violation{},
	}
}

func TestRefusals(t *testing.T) {
	publish, submission := refusal(rule.Publish), refusal(rule.Submission)
	long := refusal(rule.Publish)
	for range 200 {
		long.Violations = append(long.Violations, rule.Violation{Rule: "x", Message: "again"})
	}
	tests := []struct {
		name   string
		err    error
		status int
		code   registry.Code
		title  string
	}{
		{"denied publish", publish.Err(), 400, registry.ManifestInvalid, "alice/my-algo 1.0: refused by the publish gate"},
		{"denied submission", fmt.Errorf("submit: %w", submission.Err()), 422, registry.AdmissionDenied, "alice/my-algo 1.0: refused by the submission gate"},
		{"detail", &registry.Error{Code: registry.AdmissionDenied, Detail: publish}, 400, registry.ManifestInvalid, "alice/my-algo 1.0: refused by the publish gate"},
		{"detail pointer", &registry.Error{Code: registry.AdmissionDenied, Detail: &submission}, 422, registry.AdmissionDenied, "alice/my-algo 1.0: refused by the submission gate"},
		{"code and message of their own", &registry.Error{Code: registry.VersionImmutable, Message: "1.0 exists", Detail: publish}, 409, registry.VersionImmutable, "1.0 exists"},
		{"many", long.Err(), 400, registry.ManifestInvalid, "alice/my-algo 1.0: refused by the publish gate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, _ := answer(t, httperr.OCI, tt.err)
			plain := decode[ociBody](t, w)
			if plain.Errors[0].Detail != nil {
				t.Errorf("a client that reads no decisions gets the detail %s", plain.Errors[0].Detail)
			}
			r := httptest.NewRequest(http.MethodPut, "/v2/alice/x/manifests/1", nil)
			r.Header.Add("Accept", "application/json, "+rule.MediaTypeDecision)
			w, _ = answerTo(t, r, httperr.OCI, tt.err)
			body := decode[ociBody](t, w)
			if plain.Errors[0].Message != body.Errors[0].Message {
				t.Errorf("the message is %q without the decision, %q with it", plain.Errors[0].Message, body.Errors[0].Message)
			}
			if w.Code != tt.status || body.Errors[0].Code != string(tt.code) {
				t.Errorf("status %d %s, want %d %s", w.Code, body.Errors[0].Code, tt.status, tt.code)
			}
			want := tt.title + ": plugin.yaml:3:1: name: missing field [manifest.name] (add it); ../x: leads outside [archive.path]"
			if got := body.Errors[0].Message; !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
				t.Errorf("message %q, want it to begin with %q", got, want)
			}
			var decision rule.Decision
			if err := json.Unmarshal(body.Errors[0].Detail, &decision); err != nil || len(decision.Violations) < 2 {
				t.Errorf("detail %s: %v", body.Errors[0].Detail, err)
			}

			w, _ = answer(t, httperr.API, tt.err)
			api := decode[apiBody](t, w)
			lines := strings.Split(api.Detail, "\n")
			if diff := cmp.Diff([]string{tt.title, "- plugin.yaml:3:1: name: missing field [manifest.name]；add it", "- ../x: leads outside [archive.path]"}, lines[:3]); diff != "" {
				t.Errorf("detail (-want +got):\n%s", diff)
			}
			if w.Code != tt.status || api.Decision == nil || len(api.Decision.Violations) != len(decision.Violations) {
				t.Errorf("status %d, decision %+v", w.Code, api.Decision)
			}
		})
	}
	w, _ := answer(t, httperr.API, long.Err())
	if got := decode[apiBody](t, w).Detail; !strings.HasSuffix(got, "\n- and 102 more") {
		t.Errorf("a long detail ends with %q", got[len(got)-40:])
	}
}

// TestRefusalsByClass finds a rule of each class in the table, so that no refusal loses its status (design.md 9).
func TestRefusalsByClass(t *testing.T) {
	want := map[rule.Class]int{rule.Invalid: 400, rule.Conflict: 409, rule.TooLarge: 413, rule.Forbidden: 403}
	seen := map[rule.Class]bool{}
	for _, info := range rule.All() {
		seen[info.Class] = true
		d := rule.Decision{Gate: rule.Publish, Violations: []rule.Violation{{Rule: info.ID, Message: "m"}}}
		if w, _ := answer(t, httperr.OCI, d.Err()); w.Code != want[info.Class] {
			t.Errorf("%s of class %d: status %d, want %d", info.ID, info.Class, w.Code, want[info.Class])
		}
	}
	if len(seen) == 0 {
		t.Error("the rule table is empty")
	}
}

func TestClientGone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v2/", nil)
	w, logged := answerTo(t, r, httperr.OCI, errors.New("write: broken pipe"))
	if w.Code != 499 || w.Body.Len() > 0 || logged != "" {
		t.Errorf("status %d, body %q, log %q; want 499 and nothing else", w.Code, w.Body, logged)
	}
	// A body that stood still ends the context too, but then the client is there to be told.
	if w, _ = answerTo(t, r, httperr.OCI, registry.Errorf(registry.BlobUploadInvalid, "no byte came")); w.Code != 400 || w.Body.Len() == 0 {
		t.Errorf("status %d, body %q; want the public error", w.Code, w.Body)
	}
}

func TestTimeLimitIsNotTheClientGone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	w, _ := answerTo(t, httptest.NewRequestWithContext(ctx, http.MethodGet, "/v2/", nil), httperr.OCI, fmt.Errorf("query: %w", ctx.Err()))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", w.Code)
	}
}

func TestRetryAfter(t *testing.T) {
	w, _ := answer(t, httperr.API, &registry.Error{Code: registry.TooManyRequests, RetryAfter: 1500 * time.Millisecond})
	if got := w.Header().Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After %q, want 2", got)
	}
}

func TestHeadersOfASuccessAreTakenBack(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("ETag", `"x"`)
	w.Header().Set("Content-Length", "1000")
	w.Header().Set("Range", "0-99")
	httperr.Write(w, httptest.NewRequest(http.MethodGet, "/v2/", nil), slog.New(slog.DiscardHandler), httperr.OCI, registry.ErrBlobUnknown)
	if w.Header().Get("ETag") != "" || w.Header().Get("Content-Length") != "" || w.Header().Get("Range") != "0-99" {
		t.Errorf("headers %v", w.Header())
	}
}

func TestDetailThatIsNoJSON(t *testing.T) {
	for _, form := range []httperr.Form{httperr.OCI, httperr.API} {
		w, _ := answer(t, form, &registry.Error{Code: registry.Conflict, Message: "taken", Detail: func() {}})
		if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "taken") {
			t.Errorf("status %d, body %s", w.Code, w.Body)
		}
	}
}

// An error that comes when its answer has begun says what an answer of its own would say, and its cause is logged once.
func TestLate(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/api/gc", nil)
	r = r.WithContext(httperr.WithRequestID(r.Context(), "r-1"))
	var log bytes.Buffer
	to := slog.New(slog.NewTextHandler(&log, nil))
	code, message := httperr.Late(r, to, errors.New("disk /secret broke"))
	if code != registry.Internal || !strings.Contains(message, "r-1") || strings.Contains(message, "secret") {
		t.Errorf("an internal error: %s %q, want INTERNAL with the request's id and no cause", code, message)
	}
	if lines := log.String(); strings.Count(lines, "disk /secret broke") != 1 {
		t.Errorf("log %q, want the cause once", lines)
	}
	log.Reset()
	if code, message = httperr.Late(r, to, registry.Errorf(registry.Conflict, "it runs already")); code != registry.Conflict || message != "it runs already" || log.Len() > 0 {
		t.Errorf("a conflict: %s %q, log %q; want it as it is, and nothing logged", code, message, log.String())
	}
}
