//go:build linux

package launchverify

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// What this program is under these verbs: a process that types into the terminal of its session and writes down what it heard; one
// that forbids that to itself and becomes the other.
const (
	typeVerb     = "type"
	noTypingVerb = "no-typing"
)

func init() {
	if len(os.Args) != 3 {
		return
	}
	switch os.Args[1] {
	case typeVerb:
		os.Exit(typeInto(os.Args[2]))
	case noTypingVerb:
		runtime.LockOSThread()
		if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil || forbidTyping() != nil {
			os.Exit(3)
		}
		syscall.Exec("/proc/self/exe", []string{os.Args[0], typeVerb, os.Args[2]}, os.Environ())
		os.Exit(4)
	}
}

// heard is what a process hears that may use its terminal, and may not type.
const heard = "looked: true, typed: operation not permitted, operation not permitted"

func typeInto(file string) int {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return 5
	}
	_, look := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	key := byte('x')
	_, _, plain := unix.Syscall(unix.SYS_IOCTL, tty.Fd(), unix.TIOCSTI, uintptr(unsafe.Pointer(&key)))
	// The kernel looks at 32 bits of the request alone.
	_, _, disguised := unix.Syscall(unix.SYS_IOCTL, tty.Fd(), unix.TIOCSTI|1<<32, uintptr(unsafe.Pointer(&key)))
	if err := os.WriteFile(file, fmt.Appendf(nil, "looked: %v, typed: %v, %v", look == nil, plain, disguised), 0o644); err != nil {
		return 6
	}
	return 0
}

// A job that root launches for somebody else may use root's terminal, but not type into it: what it types would be read by the
// shell that comes next, with the rights of root.
func TestNothingIsTyped(t *testing.T) {
	got := filepath.Join(t.TempDir(), "got")
	cmd := exec.Command("/proc/self/exe", noTypingVerb, got)
	_, terminal := openTerminal(t)
	cmd.Stdin = terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(got); err != nil || string(b) != heard {
		t.Errorf("heard %q (%v), expected %q", b, err, heard)
	}
	if os.Geteuid() != 0 {
		return // an agent that is not root launches for nobody else
	}
	for _, mode := range modes(t) {
		if mode == ModeUser {
			continue // nor does this mode
		}
		r := newRig(t, dialect.Forge)
		r.spec(r.plugin("lab/alpha", true, nil))
		r.sign()
		program, got := filepath.Join(r.base, "program"), filepath.Join(r.base, "got")
		copyProgram(t, program)
		o := r.options(program, typeVerb, got)
		o.modes, o.User = []Mode{mode}, &User{UID: asNobody, GID: asNobody, Groups: []int{asNobody}}
		if err := os.Chmod(r.base, 0o777); err != nil {
			t.Fatal(err)
		}
		cmd, _ := r.atTerminal(o, "$AGENT")
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		if b, err := os.ReadFile(got); err != nil || string(b) != heard {
			t.Errorf("%s: heard %q (%v), expected %q", mode, b, err, heard)
		}
	}
}
