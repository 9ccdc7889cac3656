package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// openReferences are what the tests ask about.
var openReferences = []jobspec.Reference{
	{Kind: jobspec.RefDataset, Path: "spec.data.train.dataset", Text: "alice/gsm8k@v2", Access: jobspec.AccessRead},
	{Kind: jobspec.RefEnvironment, Path: "spec.data.environment", Text: "alice/maze"},
	{Kind: jobspec.RefVolume, Path: "spec.data.volumes[0]", Text: "bob/secret"},
	{Kind: jobspec.RefFleet, Path: "spec.evaluation.on_checkpoint.fleet", Text: "spare"},
}

func ask(t *testing.T, srv *httptest.Server) ([]admission.Resolution, error) {
	t.Helper()
	r, err := NewResolver(Target{URL: srv.URL, Secret: testSecret, Timeout: 200 * time.Millisecond, MaxAnswer: 4096})
	if err != nil {
		t.Fatal(err)
	}
	return r.Resolve(t.Context(), registry.ResolveRequest{Account: "alice", Dialect: dialect.TunePlane, Job: "maze-1", References: openReferences})
}

func TestResolverAsksOnceAndReadsEachState(t *testing.T) {
	var bodies [][]byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, body)
		if err := Verify([]byte(testSecret), r.Header.Get(HeaderID), r.Header.Get(HeaderTimestamp), r.Header.Get(HeaderSignature), body, time.Now(), time.Minute); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		var q struct{ References []map[string]any }
		json.Unmarshal(body, &q)
		for _, ref := range q.References {
			ref["state"] = map[any]string{"dataset": "resolved", "environment": "resolved", "volume": "not_allowed", "fleet": "unknown"}[ref["kind"]]
			if ref["kind"] == "environment" {
				ref["version"] = "v7"
			}
			if ref["kind"] == "volume" {
				ref["detail"] = "ask\x1b[31m bob\n" + strings.Repeat("x", 600)
			}
		}
		json.NewEncoder(w).Encode(q)
	}))
	defer srv.Close()
	got, err := ask(t, srv)
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	want := []admission.Resolution{
		{State: admission.Resolved}, {State: admission.Resolved, Version: "v7"},
		{State: admission.NotAllowed, Detail: "ask [31m bob " + strings.Repeat("x", maxDetail-len("ask [31m bob "))}, {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	const body = `{"type":"references.resolve","account":"alice","dialect":"tuneplane","job":"maze-1","references":[` +
		`{"kind":"dataset","path":"spec.data.train.dataset","text":"alice/gsm8k@v2","access":"read"},` +
		`{"kind":"environment","path":"spec.data.environment","text":"alice/maze"},` +
		`{"kind":"volume","path":"spec.data.volumes[0]","text":"bob/secret"},` +
		`{"kind":"fleet","path":"spec.evaluation.on_checkpoint.fleet","text":"spare"}]}`
	if len(bodies) != 1 || string(bodies[0]) != body {
		t.Errorf("%d requests: %s", len(bodies), bodies)
	}
}

// verdicts writes an answer about the references of the tests, with the last one as given.
func verdicts(last string) string {
	var parts []string
	for _, ref := range openReferences[:3] {
		parts = append(parts, fmt.Sprintf(`{"kind":%q,"path":%q,"text":%q,"state":"resolved"}`, ref.Kind, ref.Path, ref.Text))
	}
	if last != "" {
		parts = append(parts, last)
	}
	return `{"references":[` + strings.Join(parts, ",") + `]}`
}

// TestAnswersThatCantBeUsed: whatever the platform says wrong, the submission ends as "try again", and the log learns why.
func TestAnswersThatCantBeUsed(t *testing.T) {
	const fleet = `"kind":"fleet","path":"spec.evaluation.on_checkpoint.fleet","text":"spare"`
	for name, c := range map[string]struct{ body, want string }{
		"no JSON":              {"<html>", "column 1"},
		"a list":               {"[]", "cannot unmarshal"},
		"another type":         {`{"references":{}}`, "cannot unmarshal"},
		"nothing":              {"", "column 1"},
		"no references":        {`{}`, "not answered"},
		"a missing one":        {verdicts(""), `fleet "spare" at spec.evaluation.on_checkpoint.fleet is not answered`},
		"one not asked about":  {verdicts(`{` + fleet + `,"state":"unknown"},{"kind":"fleet","path":"x","text":"y","state":"resolved"}`), "not asked about"},
		"one answered twice":   {verdicts(`{` + fleet + `,"state":"not_found"},{` + fleet + `,"state":"resolved"}`), "answered twice"},
		"another text":         {verdicts(`{"kind":"fleet","path":"spec.evaluation.on_checkpoint.fleet","text":"Spare","state":"resolved"}`), "not answered"},
		"an unknown state":     {verdicts(`{` + fleet + `,"state":"RESOLVED"}`), `"RESOLVED" is none of`},
		"no state":             {verdicts(`{` + fleet + `}`), `"" is none of`},
		"a version to inject":  {verdicts(`{` + fleet + `,"state":"resolved","version":"v1\n@evil/x"}`), "is no version"},
		"no version to pin":    {verdicts(`{` + fleet + `,"state":"resolved","version":"Latest"}`), "is no version"},
		"a long version":       {verdicts(`{` + fleet + `,"state":"resolved","version":"` + strings.Repeat("1", 129) + `"}`), "is no version"},
		"a version of nothing": {verdicts(`{` + fleet + `,"state":"not_found","version":"v1"}`), "only what is resolved"},
		"a member twice":       {verdicts(`{` + fleet + `,"state":"not_found","state":"resolved"}`), "state"},
		"too deep":             {`{"references":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, "deep"},
		"too long":             {verdicts(`{` + fleet + `,"state":"unknown","detail":"` + strings.Repeat("x", 4096) + `"}`), "more than 4096 bytes"},
		"text behind it":       {verdicts(`{`+fleet+`,"state":"unknown"}`) + "{}", "after the end"},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, c.body) }))
		got, err := ask(t, srv)
		srv.Close()
		e, ok := err.(*registry.Error)
		if got != nil || !ok || e.Code != registry.Unavailable || e.RetryAfter <= 0 || e.Err == nil {
			t.Errorf("%s: %v, %v", name, got, err)
			continue
		}
		if !strings.Contains(e.Err.Error(), c.want) || !strings.Contains(e.Err.Error(), "127.0.0.1") {
			t.Errorf("%s: the cause is %q, want %q", name, e.Err, c.want)
		}
		if strings.Contains(e.Message, "127.0.0.1") {
			t.Errorf("%s: clients learn where the platform is: %s", name, e.Message)
		}
	}
}

// TestPlatformThatDoesNotAnswer: a status of failure, silence, and nobody at all.
func TestPlatformThatDoesNotAnswer(t *testing.T) {
	ended := make(chan struct{})
	defer close(ended)
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		after time.Duration
	}{
		"busy": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "42")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, 42 * time.Second},
		"broken":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, defaultRetry},
		"refuses":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, defaultRetry},
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, defaultRetry},
		"silent":   {func(http.ResponseWriter, *http.Request) { <-ended }, defaultRetry},
	} {
		srv := httptest.NewServer(c.serve)
		_, err := ask(t, srv)
		if e, ok := err.(*registry.Error); !ok || e.Code != registry.Unavailable || e.RetryAfter != c.after {
			t.Errorf("%s: %v", name, err)
		}
		if name != "silent" {
			srv.Close()
		}
	}
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	if _, err := ask(t, srv); registry.CodeOf(err) != registry.Unavailable {
		t.Errorf("nobody: %v", err)
	}
}
