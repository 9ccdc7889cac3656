package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/jobspec"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/webhook"
)

const resolverSecret = "whsec_c2l4dGVlbiBieXRlcyBhbmQgbW9yZQ=="

// answering is a resolver that says of each reference what says has for its text, and "unknown" otherwise.
type answering struct {
	*httptest.Server
	mu    sync.Mutex
	says  map[string]map[string]any
	fault http.HandlerFunc // answers instead, when it is set
	asked [][]string       // of each request, the kinds and texts
}

func startAnswering(t *testing.T) *answering {
	t.Helper()
	key, err := webhook.Key(resolverSecret)
	if err != nil {
		t.Fatal(err)
	}
	p := &answering{says: map[string]map[string]any{}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h := r.Header
		if err := webhook.Verify(key, h.Get(webhook.HeaderID), h.Get(webhook.HeaderTimestamp), h.Get(webhook.HeaderSignature), body, time.Now(), time.Hour); err != nil {
			t.Errorf("a request that is not signed: %v", err)
		}
		p.answer(w, r, body)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *answering) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var q struct {
		Account    string           `json:"account"`
		References []map[string]any `json:"references"`
	}
	json.Unmarshal(body, &q)
	asked := []string{q.Account}
	for _, ref := range q.References {
		asked = append(asked, fmt.Sprint(ref["kind"], " ", ref["text"]))
		ref["state"] = "unknown"
		for key, value := range p.says[fmt.Sprint(ref["text"])] {
			ref[key] = value
		}
	}
	p.asked = append(p.asked, asked)
	if p.fault != nil {
		p.fault(w, r)
		return
	}
	json.NewEncoder(w).Encode(map[string]any{"references": q.References})
}

// set changes what the platform says of a text.
func (p *answering) set(text, state string, more ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.says[text] = map[string]any{"state": state}
	for i := 0; i < len(more); i += 2 {
		p.says[text][more[i]] = more[i+1]
	}
}

// breaks makes the platform answer everything by a handler; nil mends it.
func (p *answering) breaks(by http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = by
}

// requests are those that came since the last call.
func (p *answering) requests() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.asked
	p.asked = nil
	return all
}

// asking configures a server to ask the platform.
func (p *answering) asking(t *testing.T, unchecked string) func(*setup) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(resolverSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(s *setup) {
		s.config.Resolver, s.config.ResolverSecretFile, s.config.ResolverTimeout, s.config.Unchecked = p.URL+"/resolve", file, 2*time.Second, unchecked
	}
}

// withRefs is a job that names things of the platform.
func withRefs(t *testing.T, d dialect.Dialect, data string) string {
	t.Helper()
	return strings.Replace(jobSpec(t, d, "refs"), `"resources"`, data+`,"resources"`, 1)
}

// dryRun gives the decision of POST /api/admission, and what nobody checked.
func (g *gatehouse) dryRun(t *testing.T, spec string) (d admission.Decision, unchecked []admission.Unchecked) {
	t.Helper()
	var value struct{ Unchecked []admission.Unchecked }
	d.Value = &value
	g.do(call{as: "alice", method: "POST", path: "/api/admission", body: []byte(spec)}).want(t, 200).into(t, &d)
	return d, value.Unchecked
}

// TestResolverAnswersForThePlatform: each answer has its consequence, and a submission asks once.
func TestResolverAnswersForThePlatform(t *testing.T) {
	p := startAnswering(t)
	g := startGatehouse(t, p.asking(t, ""))
	const train = `"data":{"train":{"dataset":"lab/gsm8k@v2"},"volumes":["lab/cache"]}`
	both := []string{"alice", "dataset lab/gsm8k@v2", "volume lab/cache"}

	d, unchecked := g.dryRun(t, withRefs(t, dialect.Forge, train))
	want := []admission.Unchecked{
		{Kind: jobspec.RefSource, Path: "spec.source.exp", Text: "experiments/refs"},
		{Kind: jobspec.RefDataset, Path: "spec.data.train.dataset", Text: "lab/gsm8k@v2"},
		{Kind: jobspec.RefVolume, Path: "spec.data.volumes[0]", Text: "lab/cache"},
	}
	if diff := cmp.Diff(want, unchecked); !d.Allowed || diff != "" || !slices.Equal(rulesOf(admission.Decision{Violations: d.Warnings}), []string{"job.reference.unchecked"}) {
		t.Errorf("unknown to the platform: %v %v %s", d.Violations, d.Warnings, diff)
	}

	p.set("lab/gsm8k@v2", "resolved")
	p.set("lab/cache", "not_allowed", "detail", "ask the owner of the volume")
	d, unchecked = g.dryRun(t, withRefs(t, dialect.Forge, train))
	if diff := cmp.Diff(want[:1], unchecked); diff != "" || !slices.Equal(rulesOf(d), []string{"job.data.volumes.access"}) || !strings.Contains(d.Violations[0].Message, "ask the owner of the volume") {
		t.Errorf("not allowed: %v %s", d.Violations, diff)
	}

	p.set("lab/cache", "resolved")
	p.set("lab/gsm8k@v2", "not_found")
	g.submit("alice", withRefs(t, dialect.Forge, train)).refused(t, "/api/", 422)
	p.set("lab/gsm8k@v2", "resolved")
	if diff := cmp.Diff([][]string{both, both, both}, p.requests()); diff != "" {
		t.Error(diff)
	}
	g.submitted("alice", withRefs(t, dialect.Forge, train))
	g.submitted("alice", jobSpec(t, dialect.Forge, "plain"))
	if diff := cmp.Diff([][]string{both}, p.requests()); diff != "" {
		t.Errorf("a submission asks once, and not at all without a reason: %s", diff)
	}
}

// TestResolverLetsNobodyIn: what is held here for others stays theirs, whatever the platform says of it; what is held here at all
// the platform is not asked about.
func TestResolverLetsNobodyIn(t *testing.T) {
	p := startAnswering(t)
	g := startGatehouse(t, p.asking(t, ""))
	for name, public := range map[string]bool{"hidden": false, "open": true} {
		pushing{g: g, as: "bob", kind: "environment", name: name, version: "v1", public: public}.all(shop)
	}
	for text, want := range map[string]bool{
		"bob/hidden": false, "bob/hidden@v1": false, "bob/hidden@v9": false, "bob/Hidden@v1": false, "bob/open@v1": true, "bob/open@v9": false, "bob/elsewhere@v1": true,
	} {
		p.set(text, "resolved")
		d, _ := g.dryRun(t, withRefs(t, dialect.Forge, fmt.Sprintf(`"data":{"environment":%q}`, text)))
		if d.Allowed != want {
			t.Errorf("%s: allowed %v: %v", text, d.Allowed, d.Violations)
		}
	}
	if diff := cmp.Diff([][]string{{"alice", "environment bob/elsewhere@v1"}}, p.requests()); diff != "" {
		t.Error(diff)
	}
}

// TestTooManyReferences: a job that names thousands of things is not asked about.
func TestTooManyReferences(t *testing.T) {
	p := startAnswering(t)
	g := startGatehouse(t, p.asking(t, ""))
	volumes := make([]string, 1001)
	for i := range volumes {
		volumes[i] = fmt.Sprintf("%q", fmt.Sprint("lab/v", i))
	}
	spec := func(n int) string {
		return withRefs(t, dialect.Forge, `"data":{"volumes":[`+strings.Join(volumes[:n], ",")+`]}`)
	}
	g.submit("alice", spec(1001)).want(t, 413)
	if n := len(p.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
	g.submitted("alice", spec(1000))
}

// TestCommitAsksAgain: what was resolved for a preview is asked about again when it is committed.
func TestCommitAsksAgain(t *testing.T) {
	p := startAnswering(t)
	g := startGatehouse(t, p.asking(t, ""))
	p.set("lab/cache", "resolved")
	spec := withRefs(t, dialect.TunePlane, `"data":{"volumes":["lab/cache"]}`)
	stays, goes := g.previewed("alice", spec), g.previewed("alice", spec)
	g.commit("alice", stays, "").want(t, 200)
	g.commit("alice", stays, "").want(t, 200)
	p.set("lab/cache", "not_found")
	if got := g.commit("alice", goes, "").refused(t, "/api/", 422); !slices.Equal(got.Decision.rules(), []string{"job.data.volumes.access"}) {
		t.Errorf("rules %q", got.Decision.rules())
	}
	g.commit("alice", stays, "").want(t, 200)
	if n := len(p.requests()); n != 4 {
		t.Errorf("%d requests for two previews and two commits that made or refused a job", n)
	}
	if n := len(g.jobs("alice")); n != 1 {
		t.Errorf("%d jobs", n)
	}
}

// TestResolverIsDown: whatever the platform does wrong, a submission that needs it is told to try again, nothing is stored,
// and one that does not need it, or is refused anyway, goes its way.
func TestResolverIsDown(t *testing.T) {
	p := startAnswering(t)
	g := startGatehouse(t, p.asking(t, ""))
	spec := withRefs(t, dialect.Forge, `"data":{"volumes":["lab/cache"]}`)
	ended := make(chan struct{})
	defer close(ended)
	for name, fault := range map[string]http.HandlerFunc{
		"busy":      func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Retry-After", "7"); w.WriteHeader(503) },
		"malformed": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
		"lying": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"references":[{"kind":"volume","path":"spec.data.volumes[0]","text":"lab/cache","state":"resolved"},{"kind":"volume","path":"spec.data.volumes[1]","text":"lab/other","state":"resolved"}]}`)
		},
		"huge":     func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, webhook.MaxResolverAnswer+1)) },
		"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		p.breaks(fault)
		r := g.submit("alice", spec).want(t, 503)
		if after := r.header.Get("Retry-After"); after == "" || name == "busy" && after != "7" {
			t.Errorf("%s: Retry-After %q", name, after)
		}
		if body := string(r.body); strings.Contains(body, "127.0.0.1") || !strings.Contains(body, "try again") {
			t.Errorf("%s: %s", name, body)
		}
		if log := g.faults.take(); len(log) != 1 || !strings.Contains(log[0], "127.0.0.1") {
			t.Errorf("%s: logged %q, want why", name, log)
		}
	}
	if n := len(g.jobs("alice")); n != 0 {
		t.Errorf("%d jobs were stored", n)
	}
	g.submitted("alice", jobSpec(t, dialect.Forge, "plain"))
	bad := strings.Replace(spec, `"gpus_per_node":8`, `"gpus_per_node":0`, 1)
	g.submit("alice", bad).refused(t, "/api/", 422)
	p.breaks(nil)
	g.submitted("alice", spec)
}

// TestUncheckedCanBeRefused: the deployment wants some kinds checked, by the platform or not at all.
func TestUncheckedCanBeRefused(t *testing.T) {
	p := startAnswering(t)
	g := startGatehouse(t, p.asking(t, "refuse:volume,fleet"))
	const data = `"data":{"train":{"dataset":"lab/gsm8k@v2"},"volumes":["lab/cache"]}`
	got := g.submit("alice", withRefs(t, dialect.Forge, data)).refused(t, "/api/", 422)
	if !slices.Equal(got.Decision.rules(), []string{"job.reference.unverified"}) {
		t.Errorf("rules %q", got.Decision.rules())
	}
	p.set("lab/cache", "resolved")
	g.submitted("alice", withRefs(t, dialect.Forge, data))

	alone := startGatehouse(t, func(s *setup) { s.config.Unchecked = "refuse:all" })
	alone.submitted("alice", jobSpec(t, dialect.Forge, "plain"))
	for _, data := range []string{`"data":{"train":{"dataset":"lab/gsm8k@v2"}}`, `"evaluation":{"runner":"lm-eval"}`, `"model":{"init_from":"run/their-run/checkpoint"}`} {
		if got := alone.submit("alice", withRefs(t, dialect.Forge, data)).refused(t, "/api/", 422); !slices.Contains(got.Decision.rules(), "job.reference.unverified") {
			t.Errorf("%s: rules %q", data, got.Decision.rules())
		}
	}
}

// TestRunsOfOurs: an artifact and a baseline of a run that this registry admitted are looked up here; a run of another form
// is the platform's.
func TestRunsOfOurs(t *testing.T) {
	g := startGatehouse(t)
	mine, theirs := g.submitted("alice", jobSpec(t, dialect.Forge, "first")), g.submitted("bob", jobSpec(t, dialect.Forge, "second"))
	missing := mine[:len(mine)-8] + "00000000"
	for _, c := range []struct {
		as, run, rule string
		unchecked     bool
	}{
		{"alice", mine, "", false},
		{"alice", theirs, "refused", false},
		{"alice", missing, "refused", false},
		{"admin", theirs, "", false},
		{"alice", "my-exp-alice-20260101-000000", "", true},
	} {
		for path, body := range map[string]string{
			"job.model.init_from.exists":     `"model":{"init_from":"run/` + c.run + `/checkpoint@step=10"}`,
			"job.evaluation.baseline.exists": `"evaluation":{"baseline":"` + c.run + `"}`,
		} {
			r := g.submit(c.as, withRefs(t, dialect.Forge, body))
			if c.rule != "" {
				if got := r.refused(t, "/api/", 422).Decision.rules(); !slices.Equal(got, []string{path}) {
					t.Errorf("%s as %s: rules %q", c.run, c.as, got)
				}
				continue
			}
			if got := strings.Contains(string(r.want(t, 200).body), "job.reference.unchecked"); got != c.unchecked {
				t.Errorf("%s as %s: unchecked %t: %s", c.run, c.as, got, r.body)
			}
		}
	}
	refusals := map[string]bool{}
	for _, run := range []string{theirs, missing} {
		r := g.submit("alice", withRefs(t, dialect.Forge, `"evaluation":{"baseline":"`+run+`"}`)).want(t, 422)
		var said struct{ Detail string }
		r.into(t, &said)
		refusals[strings.ReplaceAll(said.Detail, run, "RUN")] = true
	}
	if len(refusals) != 1 {
		t.Errorf("another's run is told from none: %v", refusals)
	}
}

// TestReportedStates goes through POST /api/jobs/{id}/state and GET /api/usage/mine as they stand on the wire.
func TestReportedStates(t *testing.T) {
	g := startGatehouse(t)
	g.send("admin", "POST", "/api/admin/quotas", map[string]any{"username": "alice", "max_concurrent_gpus": 16, "max_concurrent_jobs": 4, "allowed_profiles": []string{"h200"}}).want(t, 200)
	id := g.submitted("alice", jobSpec(t, dialect.Forge, "a"))
	usage := func(want string) {
		t.Helper()
		var got struct{ Usage json.RawMessage }
		g.get("alice", "/api/usage/mine").want(t, 200).into(t, &got)
		if string(got.Usage) != want {
			t.Errorf("usage %s, want %s", got.Usage, want)
		}
	}
	usage(`{"allowed_profiles":["h200"],"gpus_in_use":8,"jobs_in_use":1,"max_concurrent_gpus":16,"max_concurrent_jobs":4}`)
	report := func(state string) map[string]string {
		t.Helper()
		var got map[string]string
		g.send("admin", "POST", "/api/jobs/"+id+"/state", map[string]any{"state": state}).want(t, 200).into(t, &got)
		return got
	}
	got := report("running")
	if until, err := time.Parse(time.RFC3339, got["lease_until"]); err != nil || got["run_id"] != id || got["status"] != "running" || time.Until(until) < 23*time.Hour {
		t.Errorf("running: %v", got)
	}
	if diff := cmp.Diff(map[string]string{"run_id": id, "status": "failed", "lease_until": ""}, report("failed")); diff != "" {
		t.Error(diff)
	}
	usage(`{"allowed_profiles":["h200"],"gpus_in_use":0,"jobs_in_use":0,"max_concurrent_gpus":16,"max_concurrent_jobs":4}`)
	g.send("admin", "POST", "/api/jobs/"+id+"/state", map[string]any{"state": "running"}).want(t, 409)
	g.send("alice", "POST", "/api/jobs/"+id+"/state", map[string]any{"state": "failed"}).want(t, 403)
	for _, j := range g.jobs("alice") {
		if j.Status != string(registry.JobFailed) {
			t.Errorf("status %s", j.Status)
		}
	}
}
