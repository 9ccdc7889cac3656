package launchverify

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// attackVerb makes the test program an attacker: a process of some user that tries to get at the process with the id pid, whose
// root is at root and holds the file victim. It prints, as JSON, what it tried and whether it got there.
const attackVerb = "attack"

func attack(pid, root, victim string) int {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return 90
	}
	proc := "/proc/" + pid
	got := map[string]bool{}
	try := func(name string, err error) { got[name] = err == nil }
	_, err = os.ReadFile(proc + "/environ")
	try("environ", err)
	for _, name := range []string{"root", "cwd"} {
		_, err = os.Stat(proc + "/" + name + "/")
		try(name, err)
	}
	_, err = os.Readlink(proc + "/fd/0")
	try("fd", err)
	inside := filepath.Join(proc, "root", root, victim)
	os.Chmod(filepath.Dir(inside), 0o755)
	os.Chmod(inside, 0o644)
	try("write", openWrite(inside))
	try("replace", syscall.Rename(filepath.Join(filepath.Dir(inside), "plugin.yaml"), inside))
	try("mem", openWrite(proc+"/mem"))
	try("ptrace", ptrace(n))
	try("getfd", getfd(n))
	try("readv", vm(n, unix.ProcessVMReadv))
	try("writev", vm(n, unix.ProcessVMWritev))
	try("enter", exec.Command("nsenter", "-U", "--preserve-credentials", "-m", "-t", pid, "true").Run())
	try("rename root", os.Rename(root, root+".away"))
	try("remove root", syscall.Rmdir(root))
	try("rename parent", os.Rename(filepath.Dir(root), filepath.Dir(root)+".away"))
	try("unmount", unix.Unmount(root, unix.MNT_DETACH))
	try("mount over", unix.Mount("none", root, "tmpfs", 0, ""))
	try("stop", syscall.Kill(n, syscall.SIGSTOP))
	try("continue", syscall.Kill(n, syscall.SIGCONT))
	if err := json.NewEncoder(os.Stdout).Encode(got); err != nil {
		return 91
	}
	return 0
}

// vm copies a byte of another process's memory, or into it. A bad address says that the kernel looked.
func vm(pid int, call func(int, []unix.Iovec, []unix.RemoteIovec, uint) (int, error)) error {
	var b [1]byte
	local := unix.Iovec{Base: &b[0]}
	local.SetLen(1)
	_, err := call(pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: 1, Len: 1}}, 0)
	if errors.Is(err, unix.EFAULT) {
		return nil
	}
	return err
}

func openWrite(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		f.Close()
	}
	return err
}

func ptrace(pid int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceAttach(pid); err != nil {
		return err
	}
	var status unix.WaitStatus
	unix.Wait4(pid, &status, unix.WALL, nil)
	return unix.PtraceDetach(pid)
}

func getfd(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	stolen, err := unix.PidfdGetfd(fd, 0, 0)
	if err == nil {
		unix.Close(stolen)
	}
	return err
}

// attackAs runs the attacker with the user's id.
func attackAs(t *testing.T, program string, uid, pid int, root, victim string) map[string]bool {
	t.Helper()
	cmd := exec.Command(program, attackVerb, strconv.Itoa(pid), root, victim)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	cmd.Dir = "/"
	out, err := cmd.Output()
	got := map[string]bool{}
	if err == nil {
		err = json.Unmarshal(out, &got)
	}
	if err != nil {
		t.Fatalf("attacker: %v\n%s", err, out)
	}
	return got
}

// findProcess waits for the process that runs the command.
func findProcess(t *testing.T, command ...string) int {
	t.Helper()
	want := strings.Join(command, "\x00") + "\x00"
	for range 2000 {
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range files {
			if b, err := os.ReadFile(file); err == nil && string(b) == want {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
				return pid
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("no process runs %q", command)
	return 0
}

// Root launches for somebody else: the command has that user's rights and no more, and so has the reading of the job's files.
func TestLaunchForAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		r := newRig(t, dialect.Forge)
		r.spec()
		r.sign()
		o := r.options()
		o.User = &User{UID: os.Geteuid() + 1, GID: os.Getegid()}
		if rec, err := r.launch(o); ExitCode(rec, err) != 2 {
			t.Errorf("an ordinary user launches as another: %v", err)
		}
		return
	}
	nobody := &User{UID: asNobody, GID: asNobody, Groups: []int{asNobody}}
	eachMode(t, func(t *testing.T, mode Mode) {
		if mode == ModeUser {
			return // the mode of an agent without powers
		}
		r := newRig(t, dialect.Forge)
		r.spec(r.plugin("lab/alpha", true, nil))
		r.sign()
		program := filepath.Join(r.base, "program")
		copyProgram(t, program)
		o := r.options(program, standIn, filepath.Join(r.base, "look.json"))
		o.modes, o.User = []Mode{mode}, nobody
		if err := os.Chmod(r.base, 0o777); err != nil {
			t.Fatal(err)
		}
		rec, err := r.launch(o)
		s, ran := r.saw()
		if err != nil || !ran || rec.ExitCode != 0 {
			t.Fatalf("did not run: exit code %d, %v", rec.ExitCode, err)
		}
		if s.UID != asNobody || s.Caps != noCaps || s.NoNewPrivs != "1" || len(s.Writable) > 0 {
			t.Errorf("the command had uid %d, capabilities %s, no_new_privs %s, could write %v", s.UID, s.Caps, s.NoNewPrivs, s.Writable)
		}
		if os.Geteuid() != 0 || os.Getegid() != 0 {
			t.Errorf("the agent is uid %d gid %d afterwards", os.Geteuid(), os.Getegid())
		}
		// What the user may not read, the agent does not read for it.
		if err := os.Chmod(r.specPath(), 0o600); err != nil {
			t.Fatal(err)
		}
		if rec, err := r.launch(o); rec.Started || err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("a spec that only root may read: %v", err)
		}
	})
}

// sealVerb makes the test program a stage that seals its root while somebody holds a file in it open for writing.
const sealVerb = "seal"

func sealed(mode, root string) int {
	private, err := protect(&plan{Mode: Mode(mode), Root: root}, 1<<20)
	if err != nil {
		fmt.Println("protect:", err)
		return 1
	}
	file := filepath.Join(root, "file")
	f, err := os.Create(file)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	// A mapping outlives the descriptor it was made with.
	if err := f.Truncate(4096); err != nil {
		fmt.Println(err)
		return 1
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, release := range []func() error{f.Close, func() error { return unix.Munmap(mapped) }} {
		if err := private.seal(); !errors.Is(err, unix.EBUSY) {
			fmt.Println("sealed under a writer:", err)
			return 1
		}
		if err := release(); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	if err := private.seal(); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := openWrite(file); !errors.Is(err, unix.EROFS) {
		fmt.Println("the sealed root can be written to:", err)
		return 1
	}
	return 0
}

// Nobody who could still write survives the sealing, and what is hashed afterwards is what the job reads. (design.md
// 8, invariant 8)
func TestSealing(t *testing.T) {
	for _, mode := range modes(t) {
		if mode == ModePrivateCopy {
			continue
		}
		root, err := mountPoint(mode, "")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe", sealVerb, string(mode), root)
		cmd.Env = []string{noWait}
		cmd.SysProcAttr = namespaces(&plan{Mode: mode})
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", mode, err, out)
		}
	}
}
