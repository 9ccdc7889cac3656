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

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// What this program is under these verbs: an agent in whose session's keyring a secret lies; a process that looks for it and writes
// down what it read, and what it reads of a key of its own.
const (
	keyHolderVerb = "key-holder"
	keyReaderVerb = "key-reader"
)

func init() {
	if len(os.Args) != 3 {
		return
	}
	switch os.Args[1] {
	case keyHolderVerb:
		runtime.LockOSThread() // keyrings are a thread's, and pass through exec
		unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
		unix.AddKey("user", "gatehouse-test", []byte("secret of root"), unix.KEY_SPEC_SESSION_KEYRING)
		syscall.Exec("/proc/self/exe", []string{os.Args[0], agentVerb, os.Args[2]}, os.Environ())
		os.Exit(4)
	case keyReaderVerb:
		found := fmt.Sprintf("%q", readKey("gatehouse-test"))
		unix.AddKey("user", "gatehouse-own", []byte("own"), unix.KEY_SPEC_SESSION_KEYRING)
		if os.WriteFile(os.Args[2], fmt.Appendf(nil, "%s %q", found, readKey("gatehouse-own")), 0o644) != nil {
			os.Exit(5)
		}
		os.Exit(0)
	}
}

func readKey(name string) string {
	id, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", name, 0)
	if err != nil {
		return ""
	}
	b := make([]byte, 64)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, b, 0)
	if err != nil {
		return ""
	}
	return string(b[:n])
}

// A job that root launches for somebody else has a keyring of its own: not the keys of root's session, which are open to whoever has
// the keyring. Whoever launches for itself keeps its keys.
func TestKeyring(t *testing.T) {
	for _, mode := range modes(t) {
		for _, other := range []bool{false, true} {
			if other && (os.Geteuid() != 0 || mode == ModeUser) {
				continue // such an agent launches for nobody else
			}
			r := newRig(t, dialect.Forge)
			r.spec(r.plugin("lab/alpha", true, nil))
			r.sign()
			program, got := filepath.Join(r.base, "program"), filepath.Join(r.base, "got")
			copyProgram(t, program)
			o := r.options(program, keyReaderVerb, got)
			o.modes = []Mode{mode}
			if other {
				o.User = &User{UID: asNobody, GID: asNobody, Groups: []int{asNobody}}
			}
			if err := os.Chmod(r.base, 0o777); err != nil {
				t.Fatal(err)
			}
			agent := r.startCold(o, r.archives(t)) // writes what an agent reads
			agent.Process.Kill()
			agent.Wait()
			os.Remove(got)
			if out, err := exec.Command("/proc/self/exe", keyHolderVerb, filepath.Join(r.base, "agent.json")).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", mode, err, out)
			}
			want := `"secret of root" "own"`
			if other {
				want = `"" "own"`
			}
			b, err := os.ReadFile(got)
			if _, missing := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false); missing == unix.ENOSYS || missing == unix.EPERM {
				want = `"" ""` // the node has no keyrings
			}
			if err != nil || string(b) != want {
				t.Errorf("%s, for somebody else %v: read %s (%v), expected %s", mode, other, b, err, want)
			}
		}
	}
}
