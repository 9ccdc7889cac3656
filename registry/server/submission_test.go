package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// packIn is an algorithm pack of a dialect.
func packIn(d dialect.Dialect, name, version, more string) map[string]string {
	files := algorithm(name, version)
	if d == dialect.TunePlane {
		files = tuneplaneAlgorithm(name, version)
	}
	return with(files, "plugin.yaml", files["plugin.yaml"]+more)
}

// sendAs submits a spec the way the dialect's client does, and gives the first answer that refuses or the last one.
func (g *gatehouse) sendAs(as string, d dialect.Dialect, spec string) (string, reply) {
	g.tb.Helper()
	if d == dialect.Forge {
		return "/api/jobs", g.do(call{as: as, method: "POST", path: "/api/jobs", body: []byte(jobPackage(g.tb, "a")), header: map[string]string{"X-Forge-Meta": `{"profile": "h200", "spec": ` + spec + `}`}})
	}
	r := g.do(call{as: as, method: "POST", path: "/api/submissions/previews", body: []byte(previewBody(spec))})
	if r.status != http.StatusOK {
		return "/api/submissions/previews", r
	}
	var p preview
	r.into(g.tb, &p)
	return "/api/submissions/commits", g.commit(as, p, "preview:"+p.ID)
}

// TestSubmissionRefusals breaks a good submission one thing at a time, in both dialects, by the client's own way and in
// a dry run: each time the same rules, and a text that names all sides.
func TestSubmissionRefusals(t *testing.T) {
	g := startGatehouse(t)
	for _, d := range dialect.All {
		name := func(n string) string { return string(d) + "-" + n }
		good := g.published("alice", packIn(d, name("good"), "1.0.0", ""))
		twin := g.published("bob", packIn(d, name("good"), "1.0.0", "license: MIT\n"))
		cased := g.published("bob", packIn(d, name("Good"+"x"), "1.0.0", ""))
		folded := g.published("alice", packIn(d, name("goodx"), "1.0.0", ""))
		newer := g.published("alice", packIn(d, name("newer"), "1.0.0", "requires: {core: \">=7,<8\"}\n"))
		other := g.published("alice", packIn(d.Other(), name("other"), "1.0.0", ""))
		off := g.published("alice", packIn(d, name("off"), "1.0.0", ""))
		g.send("admin", "PATCH", "/api/plugins/alice/"+name("off"), map[string]any{"enabled": false}).want(t, 200)
		spec := func(plugins ...string) string { return jobSpec(t, d, "a", plugins...) }
		recipe := shippedRecipe(t, d)
		wrong := digest.FromBytes([]byte("wrong")).String()
		cases := []struct {
			name, spec, rule string
			says             []string
		}{
			{"good", spec(pinned(good)), "", nil},
			{"wrong digest", spec(plugin(good.ID, good.Version, wrong)), "job.plugins.record.digest", []string{wrong, good.Digest}},
			{"the tree's digest", spec(plugin(good.ID, good.Version, good.TreeDigest)), "job.plugins.record.digest", []string{good.TreeDigest, good.Digest}},
			{"unknown version", spec(plugin(good.ID, "1.0.1", good.Digest)), "job.plugins.record.unknown", []string{good.ID + "@1.0.1"}},
			{"equal but not the version", spec(plugin(good.ID, "1.0", good.Digest)), "job.plugins.record.unknown", nil},
			{"unknown plugin", spec(plugin("nobody/x", "1", good.Digest)), "job.plugins.record.unknown", []string{"nobody/x@1"}},
			{"disabled", spec(pinned(off)), "job.plugins.record.disabled", []string{off.ID}},
			{"one folder", spec(pinned(good), pinned(twin)), "job.plugins.leaf_collision", []string{good.ID, twin.ID}},
			{"one folder but for case", spec(pinned(folded), pinned(cased)), "job.plugins.leaf_collision.fold", []string{folded.ID, cased.ID}},
			{"core range", spec(pinned(newer)), "job.plugins.record.core", []string{">=7,<8"}},
			{"other dialect", spec(pinned(other)), "job.plugins.record.compat", []string{string(d), string(d.Other())}},
			{"recipe's digest", strings.Replace(spec(), recipe.Digest, wrong, 1), "job.handshake.recipe.digest", []string{wrong, recipe.Digest}},
			{"recipe's version", strings.Replace(spec(), `"version":"`+recipe.Version+`","digest":"`+recipe.Digest, `"version":"99.0","digest":"`+recipe.Digest, 1), "job.handshake.recipe.version", []string{"99.0", recipe.Version}},
			{"unknown recipe", strings.Replace(spec(), `"name":"`+recipe.Name+`"`, `"name":"verl/nothing"`, 1), "job.handshake.recipe.name", []string{"verl/nothing"}},
			{"series", strings.Replace(spec(), `"series":"h200"`, `"series":"b300"`, 1), "job.resources.series.exists", []string{"b300", "h200"}},
		}
		for _, c := range cases {
			t.Run(string(d)+"/"+c.name, func(t *testing.T) {
				g := g.in(t)
				path, r := g.sendAs("alice", d, c.spec)
				var dry decision
				g.do(call{as: "alice", method: "POST", path: "/api/admission", body: []byte(c.spec)}).want(t, 200).into(t, &dry)
				if c.rule == "" {
					r.want(t, 200)
					if !dry.Allowed || len(dry.Violations) > 0 {
						t.Errorf("dry run: %+v", dry)
					}
					return
				}
				got := r.refused(t, path, http.StatusUnprocessableEntity)
				// The dry run has nothing beside the spec that could disagree with it.
				rules := slices.DeleteFunc(got.Decision.rules(), func(id string) bool { return id == "job.meta.agree" })
				if !slices.Contains(rules, c.rule) || !slices.Equal(rules, dry.rules()) || dry.Allowed {
					t.Errorf("rules %q, dry run %q, want %q among both", rules, dry.rules(), c.rule)
				}
				for _, word := range c.says {
					if !strings.Contains(got.Detail, word) {
						t.Errorf("%q does not name %s", got.Detail, word)
					}
				}
				if title, bullets, ok := strings.Cut(got.Detail, "\n- "); !ok || title == "" || bullets == "" {
					t.Errorf("no title and bullets: %q", got.Detail)
				}
			})
		}
		if got := len(g.jobs("alice")); got != 1 {
			t.Errorf("%s: %d jobs, want the good one", d, got)
		}
		g.stopAll("alice")
	}
}

// jobs are the account's jobs that were not stopped.
func (g *gatehouse) jobs(as string) []wire.Job {
	g.tb.Helper()
	var list wire.JobList
	g.get(as, "/api/jobs/mine?limit=200").want(g.tb, 200).into(g.tb, &list)
	return slices.DeleteFunc(list.Jobs, func(j wire.Job) bool { return j.Status == "stopped" })
}

func (g *gatehouse) stopAll(as string) {
	g.tb.Helper()
	for _, j := range g.jobs(as) {
		g.do(call{as: as, method: "POST", path: "/api/job/stop?id=" + j.RunID}).want(g.tb, 200)
	}
}

// TestForgeHeader sends the spec as sf does: in a header, as Latin-1, with the package as the body.
func TestForgeHeader(t *testing.T) {
	g := startGatehouse(t)
	spec := strings.Replace(jobSpec(t, dialect.Forge, "a"), `"metadata":{`, `"metadata":{"display_name":"café ÿ",`, 1)
	meta := `{"exp": "experiments/a", "profile": "h200", "git_commit": "0123", "spec": ` + spec + `}`
	latin1 := make([]byte, 0, len(meta))
	for _, r := range meta {
		latin1 = append(latin1, byte(r))
	}
	var job wire.Submitted
	g.do(call{as: "alice", method: "POST", path: "/api/jobs", body: []byte(jobPackage(t, "a")), header: map[string]string{"X-Forge-Meta": string(latin1)}}).want(t, 200).into(t, &job)
	if job.GPUs != 8 || !job.Queued || job.RunID == "" || job.Warnings == nil {
		t.Errorf("%+v", job)
	}
	if stored := g.get("alice", "/api/jobs/"+job.RunID+"/spec").want(t, 200).body; !bytes.Contains(stored, []byte("café ÿ")) && !bytes.Contains(stored, []byte(`caf\u00e9 \u00ff`)) {
		t.Errorf("stored: %s", stored)
	}
	var row wire.Job
	g.get("alice", "/api/jobs/"+job.RunID).want(t, 200).into(t, &row)
	if row.Package != digest.FromBytes([]byte(jobPackage(t, "a"))).String() || row.Exp != "experiments/a" || row.Owner != "alice" {
		t.Errorf("%+v", row)
	}
	for what, meta := range map[string]string{
		"another experiment": strings.Replace(meta, `"exp": "experiments/a"`, `"exp": "experiments/b"`, 1),
		"an unknown profile": strings.Replace(meta, `"profile": "h200"`, `"profile": "b300"`, 1),
		"tuneplane's spec":   `{"spec":` + jobSpec(t, dialect.TunePlane, "a") + `}`,
	} {
		latin1 := strings.Map(func(r rune) rune { return min(r, 'x') }, meta)
		g.do(call{as: "alice", method: "POST", path: "/api/jobs", body: []byte("p"), header: map[string]string{"X-Forge-Meta": latin1}}).refused(t, "/api/", 422)
		if got := len(g.jobs("alice")); got != 1 {
			t.Errorf("%s: %d jobs", what, got)
		}
	}
}

// TestMetaHoldsNoSpec: whichever case the member has that the spec was read from, what is kept beside the stored spec holds no
// other copy of it.
func TestMetaHoldsNoSpec(t *testing.T) {
	g := startGatehouse(t)
	spec := jobSpec(t, dialect.Forge, "a")
	for _, name := range []string{"spec", "SPEC", `\u017fpec`} {
		var job wire.Submitted
		meta := `{"` + name + `":` + spec + `,"git":"0123"}`
		g.do(call{as: "alice", method: "POST", path: "/api/jobs", body: []byte(jobPackage(t, "a")), header: map[string]string{"X-Forge-Meta": meta}}).want(t, 200).into(t, &job)
		var row wire.Job
		g.get("alice", "/api/jobs/"+job.RunID).want(t, 200).into(t, &row)
		if string(row.Meta) != `{"git":"0123"}` {
			t.Errorf("%s: kept %s", name, row.Meta)
		}
	}
}

// TestReceipt verifies what an admitted job gets, offline (design.md 3).
func TestReceipt(t *testing.T) {
	g := startGatehouse(t)
	a := g.published("alice", algorithm("one", "1.0.0"))
	b := g.published("bob", algorithm("two", "2.0.0"))
	trust, err := receipt.ParseTrust(g.get("vera", "/api/trust").want(t, 200).body)
	if err != nil {
		t.Fatal(err)
	}
	id := g.submitted("alice", jobSpec(t, dialect.Forge, "a", pinned(a), pinned(b)))
	g.send("admin", "PATCH", "/api/plugins/alice/one", map[string]any{"enabled": false}).want(t, 200)
	envelope := g.get("alice", "/api/jobs/"+id+"/receipt").want(t, 200).body
	r, err := receipt.Verify(envelope, trust, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	spec := g.get("alice", "/api/jobs/"+id+"/spec").want(t, 200).body
	if r.SpecBytes != digest.FromBytes(spec) || r.Job != id || r.Dialect != dialect.Forge || r.Audience == "" || !r.JobPackage.IsZero() {
		t.Errorf("%+v of %s", r, spec)
	}
	if !bytes.Contains(spec, []byte(`"owner":"alice"`)) {
		t.Errorf("the owner is not stamped: %s", spec)
	}
	if len(r.Plugins) != 2 {
		t.Fatalf("pins %+v", r.Plugins)
	}
	for i, p := range []wire.Plugin{a, b} {
		got := r.Plugins[i]
		if got.ID != p.ID || got.Version != p.Version || got.Kind != p.Kind || got.Content.String() != p.Digest || got.Tree.String() != p.TreeDigest || got.Manifest.String() != p.ManifestDigest {
			t.Errorf("pin %+v, published %+v", got, p)
		}
		manifest := g.get("vera", "/v2/"+p.ID+"/manifests/"+got.Manifest.String()).want(t, 200).body
		if digest.FromBytes(manifest) != got.Manifest {
			t.Errorf("%s: the manifest is not the one that is pinned", p.ID)
		}
	}
	if _, err := receipt.Verify(bytes.Replace(envelope, []byte(`"payload":"`), []byte(`"payload":"A`), 1), trust, "", time.Now()); err == nil {
		t.Error("a changed receipt verifies")
	}
	if _, err := receipt.Verify(envelope, trust, "another registry", time.Now()); err == nil {
		t.Error("a receipt for another registry verifies")
	}
	if _, err := receipt.Verify(envelope, trust, "", time.Now().Add(31*24*time.Hour)); err == nil {
		t.Error("an expired receipt verifies")
	}
}

// upload is a package upload of tp's.
type upload struct{ ID, Token string }

func (g *gatehouse) startPackage(as, content string) upload {
	g.tb.Helper()
	var u upload
	g.send(as, "POST", "/api/submissions/uploads", map[string]any{"digest": digest.FromBytes([]byte(content)).Hex(), "size": len(content)}).want(g.tb, 201).into(g.tb, &u)
	return u
}

func (g *gatehouse) putPackage(as string, u upload, content string) reply {
	g.tb.Helper()
	return g.do(call{as: as, method: "PUT", path: "/api/submissions/uploads/" + u.ID, body: []byte(content), header: map[string]string{"X-Upload-Token": u.Token, "Content-Type": "application/gzip"}})
}

// TestTuneplaneSubmission goes through upload, preview and commit.
func TestTuneplaneSubmission(t *testing.T) {
	g := startGatehouse(t)
	p := g.published("alice", tuneplaneAlgorithm("tuned", "1.0.0"))
	spec := jobSpec(t, dialect.TunePlane, "a", pinned(p))

	content := jobPackage(t, "a")
	u := g.startPackage("alice", content)
	g.putPackage("alice", upload{u.ID, "other"}, content).refused(t, "/api/", 403)
	g.putPackage("alice", u, strings.Replace(content, content[20:21], string(content[20]+1), 1)).refused(t, "/api/", 400)
	g.putPackage("alice", u, content+"more").refused(t, "/api/", 400)
	g.putPackage("alice", u, content[:4]).refused(t, "/api/", 400)
	g.putPackage("bob", u, content).refused(t, "/api/", 404)
	withSource := previewBody(spec, `,"source":{"upload":"`+u.ID+`"}`)
	g.do(call{as: "alice", method: "POST", path: "/api/submissions/previews", body: []byte(withSource)}).refused(t, "/api/", 409)
	source := g.putPackage("alice", u, content).want(t, 200).body
	g.putPackage("alice", u, content).want(t, 200)

	withSource = previewBody(spec, `,"source":`+string(source))
	var pv preview
	g.do(call{as: "alice", method: "POST", path: "/api/submissions/previews", body: []byte(withSource)}).want(t, 200).into(t, &pv)
	if len(pv.ID) != 32 || strings.Trim(pv.ID, "0123456789abcdef") != "" || pv.Resolved.Execution.GPUs != 8 {
		t.Errorf("preview %+v", pv)
	}
	if got := len(g.jobs("alice")); got != 0 {
		t.Errorf("%d jobs before the commit", got)
	}
	changed := pv
	changed.Digest = digest.FromBytes([]byte("x")).String()
	g.commit("alice", changed, "k").refused(t, "/api/", 409)
	g.commit("bob", pv, "k").refused(t, "/api/", 404)
	first := g.commit("alice", pv, "preview:"+pv.ID).want(t, 200).body
	for _, key := range []string{"preview:" + pv.ID, "another", ""} {
		if again := g.commit("alice", pv, key).want(t, 200).body; !bytes.Equal(again, first) {
			t.Errorf("key %q: %s, then %s", key, first, again)
		}
	}
	jobs := g.jobs("alice")
	if len(jobs) != 1 || jobs[0].Package != digest.FromBytes([]byte(content)).String() || jobs[0].Dialect != dialect.TunePlane {
		t.Fatalf("jobs %+v", jobs)
	}
	if stored := g.get("alice", "/api/jobs/"+jobs[0].RunID+"/spec").want(t, 200).body; !jsonEqual(t, stored, pv.Resolved.Spec) {
		t.Errorf("stored %s, previewed %s", stored, pv.Resolved.Spec)
	}
}

func jsonEqual(tb testing.TB, a, b []byte) bool {
	tb.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

// TestCommitChecksAgain commits what has become wrong since its preview.
func TestCommitChecksAgain(t *testing.T) {
	g := startGatehouse(t)
	p := g.published("alice", tuneplaneAlgorithm("tuned", "1.0.0"))
	spec := jobSpec(t, dialect.TunePlane, "a", pinned(p))
	enable := func(on bool) {
		g.send("admin", "PATCH", "/api/plugins/"+p.ID, map[string]any{"enabled": on}).want(t, 200)
	}

	pv := g.previewed("alice", spec)
	enable(false)
	if got := g.commit("alice", pv, "k").refused(t, "/api/", 422); !slices.Contains(got.Decision.rules(), "job.plugins.record.disabled") {
		t.Errorf("rules %q", got.Decision.rules())
	}
	enable(true)
	g.commit("alice", pv, "k").want(t, 200)
	enable(false) // blocks new submissions only
	g.commit("alice", pv, "k").want(t, 200)
	enable(true)

	second := g.previewed("alice", spec)
	if got := g.commit("alice", second, "k").refused(t, "/api/", 409); !strings.Contains(got.Detail, "another preview") {
		t.Errorf("a key that is used: %q", got.Detail)
	}
	g.ahead.Add(int64(time.Hour + time.Second))
	if got := g.commit("alice", second, "k2").refused(t, "/api/", 404); !strings.Contains(got.Detail, "expired") {
		t.Errorf("expired: %q", got.Detail)
	}
	g.commit("alice", pv, "k").want(t, 200) // what was committed stays answered

	u := g.startPackage("alice", "package")
	g.ahead.Add(int64(24*time.Hour + time.Second))
	g.putPackage("alice", u, "package").refused(t, "/api/", 404)
	if n, err := g.server.Service().Expire(t.Context()); err != nil {
		t.Errorf("expire: %d, %v", n, err)
	}
	g.commit("alice", second, "k2").refused(t, "/api/", 404)
	g.commit("alice", pv, "k").want(t, 200)
}

// TestOnePreviewOneJob commits one preview at once with many keys.
func TestOnePreviewOneJob(t *testing.T) {
	g := startGatehouse(t)
	pv := g.previewed("alice", jobSpec(t, dialect.TunePlane, "a"))
	answers := make([]reply, 16)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = g.commit("alice", pv, fmt.Sprint("key ", i)) })
	}
	wg.Wait()
	for _, r := range answers {
		if r.want(t, 200); !bytes.Equal(r.body, answers[0].body) {
			t.Errorf("%s and %s", r.body, answers[0].body)
		}
	}
	if got := len(g.jobs("alice")); got != 1 {
		t.Errorf("%d jobs of one preview", got)
	}
}

// TestQuota reserves GPUs until a job stops or its lease ends.
func TestQuota(t *testing.T) {
	g := startGatehouse(t)
	g.send("admin", "POST", "/api/admin/quotas", map[string]any{"username": "alice", "max_concurrent_gpus": 8, "priority": 3}).want(t, 200)
	spec := jobSpec(t, dialect.Forge, "a")
	refused := func() {
		t.Helper()
		if got := g.submit("alice", spec).refused(t, "/api/", 422); !slices.Equal(got.Decision.rules(), []string{"job.quota.gpus"}) {
			t.Errorf("rules %q", got.Decision.rules())
		}
	}
	id := g.submitted("alice", spec)
	refused()
	g.submitted("bob", spec)
	g.do(call{as: "alice", method: "POST", path: "/api/job/stop?id=" + id}).want(t, 200)
	g.submitted("alice", spec)
	refused()
	g.ahead.Add(int64(24*time.Hour + time.Second))
	g.submitted("alice", spec)
	var usage struct {
		Quota struct{ Priority int }
		Usage struct {
			InUse int `json:"gpus_in_use"`
		}
	}
	g.get("alice", "/api/usage/mine").want(t, 200).into(t, &usage)
	if usage.Usage.InUse != 8 || usage.Quota.Priority != 3 {
		t.Errorf("usage %+v", usage)
	}
}

// TestQuotaHoldsAtOnce submits more than the quota allows at the same moment.
func TestQuotaHoldsAtOnce(t *testing.T) {
	g := startGatehouse(t)
	g.send("admin", "POST", "/api/admin/quotas", map[string]any{"username": "alice", "max_concurrent_gpus": 24}).want(t, 200)
	spec := jobSpec(t, dialect.Forge, "a")
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() { g.submit("alice", spec) })
	}
	wg.Wait()
	if got := len(g.jobs("alice")); got != 3 {
		t.Errorf("%d jobs of 8 GPUs fit into 24", got)
	}
}
