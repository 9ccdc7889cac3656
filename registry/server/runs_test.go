package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// withJob is a server with a job of alice's that uses packs of hers and of bob's.
func withJob(t *testing.T) (g *gatehouse, job string) {
	g = startGatehouse(t)
	own, other := g.published("alice", algorithm("own", "1.0.0")), g.published("bob", algorithm("other", "2.0.0"))
	return g, g.submitted("alice", jobSpec(t, dialect.Forge, "a", pinned(own), pinned(other)))
}

// list asks for a page of runs.
func (g *gatehouse) list(as, query string) wire.RunList {
	g.tb.Helper()
	var out wire.RunList
	g.get(as, "/api/runs?"+query).want(g.tb, http.StatusOK).into(g.tb, &out)
	return out
}

// TestRunOfAJob follows a run from its start to its end: what it says of its job, and that what was said before changes nothing.
func TestRunOfAJob(t *testing.T) {
	g, job := withJob(t)
	g.node("box")
	key := g.joined(aNode)
	p := g.predicate(job)
	started, ended := signed(t, begun(p), key), signed(t, p, key)
	lease := func() time.Duration {
		var out struct {
			Usage struct {
				Jobs int `json:"jobs_in_use"`
			}
		}
		g.get("alice", "/api/usage/mine").want(t, http.StatusOK).into(t, &out)
		return time.Duration(out.Usage.Jobs)
	}
	for _, step := range []struct {
		what       string
		send       []byte
		state, job string
	}{{"started", started, "started", "running"}, {"started again", started, "started", "running"}, {"ended", ended, "ended", "succeeded"}, {"ended again", ended, "ended", "succeeded"}, {"the start again, late", started, "ended", "succeeded"}} {
		var got wire.RunReceived
		g.record(aNode, step.send).want(t, http.StatusOK).into(t, &got)
		if want := (wire.RunReceived{ID: p.Run, State: step.state, Attested: true}); got != want {
			t.Errorf("%s: got %+v, want %+v", step.what, got, want)
		}
		if got := g.stateOf(job); got != step.job {
			t.Errorf("%s: the job is %s, want %s", step.what, got, step.job)
		}
	}
	if lease() != 0 {
		t.Error("the job holds its GPUs after its run has ended")
	}
	var run wire.Run
	g.get("audrey", "/api/runs/"+p.Run).want(t, http.StatusOK).into(t, &run)
	if len(run.Envelopes) != 2 || string(run.Envelopes[0].Envelope) != string(started) || string(run.Envelopes[1].Envelope) != string(ended) {
		t.Errorf("the envelopes are not those that were sent: %s", jsonText(t, run))
	}
	public, err := receipt.ParseTrust([]byte(run.Keys[0].PublicKey))
	if err != nil || run.Keys[0].ID != run.Key {
		t.Fatalf("key %+v of the run, %v", run.Keys, err)
	}
	if _, id, err := runrecord.Open(run.Envelopes[1].Envelope, public); err != nil || id != run.Key {
		t.Errorf("the stored envelope does not verify with the node's key: %v", err)
	}
	if run.Node != "box" || run.Account != "alice" || run.Job != job || run.ExitCode == nil || *run.ExitCode != 0 || run.Mode != "root" || len(run.Packs) != 2 {
		t.Errorf("run: %s", jsonText(t, run))
	}
}

// TestRunsOfSeveralNodes holds that a job has ended when the last of its runs that started is over, and badly if one of them
// failed; a refusal says nothing of it.
func TestRunsOfSeveralNodes(t *testing.T) {
	g, job := withJob(t)
	g.node("box")
	key := g.joined(aNode)
	first, second, third := g.predicate(job), g.predicate(job), g.predicate(job)
	refused := runrecord.Predicate{
		Run: third.Run, State: runrecord.StateRefused, Agent: "test", Node: third.Node, Registry: third.Registry, Job: job, Dialect: third.Dialect,
		SpecBytes: third.SpecBytes, Receipt: third.Receipt, Problem: "no namespaces here", EndedAt: third.EndedAt, ExitCode: new(1),
	}
	*first.ExitCode = 3
	for _, step := range []struct {
		what string
		p    runrecord.Predicate
		want string
	}{
		{"refused", refused, "admitted"}, {"the first starts", begun(first), "running"}, {"the second starts", begun(second), "running"},
		{"the first ends", first, "running"}, {"the second ends", second, "failed"},
	} {
		g.record(aNode, signed(t, step.p, key)).want(t, http.StatusOK)
		if got := g.stateOf(job); got != step.want {
			t.Errorf("%s: the job is %s, want %s", step.what, got, step.want)
		}
	}
	for state, want := range map[string]int{"refused": 1, "ended": 2, "started": 0, "": 3} {
		if got := len(g.list("admin", "job="+job+"&state="+state).Runs); got != want {
			t.Errorf("%d runs in the state %q, want %d", got, state, want)
		}
	}
}

// TestRunsThatAreRefused sends what is not as the registry knows it.
func TestRunsThatAreRefused(t *testing.T) {
	g, job := withJob(t)
	g.node("box")
	key, strange := g.joined(aNode), g.joined(func() string { return g.node("other").Account }())
	base := g.predicate(job)
	other := g.submitted("bob", jobSpec(t, dialect.Forge, "b"))
	change := func(edit func(*runrecord.Predicate)) []byte {
		p := g.predicate(job)
		p.Plugins = slices.Clone(p.Plugins)
		edit(&p)
		return signed(t, p, key)
	}
	wordy := g.predicate(g.submitted("alice", jobSpec(t, dialect.Forge, "w")))
	for i := range 500 {
		wordy.SetEnv = append(wordy.SetEnv, fmt.Sprintf("%0250d", i))
		wordy.RemovedEnv = append(wordy.RemovedEnv, fmt.Sprintf("%0250d", i))
	}
	large := signed(t, wordy, strange)
	g.record(aNode, signed(t, wordy, key)).want(t, http.StatusOK)
	tampered := []byte(strings.Replace(string(signed(t, base, key)), `"sig":"`, `"sig":"AAAA`, 1))
	for _, test := range []struct {
		what   string
		as     string
		send   []byte
		status int
		says   string
	}{
		{"no envelope", aNode, []byte("{}"), http.StatusUnprocessableEntity, "run record"},
		{"another registry", aNode, change(func(p *runrecord.Predicate) { p.Registry = "elsewhere" }), http.StatusUnprocessableEntity, "elsewhere"},
		{"an unknown job", aNode, change(func(p *runrecord.Predicate) { p.Job = "run-none" }), http.StatusNotFound, "run-none"},
		{"another spec", aNode, change(func(p *runrecord.Predicate) { p.SpecBytes = digest.FromBytes(nil) }), http.StatusUnprocessableEntity, "specBytes"},
		{"another receipt", aNode, change(func(p *runrecord.Predicate) { p.Receipt = digest.FromBytes(nil) }), http.StatusUnprocessableEntity, "receipt"},
		{"another digest", aNode, change(func(p *runrecord.Predicate) { p.Plugins[0].Tree = digest.FromBytes(nil) }), http.StatusUnprocessableEntity, "alice/own: the record says 1.0.0"},
		{"a pack less", aNode, change(func(p *runrecord.Predicate) { p.Plugins = p.Plugins[:1] }), http.StatusUnprocessableEntity, "bob/other@2.0.0: the receipt"},
		{"a pack more", aNode, change(func(p *runrecord.Predicate) {
			p.Plugins = append(p.Plugins, receipt.Pin{ID: "eve/x", Version: "1", Kind: "algorithm", Content: p.Plugins[0].Content, Tree: p.Plugins[0].Tree, Manifest: p.Plugins[0].Manifest})
		}), http.StatusUnprocessableEntity, "eve/x@1: the receipt"},
		{"a recipe pack that no receipt pins, seventeen times", aNode, change(func(p *runrecord.Predicate) {
			for i := range 17 {
				p.Recipes = append(p.Recipes, receipt.Pin{ID: fmt.Sprint("e/", i), Version: "1", Kind: "recipe", Content: p.Plugins[0].Content})
			}
		}), http.StatusUnprocessableEntity, "recipes: 17 are pinned by no receipt"},
		{"a large one that nobody vouches for", "alice", large, http.StatusRequestEntityTooLarge, "no node's key signed"},
		{"a signature that is not the key's", aNode, tampered, http.StatusForbidden, "it names a key of node box"},
		{"another node's name", aNode, change(func(p *runrecord.Predicate) { p.Node.Name = "other" }), http.StatusForbidden, "node.name"},
		{"somebody else's job", "bob", g.statement("bob", job), http.StatusNotFound, job},
		{"a viewer", "vera", g.statement("vera", job), http.StatusForbidden, "runs:write"},
	} {
		r := g.record(test.as, test.send)
		if r.status != test.status || !strings.Contains(string(r.body), test.says) {
			t.Errorf("%s: status %d, want %d with %q: %.500s", test.what, r.status, test.status, test.says, r.body)
		}
	}
	if got := g.list("admin", ""); len(got.Runs) != 1 {
		t.Errorf("refused runs are kept: %s", jsonText(t, got))
	}
	// What a node signs with a key that is another's, or that says so itself, is kept and vouched for by nobody.
	var got wire.RunReceived
	g.record(aNode, signed(t, base, strange)).want(t, http.StatusOK).into(t, &got)
	if got.Attested || g.stateOf(job) != "admitted" {
		t.Errorf("a statement that none of the node's keys signed: %+v, the job is %s", got, g.stateOf(job))
	}
	asserted := g.predicate(job)
	asserted.Node.SelfAsserted = true
	g.record(aNode, signed(t, asserted, key)).want(t, http.StatusOK).into(t, &got)
	if got.Attested || g.stateOf(job) != "admitted" {
		t.Errorf("a statement that calls itself self-asserted: %+v, the job is %s", got, g.stateOf(job))
	}
	own := g.submitted("alice", jobSpec(t, dialect.Forge, "own"))
	said := g.predicate(own)
	for _, p := range []runrecord.Predicate{begun(said), said} { // it holds her GPUs, and frees none
		g.record("alice", signed(t, p, strange)).want(t, http.StatusOK)
		if got := g.stateOf(own); got != "running" {
			t.Errorf("what alice says of her own job: it is %s", got)
		}
	}
	// One run is of one job and told by one account.
	again := base
	again.Run = asserted.Run
	if r := g.record("node/other", signed(t, again, strange)); r.status != http.StatusForbidden {
		t.Errorf("a run that another node told: status %d", r.status)
	}
	again.Node.Name = "other"
	if r := g.record("node/other", signed(t, again, strange)); r.status != http.StatusConflict {
		t.Errorf("a run that another node told: status %d", r.status)
	}
	theirs := g.predicate(other)
	theirs.Run = asserted.Run
	if r := g.record("bob", signed(t, theirs, strange)); r.status != http.StatusConflict {
		t.Errorf("the id of a run of another job: status %d", r.status)
	}
}

// TestBlastRadius finds the runs that used a version, by its name and by each digest, a page at a time, and who sees what of
// them.
func TestBlastRadius(t *testing.T) {
	g, job := withJob(t)
	elsewhere := g.submitted("alice", jobSpec(t, dialect.Forge, "b"))
	g.recorded("alice", elsewhere)
	var ids []string
	for range 5 {
		ids = append([]string{g.recorded("alice", job)}, ids...)
	}
	var paged []string
	for cursor := ""; ; {
		page := g.list("admin", "plugin=bob/other@2.0.0&limit=2&cursor="+cursor)
		for _, run := range page.Runs {
			paged = append(paged, run.ID)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if !slices.Equal(paged, ids) {
		t.Errorf("pages of runs: %v, want %v", paged, ids)
	}
	used := g.list("admin", "plugin=bob/other@2.0.0&limit=1").Runs[0]
	for _, d := range []digest.Digest{used.Packs[1].Content, used.Packs[1].Tree, used.Packs[1].Manifest} {
		if got := g.list("audrey", "digest="+d.String()); len(got.Runs) != 5 {
			t.Errorf("digest %s: %d runs, want 5", d, len(got.Runs))
		}
	}
	if used.Packs[0].ID != "alice/own" || used.Job != job {
		t.Errorf("what else a run used: %s", jsonText(t, used))
	}
	// The owner of a pack sees that runs of others used it, and nothing else of them.
	seen := g.list("bob", "plugin=bob/other@2.0.0")
	if len(seen.Runs) != 5 {
		t.Fatalf("bob sees %d runs", len(seen.Runs))
	}
	for _, run := range seen.Runs {
		if run.Job != "" || run.Account != "" || run.Node != "" || len(run.Packs) != 1 || run.Packs[0].ID != "bob/other" || run.StartedAt == "" {
			t.Errorf("bob sees of a run of alice's: %s", jsonText(t, run))
		}
	}
	var one wire.Run
	g.get("bob", "/api/runs/"+ids[0]).want(t, http.StatusOK).into(t, &one)
	if len(one.Envelopes)+len(one.Statements)+len(one.Keys) != 0 || one.Sender != "" || one.Key != "" || one.Job != "" || len(one.Packs) != 1 {
		t.Errorf("bob sees of one run of alice's: %s", jsonText(t, one))
	}
	for query, want := range map[string]int{"": 0, "plugin=bob/other@2.0.0&job=" + job: 0, "plugin=alice/own@1.0.0": 0, "digest=" + used.Packs[1].Tree.String(): 0, "plugin=bob/other@2.0.0&node=box": 0} {
		if got := g.list("bob", query); len(got.Runs) != want {
			t.Errorf("bob asks for %q: %d runs, want %d", query, len(got.Runs), want)
		}
	}
	if got := g.list("alice", ""); len(got.Runs) != 6 || got.Runs[0].Job != job {
		t.Errorf("alice's runs: %s", jsonText(t, got))
	}
	for _, query := range []string{"plugin=bob", "plugin=bob/other", "state=odd", "digest=x", "limit=x"} {
		g.get("admin", "/api/runs?"+query).want(t, http.StatusUnprocessableEntity)
	}
}
