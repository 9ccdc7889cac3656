//go:build linux

package launchverify

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
)

// tracked is one way in which a mode can know the processes of its job.
type tracked struct {
	mode    Mode
	without []Tracking
	want    Tracking
}

// trackings lists the ways of tracking that this machine allows, each in a mode that has it.
func trackings(t *testing.T) []tracked {
	t.Helper()
	var all []tracked
	allowed := modes(t)
	for _, one := range []tracked{
		{ModeRoot, nil, TrackingPIDNamespace},
		{ModeUser, nil, TrackingPIDNamespace},
		{ModeUser, []Tracking{TrackingPIDNamespace, TrackingCgroup}, TrackingDescendants},
		{ModePrivateCopy, nil, TrackingCgroup},
		{ModePrivateCopy, []Tracking{TrackingCgroup}, TrackingDescendants},
	} {
		if one.want == TrackingCgroup {
			group, err := newCgroup()
			if err != nil {
				t.Logf("no control group can be made here: %v", err)
				continue
			}
			group.remove()
		}
		if slices.Contains(allowed, one.mode) {
			all = append(all, one)
		}
	}
	return all
}

// marker is in the environment of every process of a job, and of no other.
func marker(r *rig) string { return "GATEHOUSE_TEST_MARK=" + r.base }

// marked lists the processes of the job that are alive.
func marked(r *rig) []int {
	return slices.DeleteFunc(running(), func(pid int) bool {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return err != nil || !slices.Contains(strings.Split(string(env), "\x00"), marker(r))
	})
}

// waitEnded waits until no process of the job is alive.
func waitEnded(t *testing.T, r *rig) {
	t.Helper()
	var left []int
	for range 2000 {
		if left = marked(r); len(left) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	for _, pid := range left {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		t.Errorf("process %d of the job is still there: %q %v", pid, cmdline, readStat(pid))
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// clinging is a job that does not want to go: it hears no signal that can be ignored, has a process in a session of its
// own whose parent is gone, one that is stopped, and one whose children are never waited for.
const clinging = `trap '' TERM HUP INT QUIT
setsid sh -c 'trap "" TERM HUP INT; (while :; do sleep 0.02; done) & exit 0' &
sh -c 'kill -STOP $$' &
sh -c 'trap "" TERM; (exit 0) & (exit 0) & exec sleep 1000' &
sleep 0.05
echo up > $BASE/up
while :; do sleep 0.02; done`

// familyOf finds the agent's own processes: the keeper, when there is one, and the stage.
func familyOf(agent int) (keeper, stage int) {
	for _, pid := range children(agent) {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(cmdline), keeperVerb) {
			_, stage = familyOf(pid)
			return pid, stage
		}
		if strings.Contains(string(cmdline), stageVerb) {
			return 0, pid
		}
	}
	return 0, 0
}

// commandOf finds the command among the stage's children: orphans are others.
func commandOf(stage int) int {
	for _, pid := range children(stage) {
		if stat := readStat(pid); stat.number(statGroup) == pid && stat.number(statSession) == readStat(stage).number(statSession) {
			return pid
		}
	}
	return 0
}

// As long as one of the agent's processes is left to see it, a SIGKILL of the others, all at once, ends everything of
// the job; in a process namespace a SIGKILL of all of them does too. Whatever is killed: no process, no control group and
// no copy is left.
func TestKilledTogether(t *testing.T) {
	for _, how := range trackings(t) {
		t.Run(fmt.Sprintf("%s %s", how.mode, how.want), func(t *testing.T) {
			r, o := shell(t, how.mode, clinging)
			o.Env, o.without, o.Grace = append(o.Env, marker(r)), how.without, 200*time.Millisecond
			victims := [][]string{{"agent"}, {"stage"}, {"command"}, {"agent", "stage"}, {"agent", "stage", "command"}}
			if how.want != TrackingPIDNamespace {
				victims = append(victims, []string{"keeper"}, []string{"agent", "keeper"}, []string{"keeper", "stage"})
			}
			for _, names := range victims {
				killTogether(t, r, o, names)
			}
		})
	}
}

func killTogether(t *testing.T, r *rig, o Options, names []string) {
	t.Helper()
	os.Remove(filepath.Join(r.base, "up"))
	cmd := r.startAgent(o)
	waitFor(t, filepath.Join(r.base, "up"))
	keeper, stage := familyOf(cmd.Process.Pid)
	pids := map[string]int{"agent": cmd.Process.Pid, "keeper": keeper, "stage": stage, "command": commandOf(stage)}
	for _, name := range names {
		if pids[name] == 0 {
			t.Fatalf("there is no %s: %v", name, pids)
		}
		syscall.Kill(pids[name], syscall.SIGKILL) // it may have gone with another one
	}
	if slices.Equal(names, []string{"keeper"}) { // two are left, and the job goes on
		if stat := readStat(pids["command"]); stat == nil || len(marked(r)) < 4 {
			t.Errorf("without its keeper the job ended")
		}
		syscall.Kill(pids["command"], syscall.SIGKILL)
	}
	cmd.Wait()
	waitEnded(t, r)
	if code := cmd.ProcessState.ExitCode(); slices.Equal(names, []string{"command"}) && code != 128+9 {
		t.Errorf("%v: exit code %d", names, code)
	}
	if code := cmd.ProcessState.ExitCode(); slices.Equal(names, []string{"stage"}) && code != 1 {
		t.Errorf("%v: exit code %d", names, code)
	}
	for _, pid := range pids {
		waitDead(t, pid)
	}
	noGroups(t)
	if !slices.Contains(names, "agent") || slices.Equal(names, []string{"agent"}) {
		waitGone(t, filepath.Join(r.base, "cache", "roots"))
	}
}

// waitDead waits until a process is no more, or is waited for by nobody but us.
func waitDead(t *testing.T, pid int) {
	t.Helper()
	for range 2000 {
		if stat := readStat(pid); stat == nil || stat[statState] == "Z" {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

// stopWhole stops a process and waits until each of its threads has.
func stopWhole(t *testing.T, pid int) {
	t.Helper()
	syscall.Kill(pid, syscall.SIGSTOP)
	for range 2000 {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		running := slices.ContainsFunc(threads, func(stat string) bool {
			b, err := os.ReadFile(stat)
			return err == nil && !strings.Contains(string(b), ") T ")
		})
		if err == nil && len(threads) > 0 && !running {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("process %d does not stop", pid)
}

// noGroups fails when a control group of an agent that is gone is left.
func noGroups(t *testing.T) {
	t.Helper()
	own, err := ownCgroup()
	if err != nil {
		return
	}
	var left []string
	for range 400 {
		left, _ = filepath.Glob(filepath.Join(own, cgroupPrefix+processSpace()+"-*"))
		left = slices.DeleteFunc(left, func(path string) bool {
			parts := strings.Split(path, "-")
			pid, _ := strconv.Atoi(parts[len(parts)-2])
			return readStat(pid) != nil // somebody else's
		})
		if len(left) == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("control groups are left: %v", left)
}

// What only all three processes' death leaves behind, in a control group, the next launch ends.
func TestNextLaunchEndsGroups(t *testing.T) {
	for _, how := range trackings(t) {
		if how.want != TrackingCgroup {
			continue
		}
		r, o := shell(t, how.mode, clinging)
		o.Env = append(o.Env, marker(r))
		cmd := r.startAgent(o)
		waitFor(t, filepath.Join(r.base, "up"))
		keeper, stage := familyOf(cmd.Process.Pid)
		for _, pid := range []int{cmd.Process.Pid, keeper, stage} {
			stopWhole(t, pid) // none of them sees another one go
		}
		for _, pid := range []int{stage, keeper, cmd.Process.Pid} { // the end of a parent would wake the stopped ones
			syscall.Kill(pid, syscall.SIGKILL)
		}
		cmd.Wait()
		if len(marked(r)) == 0 {
			t.Error("the job ended all by itself, so this shows nothing")
		}
		next := o
		next.Command = []string{"true"}
		if rec, err := r.launch(next); err != nil || rec.Tracking != TrackingCgroup {
			t.Fatalf("tracking %q, %v", rec.Tracking, err)
		}
		waitEnded(t, r)
		noGroups(t)
	}
}

// An agent that is killed while somebody has stopped its stage takes the job with it all the same.
func TestAgentKilledWhileStageIsStopped(t *testing.T) {
	for _, how := range trackings(t) {
		r, o := shell(t, how.mode, clinging)
		o.Env, o.without = append(o.Env, marker(r)), how.without
		cmd := r.startAgent(o)
		waitFor(t, filepath.Join(r.base, "up"))
		_, stage := familyOf(cmd.Process.Pid)
		syscall.Kill(stage, syscall.SIGSTOP)
		cmd.Process.Kill()
		cmd.Wait()
		waitEnded(t, r)
		waitDead(t, stage)
	}
}

// bomb starts processes that start processes and hear no TERM: at most some 110, most of them in the middle of
// starting more when the command ends. (More would be the machine's test, not ours.)
const bomb = `trap '' TERM
b() { i=0; while [ $i -lt 10 ]; do i=$((i+1)); if [ $1 -gt 0 ]; then b $(($1-1)) & fi; sleep 0.02; done; exec sleep 100; }
b 2 & sleep 0.2; exit 6`

// A job that starts processes as fast as it may ends too, in every way of tracking.
func TestForkBomb(t *testing.T) {
	for _, how := range trackings(t) {
		r, o := shell(t, how.mode, bomb)
		o.Env, o.without, o.Grace = append(o.Env, marker(r)), how.without, 100*time.Millisecond
		rec, err := r.launch(o)
		if err != nil || rec.ExitCode != 6 || rec.Tracking != how.want || rec.Killed < 10 {
			t.Errorf("%s, %s: exit code %d, tracking %s, %d were killed, %v", how.mode, how.want, rec.ExitCode, rec.Tracking, rec.Killed, err)
		}
		if left := marked(r); len(left) > 0 {
			t.Errorf("%s, %s: %d processes are left", how.mode, how.want, len(left))
		}
		waitEnded(t, r)
	}
}

// The record says whether another process than the command ever ran, and how that was seen, however short it lived.
func TestTrainingSeen(t *testing.T) {
	program := os.Args[0]
	for _, how := range trackings(t) {
		for _, c := range []struct {
			script string
			seen   bool
			how    []string // but for being looked at in the right moment, which is chance
		}{
			{"exit 0", false, nil},
			{"kill -9 $$", false, nil},
			{"exec /bin/true", false, nil},
			{fmt.Sprintf("exec %s %s $LOOK", program, standIn), false, nil}, // a program with many threads and no child
			{"/bin/true; exit 0", true, []string{"waited-for-child"}},
			{"/bin/true; kill -9 $$", true, []string{"waited-for-child"}},
			{"(/bin/true & exit 0); exit 0", true, []string{"waited-for-child", "orphan"}},
			{"setsid sleep 0.05 & exit 0", true, []string{"orphan"}},
			{"sleep 0.2; exit 2", true, []string{"waited-for-child"}},
		} {
			r, o := shell(t, how.mode, c.script)
			o.without = how.without
			rec, err := r.launch(o)
			got := rec.Training
			if err != nil || got.Seen != c.seen || got.Seen && got.How != "child-process" && !slices.Contains(c.how, got.How) || !got.Seen && got.How != "" || got.Unknown {
				t.Errorf("%s, %s: %s: training %+v, %v", how.mode, how.want, c.script, got, err)
			}
		}
	}
}

// The agent's own processes can't be looked into by the user they work for, even where they have its uid.
func TestStageIsHidden(t *testing.T) {
	for _, how := range trackings(t) {
		r, o := shell(t, how.mode, `echo up > $BASE/up; while :; do sleep 0.02; done`)
		o.without = how.without
		cmd := r.startAgent(o)
		waitFor(t, filepath.Join(r.base, "up"))
		keeper, stage := familyOf(cmd.Process.Pid)
		for _, pid := range []int{keeper, stage} {
			if pid == 0 {
				continue
			}
			info, err := os.Stat(fmt.Sprintf("/proc/%d/environ", pid))
			if err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
				t.Errorf("%s, %s: process %d can be dumped: %v", how.mode, how.want, pid, err)
			}
		}
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}
}

// What an agent's command is not: a child of the agent's that it had before.
func TestForeignChildrenAreSpared(t *testing.T) {
	bystander := exec.Command("sleep", "1000")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer bystander.Wait()
	defer bystander.Process.Kill()
	r, o := shell(t, ModePrivateCopy, `echo $PPID > $BASE/stage; kill -9 $PPID; sleep 1000`)
	o.Env = append(o.Env, marker(r))
	_, err := r.launch(o)
	if err == nil || !strings.Contains(err.Error(), "the stage was killed") {
		t.Errorf("got %v", err)
	}
	waitEnded(t, r)
	if syscall.Kill(bystander.Process.Pid, 0) != nil {
		t.Error("a child of the agent's that is none of the job was killed")
	}
}

// Where a method's pack says in which file training begins, processes alone are no training: a plugin that ends the process in
// which training would begin is seen to have done so. (launch.md W11)
func TestTrainingBeginsWithItsEntry(t *testing.T) {
	for _, how := range trackings(t)[:1] { // the way of tracking makes no difference to it
		for script, want := range map[string]runrecord.Training{
			"/bin/true; exit 0": {Unopened: "experiments/demo/train.py"},
			"exit 0":            {},
			"cat experiments/demo/train.py > /dev/null; exit 0": {Seen: true, How: runrecord.HowWaited},
			"(. ./experiments/demo/train.py); exit 0":           {Seen: true, How: runrecord.HowWaited},
			"cat experiments/demo/other.py 2> /dev/null; :":     {Unopened: "experiments/demo/train.py"},
		} {
			r := newRig(t, dialect.TunePlane)
			r.spec(r.plugin("lab/alpha", true, nil))
			src, err := os.ReadFile(r.specPath())
			if err != nil {
				t.Fatal(err)
			}
			r.write(".tuneplane/jobspec.json", strings.NewReplacer("custom/custom", "demo/hook", "sha256:"+strings.Repeat("0", 64), hookDigest).Replace(string(src)))
			r.write("experiments/demo/train.py", "exit 0\n")
			r.write("tuneplane_recipes/lab/hook/recipe.yaml", hookRecipe)
			r.write("tuneplane_recipes/lab/hook/template/config.yaml", "a: 1\n")
			r.sign()
			o := r.options("sh", "-c", script)
			o.modes, o.without = []Mode{how.mode}, how.without
			rec, err := r.launch(o)
			if err != nil || rec.Training != want {
				t.Errorf("%s, %s: %s: training %+v, expected %+v; %v", how.mode, how.want, script, rec.Training, want, err)
			}
		}
	}
}

// hookDigest is the digest of hookRecipe that a handshake compares.
const hookDigest = "sha256:5d4890f4d253187c2b8f693229647680dd29b4c00d8cb92482d73f2a49765474"

// hookRecipe is a method whose training begins in a file of the experiment.
const hookRecipe = `name: hook
version: "1.0.0"
title: Launch demo
framework: demo
category: custom
template: template
entrypoint: {kind: experiment, value: train.py}
`
