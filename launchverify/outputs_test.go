//go:build linux

package launchverify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// The folder of a job's outputs may be a link of the job's user, to whatever the checking processes of root have open at the time: the
// job sees nothing there that its user could not open, the node's cache least of all.
func TestAttackByOutputs(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("an agent that is not root opens nothing that its user may not")
		return
	}
	for _, mode := range modes(t) {
		if mode == ModeUser {
			continue // which launches for nobody else
		}
		r := newRig(t, dialect.Forge)
		r.spec(r.plugin("lab/alpha", true, nil))
		r.admit(packed(t, inPackage))
		link, got := filepath.Join(r.base, "user", "link"), filepath.Join(r.base, "user", "got")
		r.mkdir(filepath.Dir(link))
		private := filepath.Join(r.base, "private")
		if err := os.Mkdir(private, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Dir(link), asNobody, asNobody); err != nil {
			t.Fatal(err)
		}
		r.env = append(r.env, "FORGE_OUT_DIR="+link, "BASE="+r.base)
		o := r.options("sh", "-c", "cat /proc/self/mountinfo >$BASE/user/got; ls experiments/demo/outputs/ >>$BASE/user/got 2>&1")
		o.FromPackage, o.User, o.modes = true, &User{UID: asNobody, GID: asNobody, Groups: []int{asNobody}}, []Mode{mode}
		if mode == ModeRoot { // a private copy lies in the cache
			o.CacheDir = filepath.Join(private, "cache")
		}
		for fd := 3; fd < 24; fd++ {
			for _, way := range []string{"", "/..", "/../.."} {
				os.Remove(link)
				if err := os.Symlink(fmt.Sprintf("/proc/self/fd/%d%s", fd, way), link); err != nil {
					t.Fatal(err)
				}
				rec, err := r.launch(o) // which may fail: there is no such folder
				b, _ := os.ReadFile(got)
				if strings.Contains(string(b), "private/cache") || strings.Contains(string(b), "\ntrees\n") {
					t.Errorf("%s: descriptor %d%s: the job saw the node's cache (exit code %d, %v)\n%s", mode, fd, way, rec.ExitCode, err, b)
				}
			}
		}
	}
}
