package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/launchverify/nodestate"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

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
