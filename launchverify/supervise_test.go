//go:build linux

package launchverify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
)

// shell is a launch of a script that may name files below $BASE.
func shell(t *testing.T, mode Mode, script string) (*rig, Options) {
	t.Helper()
	r := newRig(t, dialect.Forge)
	r.spec(r.plugin("lab/alpha", true, nil))
	r.sign()
	o := r.options("sh", "-c", script)
	o.modes = []Mode{mode}
	o.Env = append(o.Env, "BASE="+r.base)
	return r, o
}

// The command's end is Run's, and the record tells it from an end of ours.
func TestCommandEnds(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		for _, c := range []struct {
			script string
			code   int
			signal int
			child  bool
		}{
			{"exit 0", 0, 0, false},
			{"exit 3", 3, 0, false},
			{"kill -9 $$", 137, 9, false},
			{"kill -TERM $$", 143, 15, false},
			{"sleep 0.3; exit 2", 2, 0, true},
		} {
			r, o := shell(t, mode, c.script)
			rec, err := r.launch(o)
			if err != nil || ExitCode(rec, err) != c.code || rec.Signal != c.signal || !rec.Started {
				t.Errorf("%s: exit code %d, signal %d, started %v, %v", c.script, rec.ExitCode, rec.Signal, rec.Started, err)
			}
			if rec.Training.Seen != c.child {
				t.Errorf("%s: training %+v", c.script, rec.Training)
			}
		}
		for command, code := range map[string]int{"no-such-command-anywhere": 127, "/no/such/command": 127, "/dev/null": 126} {
			r, o := shell(t, mode, "")
			o.Command = []string{command}
			rec, err := r.launch(o)
			if err == nil || ExitCode(rec, err) != code || rec.Started {
				t.Errorf("%s: exit code %d, started %v, %v", command, ExitCode(rec, err), rec.Started, err)
			}
		}
	})
}

// waitFor waits until the file is there and gives what it holds.
func waitFor(t *testing.T, file string) string {
	t.Helper()
	for range 2000 {
		if b, err := os.ReadFile(file); err == nil && len(b) > 0 {
			return strings.TrimSpace(string(b))
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s never came", file)
	return ""
}

// A signal to the agent reaches the training process even when the launcher between them does nothing with it, the
// training process may take its time, and nothing is left. (launch.md W12)
func TestSignals(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		for _, c := range []struct {
			name   string
			send   syscall.Signal
			script string
			code   int
			want   string // in $BASE/got
		}{
			{"launcher dies, training saves", syscall.SIGTERM,
				`sh -c 'trap "sleep 0.2; echo saved > $BASE/got; exit 0" TERM; echo up > $BASE/up; while :; do sleep 0.05; done' & wait`, 143, "saved"},
			{"interrupt", syscall.SIGINT, `trap 'echo int > $BASE/got; exit 7' INT; echo up > $BASE/up; while :; do sleep 0.05; done`, 7, "int"},
			{"hangup", syscall.SIGHUP, `trap 'echo hup > $BASE/got; exit 8' HUP; echo up > $BASE/up; while :; do sleep 0.05; done`, 8, "hup"},
			{"user signal goes to the launcher alone", syscall.SIGUSR1,
				`trap 'echo usr1 > $BASE/got; exit 9' USR1; sleep 60 & echo up > $BASE/up; while :; do sleep 0.05; done`, 9, "usr1"},
			{"deaf", syscall.SIGTERM, `trap '' TERM; echo deaf > $BASE/got; echo up > $BASE/up; while :; do sleep 0.05; done`, 137, "deaf"},
		} {
			r, o := shell(t, mode, c.script)
			o.Grace = 500 * time.Millisecond
			done := make(chan struct{})
			go func() {
				defer close(done)
				waitFor(t, filepath.Join(r.base, "up"))
				syscall.Kill(os.Getpid(), c.send)
			}()
			rec, err := r.launch(o)
			<-done
			if err != nil || rec.ExitCode != c.code {
				t.Errorf("%s: exit code %d, expected %d, %v", c.name, rec.ExitCode, c.code, err)
			}
			if got, _ := os.ReadFile(filepath.Join(r.base, "got")); strings.TrimSpace(string(got)) != c.want {
				t.Errorf("%s: the job did %q, expected %q", c.name, got, c.want)
			}
		}
	})
}

// What the command leaves behind ends with it, wherever it hides.
func TestNothingOutlives(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		// A process in a session of its own, whose parent is gone, that hears no TERM.
		r, o := shell(t, mode, `setsid sh -c 'trap "" TERM HUP; echo up > $BASE/up; while :; do sleep 0.05; echo x >> $BASE/beat; done' & 
			while [ ! -s $BASE/beat ]; do sleep 0.02; done; exit 4`)
		o.Grace = 200 * time.Millisecond
		rec, err := r.launch(o)
		if err != nil || rec.ExitCode != 4 {
			t.Fatalf("exit code %d, %v", rec.ExitCode, err)
		}
		if rec.Killed == 0 {
			t.Errorf("the record does not say that something was killed")
		}
		stopped(t, filepath.Join(r.base, "beat"))
	})
}

// stopped fails when a file still grows.
func stopped(t *testing.T, beat string) {
	t.Helper()
	size := func() int64 {
		info, err := os.Stat(beat)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	time.Sleep(300 * time.Millisecond)
	if after := size(); after != before {
		t.Errorf("a process of the job still runs")
	}
}

// agentOptions is how a test tells an agent of its own, which it may kill, what to launch.
type agentOptions struct {
	JobSpec, Trust, Cache string
	Command, Env          []string
	Mode                  Mode
	Without               []Tracking
	Grace                 time.Duration
	User                  *User
	Archives              string // folder with what the registry holds; "" is a registry that is down
}

const agentVerb = "agent"

// stored is a registry in a folder: archives by the hex of their manifests.
type stored struct {
	*shelf
	dir string
}

func (s stored) Fetch(_ context.Context, pin receipt.Pin) (io.ReadCloser, error) {
	if s.dir == "" {
		return nil, ErrNotFound
	}
	return os.Open(filepath.Join(s.dir, pin.Manifest.Hex()))
}

func runAgent(path string) int {
	var a agentOptions
	src, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(src, &a)
	}
	if err != nil {
		return 90
	}
	file, err := os.ReadFile(a.Trust)
	if err != nil {
		return 91
	}
	set, err := receipt.ParseTrust(file)
	if err != nil {
		return 92
	}
	rec, err := Run(context.Background(), Options{
		JobSpec: a.JobSpec, Trust: set, CacheDir: a.Cache, Command: a.Command, Env: a.Env, Fetcher: stored{&shelf{down: true}, a.Archives}, modes: []Mode{a.Mode},
		without: a.Without, User: a.User, Grace: a.Grace, AllowPrivateCopy: true,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return ExitCode(rec, err)
}

// startAgent starts the launch in a process of its own, with a warm cache.
func (r *rig) startAgent(o Options) *exec.Cmd {
	r.t.Helper()
	warm := o
	warm.Command = []string{"true"}
	if _, err := r.launch(warm); err != nil {
		r.t.Fatal(err)
	}
	return r.startCold(o, "")
}

// startCold starts the launch in a process of its own, with the cache as it is and a registry that has what lies in
// archives.
func (r *rig) startCold(o Options, archives string) *exec.Cmd {
	r.t.Helper()
	file, err := o.Trust.Encode()
	if err != nil {
		r.t.Fatal(err)
	}
	trustFile := filepath.Join(r.base, "trust.json")
	a := agentOptions{JobSpec: o.JobSpec, Trust: trustFile, Cache: o.CacheDir, Command: o.Command, Env: o.Env, Mode: o.modes[0], Without: o.without, Grace: o.Grace, Archives: archives, User: o.User}
	src, err := json.Marshal(a)
	if err != nil {
		r.t.Fatal(err)
	}
	for path, b := range map[string][]byte{trustFile: file, filepath.Join(r.base, "agent.json"): src} {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	cmd := exec.Command("/proc/self/exe", agentVerb, filepath.Join(r.base, "agent.json"))
	cmd.Stderr = os.Stderr
	if r.as != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(r.as), Gid: uint32(r.as)}}
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { cmd.Process.Kill() })
	return cmd
}

// When the agent is killed the job goes with it, and nothing is left.
func TestAgentKilled(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r, o := shell(t, mode, `echo $$ > $BASE/up; while :; do sleep 0.05; echo x >> $BASE/beat; done`)
		cmd := r.startAgent(o)
		waitFor(t, filepath.Join(r.base, "beat"))
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if mode == ModePrivateCopy {
			waitGone(t, filepath.Join(r.base, "cache", "roots"))
		}
		time.Sleep(100 * time.Millisecond)
		stopped(t, filepath.Join(r.base, "beat"))
		nothingLeft(t, r)
	})
}

// waitGone waits until a folder is empty.
func waitGone(t *testing.T, dir string) {
	t.Helper()
	for range 2000 {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%s never became empty", dir)
}
