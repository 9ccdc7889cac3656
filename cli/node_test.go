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
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/launchverify"
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

func TestPrivate(t *testing.T) {
	for server, want := range map[string]bool{
		"https://registry.example.org": true, "http://127.0.0.1:8080": true, "http://localhost": true, "http://[::1]:80": true,
		"http://registry.example.org": false, "http://10.0.0.1": false, "http://localhost.example.org": false, "http://127.0.0.1.example.org": false,
	} {
		if got := private(server); got != want {
			t.Errorf("%s: %v", server, got)
		}
	}
}
