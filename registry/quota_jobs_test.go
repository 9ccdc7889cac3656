package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
	"github.com/gatehouse-registry/gatehouse/registry/trust"
)

var alice = auth.Principal{Account: "alice", Role: auth.Operator}

// jobWorld is two replicas that take jobs.
type jobWorld struct {
	*world
	replicas [2]*registry.Service
}

// everyJobEngine runs a test on replicas over both engines, with accounts alice, bob and the administrator ops. change may
// set more of what a replica works with.
func everyJobEngine(t *testing.T, set registry.Settings, change func(*registry.Deps), test func(t *testing.T, w *jobWorld)) {
	everyEngine(t, set, func(t *testing.T, bare *world) { test(t, newJobWorld(t, bare, set, change)) })
}

// measuredWorld is a jobWorld on an engine, for what measures and so runs alone.
func measuredWorld(t testing.TB, engine string) *jobWorld {
	t.Helper()
	set := registry.DefaultSettings()
	bare := (*world)(nil)
	if engine == "postgres" {
		bare = newWorld(t, set, postgres(t))
	} else {
		bare = newSQLiteWorld(t, set)
	}
	return newJobWorld(t, bare, set, plainDeps)
}

func newJobWorld(t testing.TB, bare *world, set registry.Settings, change func(*registry.Deps)) *jobWorld {
	t.Helper()
	w := &jobWorld{world: bare}
	set.RegistryID = "test"
	keys, err := trust.Open(t.TempDir())
	w.must("key", err)
	for i := range w.replicas {
		ledger, err := metastore.OpenLedger(fmt.Sprintf("%s/jobs-ledger-%d", w.dir, i))
		w.must("ledger", err)
		t.Cleanup(func() { ledger.Close() })
		d := registry.Deps{Blobs: w.blobs, Meta: w.metas[i].MetaStore, Ledger: ledger, Signer: keys,
			Now: func() time.Time { return time.Now().Add(time.Duration(w.later.Load())) }}
		change(&d)
		w.replicas[i], err = registry.New(context.Background(), d, set)
		w.must("replica", err)
	}
	for name, role := range map[string]auth.Role{"alice": auth.Operator, "bob": auth.Operator, "ops": auth.Admin} {
		_, err := w.replicas[0].CreateAccount(context.Background(), root, registry.NewAccount{Name: name, Role: role})
		w.must("account", err)
	}
	return w
}

func plainDeps(*registry.Deps) {}

// quota gives alice a quota document.
func (w *jobWorld) quota(document string) {
	w.t.Helper()
	_, err := w.replicas[0].SetQuota(context.Background(), root, "alice", json.RawMessage(document))
	w.must("set the quota", err)
}

// submit submits a job of some GPUs; body is its package.
func (w *jobWorld) submit(s *registry.Service, p auth.Principal, spec string, body io.Reader) (registry.Job, error) {
	return s.Submit(context.Background(), p, registry.Submission{Dialect: dialect.Forge, Spec: []byte(spec)}, body)
}

// forgeJob is a job of a recipe that ships in the client. more is put before "resources".
func forgeJob(gpus int, more ...string) string {
	c, _ := catalogue.Builtin(dialect.Forge, catalogue.DefaultRelease(dialect.Forge))
	e, _ := c.Lookup("nemo-rl/grpo")
	v := e.Versions[0]
	return fmt.Sprintf(`{"apiVersion":"forge/v2","kind":"TrainingJob","metadata":{"name":"demo"},"spec":{"recipe":{"name":%q,"version":%q,"digest":%q},`+
		`"source":{"exp":"experiments/demo"},"framework":{"kind":%q,"version":%q,"runtime_id":%q},%s`+
		`"resources":{"pools":[{"name":"all","series":"h200","nodes":1,"gpus_per_node":%d}],"roles":{"actor":"all","reference":"all","rollout":"all"}}},"provenance":{"core_version":"0.3.56"}}`,
		e.Name, e.Version, e.Digest, e.Framework, v.Version, v.RuntimeID, strings.Join(more, ""), gpus)
}

// refusedBy asks that an error is a refusal by one rule alone.
func refusedBy(t *testing.T, what string, err error, rule string) {
	t.Helper()
	d := registry.DecisionOf(err)
	if d == nil || len(d.Violations) != 1 || string(d.Violations[0].Rule) != rule {
		t.Errorf("%s: %v, want a refusal by %s", what, err, rule)
	}
}

// inUse is what alice's running jobs hold.
func (w *jobWorld) inUse() (gpus, jobs int64) {
	w.t.Helper()
	q, _, err := w.replicas[1].Usage(context.Background(), alice)
	w.must("usage", err)
	return q.InUse, q.Jobs
}

// hook is a body of no bytes that does something when it is first read: between the gate's first answer and the transaction
// that stores the job.
type hook struct{ do func() }

func (h *hook) Read([]byte) (int, error) {
	if h.do != nil {
		h.do()
		h.do = nil
	}
	return 0, io.EOF
}

// TestNoGPUIsSpentTwice submits from two replicas at once: what is admitted fits into the quota, and fills it.
func TestNoGPUIsSpentTwice(t *testing.T) {
	t.Parallel()
	everyJobEngine(t, registry.DefaultSettings(), plainDeps, func(t *testing.T, w *jobWorld) {
		w.quota(`{"max_concurrent_gpus":24,"max_concurrent_jobs":9}`)
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				if _, err := w.submit(w.replicas[i%2], alice, forgeJob(8), nil); err != nil {
					refusedBy(t, "one too many", err, "job.quota.gpus")
				}
			})
		}
		all.Wait()
		if gpus, jobs := w.inUse(); gpus != 24 || jobs != 3 {
			t.Errorf("%d GPUs by %d jobs, want 24 by 3", gpus, jobs)
		}
		if _, err := w.submit(w.replicas[0], auth.Principal{Account: "bob", Role: auth.Operator}, forgeJob(8), nil); err != nil {
			t.Errorf("another account: %v", err)
		}
	})
}

// TestLockedOutMidway disables an account, on the one replica or the other, while the package of its job is on the way: the job is
// not stored, whether or not the account has a quota.
func TestLockedOutMidway(t *testing.T) {
	t.Parallel()
	everyJobEngine(t, registry.DefaultSettings(), plainDeps, func(t *testing.T, w *jobWorld) {
		for _, quota := range []string{`{}`, `{"max_concurrent_gpus":64}`} {
			for i, s := range w.replicas {
				w.quota(quota)
				disable := func(disabled bool) {
					_, err := s.SetDisabled(context.Background(), root, "alice", disabled)
					w.must("disable", err)
				}
				_, err := w.submit(w.replicas[0], alice, forgeJob(8), &hook{func() { disable(true) }})
				if registry.CodeOf(err) != registry.Unauthorized {
					t.Errorf("quota %s, replica %d: %v", quota, i, err)
				}
				disable(false)
				if _, jobs := w.inUse(); jobs != 0 {
					t.Errorf("quota %s, replica %d: %d jobs", quota, i, jobs)
				}
			}
		}
	})
}

// TestQuotaInBothOrders: the gate has admitted a submission, and before it is stored another takes the last of the quota, on
// the one replica or the other. The first is refused after all.
func TestQuotaInBothOrders(t *testing.T) {
	t.Parallel()
	everyJobEngine(t, registry.DefaultSettings(), plainDeps, func(t *testing.T, w *jobWorld) {
		for _, c := range []struct{ quota, rule string }{
			{`{"max_concurrent_gpus":8}`, "job.quota.gpus"}, {`{"max_concurrent_jobs":1}`, "job.quota.jobs"},
		} {
			for order, s := range [][2]*registry.Service{{w.replicas[0], w.replicas[1]}, {w.replicas[1], w.replicas[0]}} {
				w.quota(c.quota)
				var other registry.Job
				between := &hook{func() {
					var err error
					other, err = w.submit(s[1], alice, forgeJob(8), nil)
					w.must("the other submission", err)
				}}
				_, err := w.submit(s[0], alice, forgeJob(8), between)
				refusedBy(t, fmt.Sprintf("%s, order %d", c.quota, order), err, c.rule)
				if between.do != nil {
					t.Fatal("nothing came between")
				}
				if _, jobs := w.inUse(); jobs != 1 {
					t.Errorf("order %d: %d jobs", order, jobs)
				}
				_, err = w.replicas[0].StopJob(t.Context(), alice, other.ID)
				w.must("stop", err)
			}
		}
	})
}

// TestLeases follows a job's hold on its GPUs: signs of life renew it, the end and silence end it.
func TestLeases(t *testing.T) {
	t.Parallel()
	everyJobEngine(t, registry.DefaultSettings(), plainDeps, func(t *testing.T, w *jobWorld) {
		ctx, s := t.Context(), w.replicas[1]
		report := func(id, word string) registry.Job {
			t.Helper()
			job, err := s.ReportJob(ctx, root, id, word)
			w.must("report "+word, err)
			return job
		}
		holds := func(what string, want int64) {
			t.Helper()
			if gpus, _ := w.inUse(); gpus != want {
				t.Errorf("%s: %d GPUs are held, want %d", what, gpus, want)
			}
		}
		admitted := func() string {
			t.Helper()
			job, err := w.submit(w.replicas[0], alice, forgeJob(8), nil)
			w.must("submit", err)
			return job.ID
		}
		w.quota(`{"max_concurrent_gpus":8}`)
		first := admitted()
		w.pass(23 * time.Hour)
		report(first, "queued")
		w.pass(23 * time.Hour)
		holds("renewed an hour before its end", 8)
		report(first, "running")
		w.pass(25 * time.Hour)
		holds("silent for a day", 0)
		second := admitted()
		if job := report(first, "running"); job.Status != registry.JobRunning {
			t.Errorf("it runs and is %s", job.Status)
		}
		holds("the silent one is alive after all", 16)
		_, err := w.submit(s, alice, forgeJob(8), nil)
		refusedBy(t, "beyond the quota", err, "job.quota.gpus")
		report(first, "succeeded")
		report(first, "succeeded")
		report(second, "cancelled")
		holds("both have ended", 0)
		for _, word := range []string{"running", "failed"} {
			if _, err := s.ReportJob(ctx, root, first, word); registry.CodeOf(err) != registry.Conflict {
				t.Errorf("%s after the end: %v", word, err)
			}
		}
		third := admitted()
		if job, err := s.StopJob(ctx, alice, third); err != nil || job.Status != registry.JobStopped {
			t.Errorf("stop: %s, %v", job.Status, err)
		}
		holds("stopped", 0)
		if job, err := s.StopJob(ctx, alice, first); err == nil && job.Status != registry.JobSucceeded {
			t.Errorf("a job that succeeded was stopped afterwards: it is %s", job.Status)
		}
		rows, err := s.Audit(ctx, root, 0)
		w.must("audit", err)
		var states []string
		for _, r := range rows {
			if r.Action == "job.state" && r.Subject == first {
				states = append(states, r.Detail)
			}
		}
		if diff := cmp.Diff([]string{"queued", "running", "succeeded"}, states); diff != "" {
			t.Errorf("audited: %s", diff)
		}
	})
}

// TestWhoReports: administrators and their robots in scope; the owner of the job can't say that it has ended.
func TestWhoReports(t *testing.T) {
	t.Parallel()
	everyJobEngine(t, registry.DefaultSettings(), plainDeps, func(t *testing.T, w *jobWorld) {
		ctx, s := t.Context(), w.replicas[0]
		job, err := w.submit(s, alice, forgeJob(8), nil)
		w.must("submit", err)
		robot := func(owner, name, pattern string, verb auth.Verb) auth.Principal {
			t.Helper()
			secret, _, err := s.CreateRobot(ctx, root, registry.NewRobot{Owner: owner, Name: name, TTL: time.Hour,
				Scopes: []auth.Scope{{Repository: pattern, Actions: []auth.Verb{verb}}}})
			w.must("robot", err)
			p, err := s.Authenticate(ctx, secret)
			w.must("sign in", err)
			return p
		}
		for _, c := range []struct {
			who  string
			p    auth.Principal
			want registry.Code
		}{
			{"the owner", alice, registry.Denied},
			{"an auditor", auth.Principal{Account: "audrey", Role: auth.Auditor}, registry.Denied},
			{"nobody", auth.Principal{}, registry.Unauthorized},
			{"the owner's robot", robot("alice", "ci", "**", auth.Report), registry.Denied},
			{"an administrator's robot for content", robot("ops", "content", "**", auth.Pull), registry.NotFound},
			{"an administrator's robot for another's jobs", robot("ops", "bobs", "bob/**", auth.Report), registry.NotFound},
			{"an administrator's robot for these jobs", robot("ops", "alices", "alice/*", auth.Report), ""},
			{"an administrator's robot for all jobs", robot("ops", "platform", "**", auth.Report), ""},
			{"an administrator", root, ""},
		} {
			if _, err := s.ReportJob(ctx, c.p, job.ID, "running"); registry.CodeOf(err) != c.want {
				t.Errorf("%s: %v, want %q", c.who, err, c.want)
			}
		}
		if _, err := s.ReportJob(ctx, root, "run-1", "running"); registry.CodeOf(err) != registry.NotFound {
			t.Errorf("no such job: %v", err)
		}
		for _, word := range []string{"", "Running", "admitted", "done"} {
			if _, err := s.ReportJob(ctx, root, job.ID, word); registry.CodeOf(err) != registry.Invalid {
				t.Errorf("%q: %v", word, err)
			}
		}
	})
}

// TestQuotaDocuments: what no quota can be is refused when it is set, and an unlimited one is one that says 0 or nothing.
func TestQuotaDocuments(t *testing.T) {
	t.Parallel()
	everyJobEngine(t, registry.DefaultSettings(), plainDeps, func(t *testing.T, w *jobWorld) {
		s := w.replicas[0]
		for _, c := range []struct{ document, says string }{
			{`{"max_concurrent_gpus":-1}`, "max_concurrent_gpus: -1"},
			{`{"max_concurrent_jobs":-1}`, "max_concurrent_jobs: -1"},
			{`{"max_concurrent_gpus":99999999999}`, "max_concurrent_gpus"},
			{`{"max_concurrent_jobs":"many"}`, "max_concurrent_jobs"},
			{`{"allowed_profiles":["h200","h900"]}`, `allowed_profiles[1]: there is no profile "h900"; there are h200`},
			{`{"allowed_profiles":"h200"}`, "allowed_profiles"},
		} {
			_, err := s.SetQuota(t.Context(), root, "alice", json.RawMessage(c.document))
			if registry.CodeOf(err) != registry.Invalid || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", c.document, err, c.says)
			}
		}
		for _, document := range []string{
			`{"username":"alice","max_concurrent_gpus":null,"max_concurrent_jobs":0,"allowed_profiles":[]}`,
			`{"daily_gpu_hours":0.5,"max_storage_gb":10,"priority":3}`, `{"allowed_profiles":["h200"]}`,
		} {
			w.quota(document)
			if _, err := w.submit(s, alice, forgeJob(64), nil); err != nil {
				t.Errorf("%s: %v", document, err)
			}
		}
	})
}
