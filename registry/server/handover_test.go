package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/handover"
	"github.com/gatehouse-registry/gatehouse/registry/server"
	"github.com/gatehouse-registry/gatehouse/registry/webhook"
)

// platform is a server that events are delivered to.
type platform struct {
	*httptest.Server
	mu     sync.Mutex
	heard  []handover.Document // of 2xx answers, in their order
	status func(handover.Document) int
}

func startPlatform(t *testing.T) *platform {
	p := &platform{status: func(handover.Document) int { return http.StatusOK }}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var d handover.Document
		body, err := io.ReadAll(r.Body)
		if err = errors.Join(err, json.Unmarshal(body, &d)); err != nil {
			t.Error(err)
		}
		status := p.status(d)
		if status < 300 {
			p.mu.Lock()
			p.heard = append(p.heard, d)
			p.mu.Unlock()
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(p.Close)
	return p
}

// events are the ids of what the platform took.
func (p *platform) events() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make([]string, len(p.heard))
	for i, d := range p.heard {
		ids[i] = d.ID
	}
	return ids
}

// target is the platform as a server delivers to it.
func (p *platform) target(t *testing.T, parallel int) registry.HandoverTarget {
	t.Helper()
	to, err := handover.NewWebhook(webhook.Target{URL: p.URL, Secret: "a secret of enough bytes", Timeout: time.Minute}, "")
	if err != nil {
		t.Fatal(err)
	}
	return registry.HandoverTarget{Name: "hook", To: to, Timeout: time.Minute, GiveUp: time.Hour, Parallel: parallel}
}

func withTargets(targets ...registry.HandoverTarget) func(*setup) {
	return func(s *setup) { s.change = func(d *registry.Deps) { d.Handover = targets } }
}

// until waits for what is certain to come.
func until(t *testing.T, what string, came func() bool) {
	t.Helper()
	eventually(t, func() error {
		if !came() {
			return errors.New(what + ": it never came")
		}
		return nil
	})
}

// outbox is the rows that a query gives.
func (g *gatehouse) outbox(query string) []wire.Handover {
	g.tb.Helper()
	var list wire.HandoverList
	g.get("audrey", "/api/admin/handover"+query).want(g.tb, 200).into(g.tb, &list)
	return list.Handovers
}

// settledOutbox waits until no row is pending.
func (g *gatehouse) settledOutbox(t *testing.T) {
	t.Helper()
	until(t, "the outbox is empty", func() bool { return len(g.outbox("?state=pending&limit=1")) == 0 })
}

// TestHandover submits a job of each dialect and finds it, byte for byte, at both targets.
func TestHandover(t *testing.T) {
	dir, p := t.TempDir(), startPlatform(t)
	folder := registry.HandoverTarget{Name: "folder", To: handover.Directory{Path: dir, Package: true}, Timeout: time.Minute, GiveUp: time.Hour}
	g := startGatehouse(t, withTargets(p.target(t, 2), folder))
	trust, err := receipt.ParseTrust(g.get("vera", "/api/trust").want(t, 200).body)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dialect.All {
		var job wire.Submitted
		_, r := g.sendAs("alice", d, jobSpec(t, d, "a"))
		r.want(t, 200).into(t, &job)
		g.settledOutbox(t)
		spec := g.get("alice", "/api/jobs/"+job.RunID+"/spec").want(t, 200).body
		read := func(name string) []byte {
			b, err := os.ReadFile(filepath.Join(dir, job.RunID, name))
			if err != nil {
				t.Error(err)
			}
			return b
		}
		if !bytes.Equal(read(handover.SpecFile), spec) {
			t.Errorf("%s: the folder holds another spec", d)
		}
		if _, err := receipt.Verify(read(handover.ReceiptFile), trust, "", time.Now()); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		heard := p.heard[len(p.heard)-1]
		if !bytes.Equal(heard.Spec, spec) || heard.Job.RunID != job.RunID || heard.Job.Dialect != d || heard.Job.Account != "alice" || !strings.Contains(string(heard.Job.Meta), `"profile":"h200"`) {
			t.Errorf("%s: the platform heard %+v", d, heard)
		}
		if _, err := receipt.Verify(heard.Receipt, trust, "", time.Now()); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		if d == dialect.Forge { // it came with a package
			content := g.get("audrey", "/api/jobs/"+job.RunID+"/package").want(t, 200).body
			if string(content) != jobPackage(t, "a") || !bytes.Equal(read(handover.PackageFile), content) || heard.Package.Size != int64(len(content)) {
				t.Errorf("the package is another: %+v", heard.Package)
			}
		}
		rows := g.outbox("?job=" + job.RunID)
		if len(rows) != 2 || rows[0].State != "delivered" || rows[0].Tries != 1 || rows[1].State != "delivered" || rows[1].Tries != 1 {
			t.Errorf("rows %+v", rows)
		}
		g.stopAll("alice")
		g.settledOutbox(t)
		if heard := p.heard[len(p.heard)-1]; heard.Event != registry.EventCancelled || heard.Job.RunID != job.RunID || heard.Spec != nil {
			t.Errorf("%s: after the stop the platform heard %+v", d, heard)
		}
		g.stopAll("alice") // again: nothing more
		if rows := g.outbox("?job=" + job.RunID); len(rows) != 4 {
			t.Errorf("rows after the stop: %+v", rows)
		}
	}
}

// TestRefusedIsNotHandedOver: what the gate refuses, or a dry run admits, no platform hears of.
func TestRefusedIsNotHandedOver(t *testing.T) {
	p := startPlatform(t)
	g := startGatehouse(t, withTargets(p.target(t, 2)))
	spec := jobSpec(t, dialect.Forge, "a")
	g.do(call{as: "alice", method: "POST", path: "/api/admission", body: []byte(spec)}).want(t, 200)
	g.submit("alice", strings.Replace(spec, `"series":"h200"`, `"series":"b300"`, 1)).refused(t, "/api/", 422)
	id := g.submitted("alice", spec)
	g.settledOutbox(t)
	if got := p.events(); !slices.Equal(got, []string{id + ".admitted.hook"}) {
		t.Errorf("the platform heard %q", got)
	}
}

// TestHandoverRetries has a platform that is broken for a while, and one that refuses for good.
func TestHandoverRetries(t *testing.T) {
	p := startPlatform(t)
	var mu sync.Mutex
	answers := []int{500, 302, 200}
	p.status = func(handover.Document) int {
		mu.Lock()
		defer mu.Unlock()
		a := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		return a
	}
	say := func(status ...int) {
		mu.Lock()
		defer mu.Unlock()
		answers = status
	}
	g := startGatehouse(t, withTargets(p.target(t, 1)))
	id := g.submitted("alice", jobSpec(t, dialect.Forge, "a")) + ".admitted.hook"
	row := func() (h wire.Handover) {
		g.get("audrey", "/api/admin/handover/"+id).want(t, 200).into(t, &h)
		return h
	}
	for tries := 1; tries <= 2; tries++ {
		until(t, "a try that failed", func() bool { h := row(); return h.Tries == tries && h.HeldUntil == "" })
		if h := row(); h.State != "pending" || !strings.Contains(h.LastError, "answered") {
			t.Errorf("after %d tries: %+v", tries, h)
		}
		g.ahead.Add(int64(time.Duration(tries) * time.Second)) // no longer pause is made
	}
	g.settledOutbox(t)
	if h := row(); h.State != "delivered" || h.Tries != 3 || h.LastError != "" || len(p.events()) != 1 {
		t.Errorf("in the end: %+v, heard %q", h, p.events())
	}
	retry := func(body string) reply {
		return g.do(call{as: "admin", method: "POST", path: "/api/admin/handover", body: []byte(body)})
	}
	retry(`{"id":"`+id+`"}`).refused(t, "/api/", 409)
	retry(`{"id":"x"}`).refused(t, "/api/", 404)
	retry(`{}`).refused(t, "/api/", 422)

	say(422)
	id = g.submitted("alice", jobSpec(t, dialect.Forge, "b")) + ".admitted.hook"
	until(t, "given up", func() bool { return row().State == "dead" })
	if dead := g.outbox("?state=dead"); len(dead) != 1 || dead[0].ID != id || dead[0].Tries != 1 {
		t.Errorf("dead rows %+v", dead)
	}
	if metrics := g.get("admin", "/metrics").want(t, 200).body; !bytes.Contains(metrics, []byte(`gatehouse_handovers{state="dead",target="hook"} 1`)) {
		t.Errorf("no metric of the dead row in %s", metrics)
	}
	if log := g.get("audrey", "/api/audit").want(t, 200).body; !bytes.Contains(log, []byte("handover.dead")) {
		t.Error("the dead row is not in the audit log")
	}
	say(500)
	retry(`{"all":true}`).want(t, 200)
	until(t, "tried again", func() bool { h := row(); return h.Tries == 2 && h.HeldUntil == "" })
	g.ahead.Add(int64(2 * time.Hour)) // beyond the time to give up, counted from the retry
	until(t, "given up by time", func() bool { return row().State == "dead" })
	say(200)
	retry(`{"target":"hook"}`).want(t, 200)
	until(t, "delivered at last", func() bool { return row().State == "delivered" })
}

// TestStopBeforeHandover stops a job whose delivery is under way, and one whose has not begun.
func TestStopBeforeHandover(t *testing.T) {
	p := startPlatform(t)
	asked, release := make(chan string, 10), make(chan int, 10)
	p.status = func(d handover.Document) int {
		asked <- d.ID
		return <-release
	}
	g := startGatehouse(t, withTargets(p.target(t, 1)))
	first := g.submitted("alice", jobSpec(t, dialect.Forge, "a"))
	if got := <-asked; got != first+".admitted.hook" {
		t.Fatalf("asked about %s", got)
	}
	second := g.submitted("alice", jobSpec(t, dialect.Forge, "b")) // waits behind the first
	g.stopAll("alice")
	for _, id := range []string{first, second} {
		if rows := g.outbox("?job=" + id + "&state=withdrawn"); len(rows) != 1 || rows[0].Event != "job.admitted" {
			t.Errorf("%s: %+v", id, rows)
		}
	}
	if rows := g.outbox("?job=" + second); len(rows) != 1 {
		t.Errorf("what was never tried is cancelled there: %+v", rows)
	}
	release <- 200
	if got := <-asked; got != first+".cancelled.hook" {
		t.Errorf("then asked about %s", got)
	}
	release <- 200
	g.settledOutbox(t)
	if got, want := p.events(), []string{first + ".admitted.hook", first + ".cancelled.hook"}; !slices.Equal(got, want) {
		t.Errorf("the platform heard %q, want %q", got, want)
	}
	if rows := g.outbox("?job=" + first + "&state=delivered"); len(rows) != 2 {
		t.Errorf("rows %+v", rows)
	}
}

// TestStopAfterGivingUp: an admission that a platform refused for good is never tried again once its job was stopped.
func TestStopAfterGivingUp(t *testing.T) {
	p := startPlatform(t)
	p.status = func(d handover.Document) int {
		if d.Event == registry.EventAdmitted {
			return http.StatusUnprocessableEntity
		}
		return http.StatusOK
	}
	g := startGatehouse(t, withTargets(p.target(t, 1)))
	job := g.submitted("alice", jobSpec(t, dialect.Forge, "a"))
	until(t, "given up", func() bool { return len(g.outbox("?state=dead")) == 1 })
	g.stopAll("alice")
	g.settledOutbox(t)
	retry := func(body string) reply {
		return g.do(call{as: "admin", method: "POST", path: "/api/admin/handover", body: []byte(body)})
	}
	retry(`{"id":"`+job+`.admitted.hook"}`).refused(t, "/api/", 409)
	var again wire.HandoversRetried
	retry(`{"all":true}`).want(t, 200).into(t, &again)
	if again.Retried != 0 {
		t.Errorf("%d admissions of stopped jobs are tried again", again.Retried)
	}
	if got := p.events(); !slices.Equal(got, []string{job + ".cancelled.hook"}) {
		t.Errorf("the platform took %q", got)
	}
}

// TestReplicasHandOver has two replicas deliver the jobs of both: each once.
func TestReplicasHandOver(t *testing.T) {
	const jobs = 40
	p := startPlatform(t)
	db, blobs := testservice.Postgres(t), bucket(t)
	shared := func(s *setup) {
		s.config.DB, s.config.Blobs = db, blobs
		s.change = func(d *registry.Deps) { d.Handover = []registry.HandoverTarget{p.target(t, 4)} }
	}
	replicas := []*gatehouse{startGatehouse(t, shared)}
	replicas = append(replicas, startReplica(t, replicas[0], shared))
	var all sync.WaitGroup
	for i := range jobs {
		all.Go(func() {
			replicas[i%2].submit("alice", jobSpec(t, dialect.Forge, fmt.Sprintf("e%d", i))).want(t, 200)
		})
	}
	all.Wait()
	replicas[0].settledOutbox(t)
	got := p.events()
	slices.Sort(got)
	if n := len(slices.Compact(slices.Clone(got))); len(got) != jobs || n != jobs {
		t.Errorf("%d events of %d jobs, %d different", len(got), jobs, n)
	}
}

// startReplica runs another server on the stores of one that runs.
func startReplica(t *testing.T, first *gatehouse, with func(*setup)) *gatehouse {
	t.Helper()
	s := setup{config: server.Config{Data: t.TempDir(), Listen: "127.0.0.1:0"}}
	with(&s)
	g := &gatehouse{t, &running{data: s.config.Data, tokens: first.tokens, http: first.http}}
	var err error
	if g.server, err = server.OpenWith(t.Context(), s.config, slog.New(&g.faults), s.change); err != nil {
		t.Fatal(err)
	}
	g.url = g.server.URL()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, g.server.Close()); err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("stop: %v", err)
		}
	})
	return g
}
