package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/launchverify"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodestate"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/client"
	"github.com/gatehouse-registry/gatehouse/registry/server/servertest"
)

// The line between a node and its registry, as it may be.
const (
	forwards int32 = iota
	refuses        // every request is answered with 503
	hangs          // none is answered
)

// testNode is a machine with a job to launch, and a registry that may be away.
type testNode struct {
	t     *testing.T
	dir   string
	self  string
	env   []string
	line  atomic.Int32
	admin *client.Client
}

// newTestNode admits a job with one plugin and lays it out, and makes the machine a node.
func newTestNode(t *testing.T) *testNode {
	t.Helper()
	n := &testNode{t: t, dir: t.TempDir()}
	s, stop, err := servertest.Run(filepath.Join(n.dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	if n.self, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	proxy := n.proxy(s.URL)
	n.env = []string{
		asCommand + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, "GATEHOUSE_HOME=" + n.path("home"),
		"GATEHOUSE_CACHE=" + n.path("cache"), "GATEHOUSE_TRUST=" + n.path("trust"), "GATEHOUSE_NODE=" + n.path("node"),
	}
	if n.admin, err = client.New(client.Options{Server: s.URL, Account: registry.AdminAccount, Token: s.Token, UserAgent: "test"}); err != nil {
		t.Fatal(err)
	}
	n.sf("login", s.URL, "--token", s.Token)
	n.sf("admin", "account", "create", "alice")
	token := strings.TrimSpace(n.sf("admin", "token", "create", "alice"))
	n.write("trust", n.sf("admin", "key", "show"))
	made, err := n.admin.CreateNode(t.Context(), "gpu-1")
	if err != nil {
		t.Fatal(err)
	}
	n.sf("node", "join", proxy, "--token", made.Secret)
	n.sf("login", s.URL, "--token", token)
	n.admitJob()
	n.sf("logout")
	return n
}

// admitJob publishes packs, submits a job that names them, lays the job out, and warms the cache, so that no launch depends on
// the registry for packs.
func (n *testNode) admitJob() {
	n.t.Helper()
	const packs = "../testdata/packs/"
	var published struct{ Content string }
	n.decode(n.sf("plugin", "publish", packs+"grad-clip", "--json"), &published)
	n.sf("plugin", "publish", packs+"tiny-sft")
	var checked struct {
		Value struct{ Document struct{ Digest string } }
	}
	n.decode(n.sf("check", "pack", packs+"tiny-sft", "--json"), &checked)
	spec := map[string]any{
		"apiVersion": "forge/v2", "kind": "TrainingJob", "metadata": map[string]any{"name": "one", "project": "demo"},
		"spec": map[string]any{
			"recipe":      map[string]any{"name": "custom/tiny-sft", "version": "0.3.0", "digest": checked.Value.Document.Digest},
			"source":      map[string]any{"exp": "experiments/one"},
			"framework":   map[string]any{"kind": "custom", "version": "user-managed", "image": "registry.example.org/train@sha256:" + strings.Repeat("1", 64), "observability_url": "https://tracker.example.org/run"},
			"resources":   map[string]any{"pools": []any{map[string]any{"name": "all", "series": "h200", "nodes": 1, "gpus_per_node": 2}}},
			"hyperparams": map[string]any{"learning_rate": 0.0001, "epochs": 1},
			"plugins":     []any{map[string]any{"id": "alice/grad-clip", "version": "1.2.0", "digest": published.Content}},
		},
		"provenance": map[string]any{"core_version": "0.3.56"},
	}
	text, err := json.Marshal(spec)
	if err != nil {
		n.t.Fatal(err)
	}
	n.write("job.json", string(text))
	n.sf("submit", "--jobspec", n.path("job.json"), "--save", n.path("job"))
	n.sf("plugin", "pull", "alice/grad-clip@1.2.0", n.path("job/forge_plugins/grad-clip"))
	n.sf("plugin", "pull", "alice/tiny-sft", n.path("job/forge_recipes/alice/tiny-sft"))
	n.write("job/experiments/one/note", "a note\n")
	n.sf("launch", "--jobspec", n.spec(), "--allow", "private-copy", "--no-report", "--", "true")
}

// proxy stands between the node and its registry.
func (n *testNode) proxy(server string) string {
	to, err := url.Parse(server)
	if err != nil {
		n.t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(to)
	forward.ErrorLog = log.New(io.Discard, "", 0) // a launch that is over waits for no answer
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n.line.Load() {
		case refuses:
			w.WriteHeader(http.StatusServiceUnavailable)
		case hangs:
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	n.t.Cleanup(p.Close)
	return p.URL
}

func (n *testNode) path(name string) string { return filepath.Join(n.dir, name) }
func (n *testNode) spec() string            { return n.path("job/.starforge/jobspec.json") }

func (n *testNode) write(name, text string) {
	n.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(n.path(name)), 0o755), os.WriteFile(n.path(name), []byte(text), 0o644)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *testNode) decode(text string, into any) {
	n.t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		n.t.Fatalf("%v: %s", err, text)
	}
}

func (n *testNode) command(args ...string) *exec.Cmd {
	cmd := exec.Command(n.self, args...)
	cmd.Env = n.env
	return cmd
}

// run gives what a command says and its exit code.
func (n *testNode) run(args ...string) (stdout, stderr string, code int) {
	n.t.Helper()
	var out, errOut bytes.Buffer
	cmd := n.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		n.t.Fatal(err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// sf runs a command that must succeed.
func (n *testNode) sf(args ...string) string {
	n.t.Helper()
	stdout, stderr, code := n.run(args...)
	if code != 0 {
		n.t.Fatalf("sf %q: exit code %d: %s", args, code, stderr)
	}
	return stdout
}

func (n *testNode) launchArgs(args ...string) []string {
	return append([]string{"launch", "--jobspec", n.spec(), "--allow", "private-copy", "--record", n.path("record.json")}, args...)
}

// launch starts a shell command and gives its local record too.
func (n *testNode) launch(want int, script string, flags ...string) (record launchverify.Record, stderr string) {
	n.t.Helper()
	_, stderr, code := n.run(n.launchArgs(append(flags, "--", "sh", "-c", script)...)...)
	if code != want {
		n.t.Fatalf("launched %q: exit code %d, want %d: %s", script, code, want, stderr)
	}
	text, err := os.ReadFile(n.path("record.json"))
	if err != nil {
		n.t.Fatal(err)
	}
	n.decode(string(text), &record)
	return record, stderr
}

// runs lists what the registry knows, as "id state", sorted.
func (n *testNode) runs() []string {
	n.t.Helper()
	page, err := n.admin.Runs(n.t.Context(), wire.RunQuery{Limit: 100})
	if err != nil {
		n.t.Fatal(err)
	}
	all := []string{}
	for _, r := range page.Runs {
		all = append(all, r.ID+" "+r.State)
	}
	slices.Sort(all)
	return all
}

// expectRuns compares what the registry knows.
func (n *testNode) expectRuns(want ...string) {
	n.t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, n.runs()); diff != "" {
		n.t.Errorf("the registry knows (-want +got):\n%s", diff)
	}
}

// expectSpooled compares how many statements wait.
func (n *testNode) expectSpooled(want int) {
	n.t.Helper()
	if got := n.spooled(); got != want {
		n.t.Errorf("%d statements wait, expected %d", got, want)
	}
}

func (n *testNode) spooled() int {
	n.t.Helper()
	var view nodeView
	n.decode(n.sf("node", "show", "--json"), &view)
	return view.Spool.Waiting
}

// A launch is told to the registry; while that is away it is told later, and the job notices nothing.
func TestLaunchIsTold(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	first, _ := n.launch(9, "exit 9")
	n.expectRuns(first.Run + " ended")
	n.expectSpooled(0)
	got, err := n.admin.Run(t.Context(), first.Run)
	if err != nil {
		t.Fatal(err)
	}
	if rooted := os.Geteuid() == 0; got.Attested != rooted || got.Node != "gpu-1" || got.ExitCode == nil || *got.ExitCode != 9 {
		t.Errorf("the registry knows %+v", got)
	}
	last, err := runrecord.Read(got.Envelopes[len(got.Envelopes)-1].Envelope)
	if err != nil || last.Predicate.Job != first.Job || last.Predicate.Plugins[0].ID != "alice/grad-clip" || last.Predicate.DenyList.Source != runrecord.SourceRegistry {
		t.Errorf("the statement says %+v, %v", last, err)
	}

	n.line.Store(refuses)
	second, stderr := n.launch(7, "exit 7")
	n.line.Store(hangs)
	third, more := n.launch(0, "true")
	n.expectSpooled(2)
	if stderr+more != "" {
		t.Errorf("on stderr stands %q", stderr+more)
	}
	n.line.Store(refuses)
	if out, _, code := n.run("runs", "send"); code == 0 || out != "sent 0, rejected 0, left 2\n" {
		t.Errorf("sent while the registry was away: %q, exit code %d", out, code)
	}
	if err := elsewhereOf(n, "another-registry"); err == nil || elsewhereOf(n, first.Audience) != nil {
		t.Errorf("what waits may go to another registry: %v", err)
	}
	n.line.Store(forwards)
	if out := n.sf("runs", "send"); out != "sent 2, rejected 0, left 0\n" {
		t.Errorf("sent when it was back: %q", out)
	}
	n.expectRuns(first.Run+" ended", second.Run+" ended", third.Run+" ended")

	// What waits is sent by the next launch too.
	n.line.Store(refuses)
	fourth, _ := n.launch(0, "true")
	n.line.Store(forwards)
	fifth, _ := n.launch(0, "true")
	n.expectRuns(first.Run+" ended", second.Run+" ended", third.Run+" ended", fourth.Run+" ended", fifth.Run+" ended")
	n.expectSpooled(0)
	if silent, _ := n.launch(0, "true", "--no-report"); silent.Run != "" || len(n.runs()) != 5 {
		t.Errorf("--no-report told of run %q", silent.Run)
	}
}

func elsewhereOf(n *testNode, registryID string) error {
	state, err := nodestate.Open(n.path("node"))
	if err != nil {
		n.t.Fatal(err)
	}
	return elsewhere(state, registryID)
}

// A refusal is told too, in one line on stderr. What is revoked is refused; what is only disabled runs on.
func TestRefusalIsTold(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	if err := n.disable(); err != nil {
		t.Fatal(err)
	}
	disabled, _ := n.launch(0, "true")
	if _, err := n.admin.Revoke(t.Context(), "alice/grad-clip", "1.2.0", "it sends the weights away"); err != nil {
		t.Fatal(err)
	}
	revoked, stderr := n.launch(3, "echo started")
	if strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "launch.revoked") || !strings.Contains(stderr, "it sends the weights away") {
		t.Errorf("stderr: %q", stderr)
	}
	n.line.Store(refuses) // the node remembers
	again, _ := n.launch(3, "echo started")
	n.line.Store(forwards)
	n.sf("runs", "send")
	n.expectRuns(disabled.Run+" ended", revoked.Run+" refused", again.Run+" refused")
	if _, stderr, code := n.run(n.launchArgs("--deny-list", "perhaps", "--", "true")...); code != exitUsage || !strings.Contains(stderr, "--deny-list") {
		t.Errorf("--deny-list perhaps: exit code %d, %s", code, stderr)
	}
}

func (n *testNode) disable() error {
	_, err := n.admin.SetEnabled(n.t.Context(), "alice/grad-clip", "1.2.0", false, "it is slow")
	return err
}

// A launch that needs the list is refused where it can't be had.
func TestDenyListRequired(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	if err := os.RemoveAll(n.path("cache/documents")); err != nil {
		t.Fatal(err)
	}
	n.line.Store(refuses)
	if _, stderr := n.launch(7, "echo started", "--deny-list", "require"); !strings.Contains(stderr, "launch.denylist.missing") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("stderr: %q", stderr)
	}
	if record, _ := n.launch(0, "true"); record.DenyList == nil || record.DenyList.Problem == "" || record.DenyList.Number != 0 {
		t.Errorf("the record says %+v", record.DenyList)
	}
	n.line.Store(forwards)
	if record, _ := n.launch(0, "true", "--deny-list", "require"); record.DenyList.Source != runrecord.SourceRegistry {
		t.Errorf("the record says %+v", record.DenyList)
	}
}

// kill -9 of the agent loses no statement that was on disk, and what was on disk is sent by the next launch.
func TestKilledAgentsRun(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	n.line.Store(refuses)
	ended, _ := n.launch(0, "true")
	cmd := n.command(n.launchArgs("--", "sh", "-c", "echo started; sleep 60")...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("started\n"))); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); n.spooled() < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the start of the run was not spooled")
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	n.line.Store(forwards)
	next, _ := n.launch(0, "true")
	states := map[string]int{}
	for _, r := range n.runs() {
		id, state, _ := strings.Cut(r, " ")
		if states[state]++; state == "started" && (id == ended.Run || id == next.Run) {
			t.Errorf("run %s has ended", id)
		}
	}
	if diff := cmp.Diff(map[string]int{"ended": 2, "started": 1}, states); diff != "" {
		t.Errorf("the registry knows (-want +got):\n%s", diff)
	}
	n.expectSpooled(0)
}

// Several agents of one node tell of their runs at once.
func TestAgentsTogether(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	n.line.Store(refuses)
	launch := func() {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				args := []string{"launch", "--jobspec", n.spec(), "--allow", "private-copy", "--", "true"}
				if out, err := n.command(args...).CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
		wg.Wait()
	}
	launch()
	n.expectSpooled(4)
	n.line.Store(forwards)
	launch()
	n.sf("runs", "send")
	n.expectSpooled(0)
	if got := n.runs(); len(got) != 8 || slices.ContainsFunc(got, func(r string) bool { return !strings.HasSuffix(r, " ended") }) {
		t.Errorf("the registry knows %q", got)
	}
}

// Whatever is wrong with the node's state, the job runs and its exit code is its own; what is wrong is said.
func TestRecordsNeverStopAJob(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	n.line.Store(refuses)
	for what, spoil := range map[string]func() error{
		"a key for all":   func() error { return os.Chmod(n.path("node/key.pem"), 0o644) },
		"a folder of all": func() error { return os.Chmod(n.path("node"), 0o755) },
		"no key":          func() error { return os.Rename(n.path("node/key.pem"), n.path("node/gone")) },
		"a spool of all":  func() error { return os.Chmod(n.path("node/spool"), 0o777) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		record, stderr := n.launch(9, "exit 9")
		if record.Run != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "warning: this launch is not told to the registry") {
			t.Errorf("%s: run %q, stderr %q", what, record.Run, stderr)
		}
		if what == "no key" {
			if err := os.Rename(n.path("node/gone"), n.path("node/key.pem")); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.Chmod(n.path("node"), 0o700), os.Chmod(n.path("node/key.pem"), 0o600), os.Chmod(n.path("node/spool"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	n.line.Store(forwards)
	if record, _ := n.launch(0, "true"); record.Run == "" {
		t.Error("with all of it in order again nothing is told")
	}
	n.sf("node", "leave")
	if _, stderr, code := n.run("node", "show"); code == 0 || !strings.Contains(stderr, "has not joined") {
		t.Errorf("after leaving: exit code %d, %s", code, stderr)
	}
	if record, stderr := n.launch(0, "true"); record.Run != "" || stderr != "" {
		t.Errorf("a machine that is no node tells of run %q: %s", record.Run, stderr)
	}
}

// A full disk loses the statement and says so; the job's exit code is its own.
func TestRecordOnAFullDisk(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	n.sf("node", "show") // which makes the spool
	fill := `mount -t tmpfs -o size=64k none "$0" && chmod 700 "$0" && ! head -c 70000 /dev/zero > "$0/fill" 2>/dev/null && exec "$@"`
	args := []string{"--mount", "sh", "-c", fill, n.path("node/spool"), n.self}
	if os.Geteuid() != 0 {
		args = append([]string{"--user", "--map-root-user"}, args...)
	}
	cmd := exec.Command("unshare", append(args, n.launchArgs("--", "sh", "-c", "exit 9")...)...)
	cmd.Env = n.env
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 9 || !strings.Contains(string(out), "warning: the run was not recorded") || !strings.Contains(string(out), "no space left") {
		t.Errorf("%v: %s", err, out)
	}
}

// A signal that ends the job does not keep the agent from telling of it.
func TestSignalledRunIsTold(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1} {
		cmd := n.command(n.launchArgs("--", "sh", "-c", "echo started; exec sleep 60")...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("started\n"))); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		page, err := n.admin.Runs(t.Context(), wire.RunQuery{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != 128+int(sig) || len(page.Runs) != 1 || page.Runs[0].State != "ended" || *page.Runs[0].ExitCode != code {
			t.Errorf("%v: exit code %d (%v), the registry knows %+v", sig, code, cmd.ProcessState, page.Runs)
		}
	}
}
