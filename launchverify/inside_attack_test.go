//go:build linux

package launchverify

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// insideVerb makes the test program a plugin that runs before another one is imported and tries to change that one: in the
// namespaces that the job has, and in new ones of its own. Its argument is the file it is after; it writes what it got done
// to the file named next.
const insideVerb = "inside"

// evil is what no check has ever seen.
const evil = "# never published\n"

func inside(victim, look string) int {
	got := map[string]bool{}
	try := func(name string, err error) { got[name] = err == nil }
	overwrite(victim, try)
	root, _ := os.Getwd()
	remount(root, try)
	try("mount over", unix.Mount("none", filepath.Dir(victim), "tmpfs", 0, ""))
	try("bind over", unix.Mount("/tmp", filepath.Dir(victim), "", unix.MS_BIND, ""))
	try("pivot", unix.PivotRoot("/tmp", "/tmp"))
	try("ptrace the stage", ptrace(os.Getppid()))
	try("memory of the stage", openWrite(fmt.Sprintf("/proc/%d/mem", os.Getppid())))
	try("a descriptor of the stage", getfd(os.Getppid()))
	if os.Getuid() != 0 {
		try("setuid", syscall.Setuid(0))
	}
	// A user namespace of its own, where the plugin has every capability.
	cmd := exec.Command("/proc/self/exe", insideVerb+"-namespace", victim, root)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
	}
	if out, err := cmd.Output(); err == nil {
		var below map[string]bool
		if json.Unmarshal(out, &below) != nil {
			return 92
		}
		for name, done := range below {
			got["own namespace: "+name] = done
		}
	}
	b, err := os.ReadFile(victim)
	got["changed"] = err != nil || string(b) == evil
	text, err := json.Marshal(got)
	if err != nil || os.WriteFile(look, text, 0o644) != nil {
		return 91
	}
	return 0
}

// insideNamespace is the plugin in namespaces of its own.
func insideNamespace(victim, root string) int {
	got := map[string]bool{}
	try := func(name string, err error) { got[name] = err == nil }
	remount(root, try)
	overwrite(victim, try)
	// What it mounts over the file is seen by itself and what it starts, as if it had changed its own memory.
	os.WriteFile("/tmp/gatehouse-test-evil", []byte(evil), 0o644)
	defer os.Remove("/tmp/gatehouse-test-evil")
	try("shadow", unix.Mount("/tmp/gatehouse-test-evil", victim, "", unix.MS_BIND, ""))
	if json.NewEncoder(os.Stdout).Encode(got) != nil {
		return 91
	}
	return 0
}

// overwrite tries to put other bytes where the victim is.
func overwrite(victim string, try func(string, error)) {
	dir := filepath.Dir(victim)
	os.Chmod(dir, 0o755)
	os.Chmod(victim, 0o644)
	try("write", os.WriteFile(victim, []byte(evil), 0o644))
	try("truncate", os.Truncate(victim, 0))
	try("add", os.WriteFile(filepath.Join(dir, "sitecustomize.py"), []byte(evil), 0o644))
	try("byte code", os.Mkdir(filepath.Join(dir, "__pycache__"), 0o755))
	try("rename", os.Rename(dir, dir+".away"))
	if f, err := os.Open(victim); err == nil {
		try("reopen", openWrite(fmt.Sprintf("/proc/self/fd/%d", f.Fd())))
		f.Close()
	}
}

// remount tries to take the job's root away, or to make it writable.
func remount(root string, try func(string, error)) {
	try("remount", unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, ""))
	try("remount the mount", unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_NOSUID|unix.MS_NODEV, ""))
	attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	try("mount_setattr", unix.MountSetattr(unix.AT_FDCWD, root, 0, &attr))
	try("unmount", unix.Unmount(root, 0))
	try("detach", unix.Unmount(root, unix.MNT_DETACH))
	try("move", unix.Mount(root, "/tmp", "", unix.MS_MOVE, ""))
	// The mount alone, without what lies above it, in a tree of the plugin's own.
	fd, err := unix.OpenTree(unix.AT_FDCWD, root, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		try("clone writable", err)
		return
	}
	defer unix.Close(fd)
	empty := []byte{0}
	_, _, errno := unix.Syscall6(unix.SYS_MOUNT_SETATTR, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])), unix.AT_EMPTY_PATH, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno == 0 {
		err = openWrite(fmt.Sprintf("/proc/self/fd/%d/forge_plugins/beta/beta_patch.py", fd))
	} else {
		err = errno
	}
	try("clone writable", err)
}

// A plugin that runs before another one is imported can't change what that one's file holds, neither with the rights that the
// job has nor in namespaces of its own, where it has all capabilities: the read-only root is locked there. What it can do is to
// hide files from itself and its children. In a private copy it can, and the record says that the copy was changed.
func TestAttackOnTheNextPlugin(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r := newRig(t, dialect.Forge)
		r.spec(r.plugin("lab/alpha", true, nil), r.plugin("lab/beta", true, nil))
		r.sign()
		o := r.options(os.Args[0], insideVerb, "forge_plugins/beta/beta_patch.py", filepath.Join(r.base, "look.json"))
		o.modes = []Mode{mode}
		if os.Geteuid() == 0 && mode != ModeUser {
			o.User = &User{UID: asNobody, GID: asNobody, Groups: []int{asNobody}}
			copyProgram(t, filepath.Join(r.base, "program"))
			o.Command[0] = filepath.Join(r.base, "program")
			if err := os.Chmod(r.base, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		rec, err := r.launch(o)
		src, readErr := os.ReadFile(filepath.Join(r.base, "look.json"))
		got := map[string]bool{}
		if err != nil || readErr != nil || rec.ExitCode != 0 || json.Unmarshal(src, &got) != nil {
			t.Fatalf("exit code %d, %v, %v", rec.ExitCode, err, readErr)
		}
		if len(got) < 20 {
			t.Errorf("only %d things were tried: %v", len(got), got)
		}
		ownCopy := mode == ModePrivateCopy && o.User == nil // the copy is the job's own
		for name, done := range got {
			switch {
			case strings.HasSuffix(name, "shadow"):
			case ownCopy && !strings.Contains(name, "mount"):
			case done:
				t.Errorf("the plugin got there: %s", name)
			}
		}
		if rec.Changed != ownCopy {
			t.Errorf("the record says that the copy was changed: %v", rec.Changed)
		}
	})
}

// What comes with the agent as an open descriptor, a writable one on a file of the cache and one on a file of the job
// directory, leads to no file that the job reads.
func TestAttackByInheritedDescriptor(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r, o := shell(t, mode, `echo "$EVIL" >&40; echo "$EVIL" >&41; cat forge_plugins/alpha/alpha_patch.py > $BASE/read; ls -l /proc/self/fd > $BASE/fds`)
		o.Command = append([]string{"bash", "-c"}, o.Command[2:]...) // whose descriptors may have two digits
		o.Env = append(o.Env, "EVIL="+evil)
		warm := o
		warm.Command = []string{"true"}
		if _, err := r.launch(warm); err != nil {
			t.Fatal(err)
		}
		cached, err := filepath.Glob(filepath.Join(r.base, "cache", "trees", "*", "alpha_patch.py"))
		if err != nil || len(cached) != 1 {
			t.Fatal(cached, err)
		}
		os.Chmod(cached[0], 0o644)
		for i, path := range []string{cached[0], filepath.Join(r.job, "forge_plugins/alpha/alpha_patch.py")} {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Dup3(int(f.Fd()), 40+i, 0); err != nil {
				t.Fatal(err)
			}
			f.Close()
			defer unix.Close(40 + i)
		}
		if rec, err := r.launch(o); err != nil || rec.ExitCode != 0 {
			t.Fatalf("exit code %d, %v", rec.ExitCode, err)
		}
		if b, err := os.ReadFile(cached[0]); err != nil || !strings.HasPrefix(string(b), "# never") {
			t.Errorf("the attack does not bite: the cache's file holds %q, %v", b, err)
		}
		if b, err := os.ReadFile(filepath.Join(r.base, "read")); err != nil || !strings.HasPrefix(string(b), "def install") {
			t.Errorf("the job read %q, %v", b, err)
		}
	})
}

// A launch that finds another one's job at its mount point has a root of its own there: the mounts of one are not seen by the
// other.
func TestAttackOnTheMountPoint(t *testing.T) {
	for _, mode := range modes(t) {
		if mode == ModePrivateCopy {
			continue
		}
		type one struct {
			r   *rig
			cmd *exec.Cmd
		}
		var all []one
		for i := range 4 {
			r := newRig(t, dialect.Forge)
			r.spec(r.plugin("lab/alpha", true, map[string]string{"number.txt": strconv.Itoa(i)}))
			r.sign()
			o := r.options("sh", "-c", "cat forge_plugins/alpha/number.txt > $BASE/up; exec sleep 1000")
			o.modes = []Mode{mode}
			o.Env = append(o.Env, "BASE="+r.base)
			all = append(all, one{r, r.startCold(o, r.archives(t))})
		}
		for i, one := range all {
			if got := waitFor(t, filepath.Join(one.r.base, "up")); got != strconv.Itoa(i) {
				t.Errorf("%s: launch %d sees the plugin of launch %s", mode, i, got)
			}
		}
		for _, one := range all {
			one.cmd.Process.Signal(syscall.SIGTERM)
			one.cmd.Wait()
		}
	}
}

// What steers loaders and runtimes, put into the agent's environment, does not reach the process that checks.
func TestAttackByEnvironment(t *testing.T) {
	for _, how := range trackings(t) {
		r, o := shell(t, how.mode, `echo up > $BASE/up; exec sleep 1000`)
		o.without = how.without
		for name, value := range map[string]string{
			"LD_PRELOAD": "/nowhere/evil.so", "GODEBUG": "execerrdot=0", "TMPDIR": "/nowhere", keepRoot: "/etc",
		} {
			t.Setenv(name, value)
		}
		cmd := r.startCold(o, r.archives(t))
		waitFor(t, filepath.Join(r.base, "up"))
		keeper, stage := familyOf(cmd.Process.Pid)
		for _, pid := range []int{keeper, stage} {
			if pid == 0 || os.Geteuid() != 0 { // only root may look
				continue
			}
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if err != nil {
				t.Fatal(err)
			}
			for v := range strings.SplitSeq(strings.TrimRight(string(b), "\x00"), "\x00") {
				name, _, _ := strings.Cut(v, "=")
				own := pid == keeper && (name == keepCgroup || name == keepRoot && v != keepRoot+"=/etc")
				if !own && !slices.Contains(stageEnv, v) {
					t.Errorf("%s, %s: the agent's own process has %s", how.mode, how.want, v)
				}
			}
		}
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}
}
