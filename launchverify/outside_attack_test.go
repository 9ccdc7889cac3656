//go:build linux

package launchverify

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// strangerUID is somebody who has nothing to do with the job.
const strangerUID = 64991

// What a process can do to another one of its own user that nothing protects: look into it, and into its files.
var (
	looking   = []string{"environ", "root", "cwd", "fd"}
	handling  = []string{"mem", "ptrace", "getfd", "readv", "writev"}
	disturb   = []string{"stop", "continue"}
	entering  = []string{"enter"}
	rewriting = []string{"write", "replace"}
)

// outside is what a mode claims about processes outside the job (design.md 6): what an attacker gets done. Everything else
// fails.
var outside = []struct {
	name         string
	mode         Mode
	agent, uid   int // who the agent is, and who the job
	attacker     int
	gets, unless []string // done, unless the kernel keeps processes of one user from each other (Yama)
}{
	{"root mode, the job's user", ModeRoot, 0, asNobody, asNobody, disturb, nil},
	{"root mode, another user", ModeRoot, 0, asNobody, strangerUID, nil, nil},
	{"user mode, the same user", ModeUser, asNobody, asNobody, asNobody, slices.Concat(looking, disturb, entering), handling},
	{"user mode, another user", ModeUser, asNobody, asNobody, strangerUID, nil, nil},
	{"private copy, the same user", ModePrivateCopy, asNobody, asNobody, asNobody, slices.Concat(looking, disturb, rewriting, []string{"rename root", "rename parent"}), handling},
	{"private copy, another user", ModePrivateCopy, asNobody, asNobody, strangerUID, nil, nil},
	{"private copy of root's, the job's user", ModePrivateCopy, 0, asNobody, asNobody, slices.Concat(looking, disturb), handling},
}

// Each mode keeps out whom it claims to keep out, and nobody else: setns, ptrace, memory, descriptors, the file system by way
// of /proc, the mount point and its parents. The files that the job reads stay what they were but where a line says that
// they can be written to. (design.md 6, the table of modes)
func TestAttacksFromOutside(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("attackers of several users are root's to start")
		return
	}
	allowed := modes(t)
	for _, c := range outside {
		if !slices.Contains(allowed, c.mode) {
			t.Logf("%s can't be had here", c.mode)
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			r, o := shell(t, c.mode, "echo up > $BASE/up; exec sleep 1000")
			if r.as = c.agent; c.agent != c.uid {
				o.User = &User{UID: c.uid, GID: c.uid, Groups: []int{c.uid}}
			}
			chown(t, r.base, c.uid)
			if c.agent == 0 {
				chown(t, filepath.Join(r.base, "cache"), 0)
			}
			program := filepath.Join(r.base, "attacker")
			copyProgram(t, program)
			cmd := r.startCold(o, r.archives(t))
			waitFor(t, filepath.Join(r.base, "up"))
			pid := findProcess(t, "sleep", "1000")
			root, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
			if err != nil {
				t.Fatal(err)
			}
			before := sums(t, fmt.Sprintf("/proc/%d/root%s/forge_plugins/alpha", pid, root))
			got := attackAs(t, program, c.attacker, pid, root, "forge_plugins/alpha/alpha_patch.py")
			for name, done := range got {
				want := slices.Contains(c.gets, name) || slices.Contains(c.unless, name) && !yama()
				if done != want {
					t.Errorf("%s: got there %v, expected %v", name, done, want)
				}
			}
			if slices.Contains(c.gets, "write") {
				syscall.Kill(pid, syscall.SIGKILL)
				cmd.Wait()
				return
			}
			if after := sums(t, fmt.Sprintf("/proc/%d/root%s/forge_plugins/alpha", pid, root)); !maps.Equal(before, after) {
				t.Errorf("the job's files changed")
			}
			if _, stage := familyOf(cmd.Process.Pid); c.agent == 0 {
				for name, done := range attackAs(t, program, c.attacker, stage, root, "x") {
					if done {
						t.Errorf("the stage: got there: %s", name)
					}
				}
			}
			syscall.Kill(pid, syscall.SIGKILL)
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 137 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// The same attacks bite where nothing protects a process.
func TestAttacksFromOutsideBite(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("attackers of several users are root's to start")
		return
	}
	r, _ := shell(t, ModePrivateCopy, "")
	chown(t, r.base, asNobody)
	program := filepath.Join(r.base, "attacker")
	copyProgram(t, program)
	bare := exec.Command("sleep", "2000")
	bare.Dir = filepath.Join(r.job, "forge_plugins")
	bare.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: asNobody, Gid: asNobody}}
	if err := bare.Start(); err != nil {
		t.Fatal(err)
	}
	defer bare.Wait()
	defer bare.Process.Kill()
	findProcess(t, bare.Args...)
	got := attackAs(t, program, asNobody, bare.Process.Pid, bare.Dir, "alpha/alpha_patch.py")
	want := slices.Concat(looking, disturb, rewriting, []string{"rename root"})
	if !yama() {
		want = append(want, handling...)
	}
	for _, name := range want {
		if !got[name] {
			t.Errorf("the attack %q does not bite: %v", name, got)
		}
	}
}

// yama reports whether the kernel keeps processes of one user from tracing each other.
func yama() bool {
	b, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	return err == nil && strings.TrimSpace(string(b)) != "0"
}

// chown gives a tree to a user.
func chown(t *testing.T, dir string, uid int) {
	t.Helper()
	os.MkdirAll(dir, 0o755)
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// archives puts what the shelf holds into a folder that a stored registry can serve from.
func (r *rig) archives(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(r.base, "archives")
	r.mkdir(dir)
	for manifest, b := range r.shelf.archives {
		if err := os.WriteFile(filepath.Join(dir, manifest.Hex()), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
