//go:build linux

package launchverify

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
)

// A job finds nothing where the agent's key lies, though its user may read there and tries to uncover it; where that can't be
// had, the statement of a job of root's says that it is self-asserted.
func TestKeysAreHidden(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Mode) {
		r := newRig(t, dialect.Forge)
		r.spec(r.plugin("lab/alpha", true, nil))
		r.sign()
		keys, found := filepath.Join(r.base, "keys of the node"), filepath.Join(r.base, "found")
		r.mkdir(keys)
		if err := os.WriteFile(filepath.Join(keys, "key.pem"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		o := r.options("sh", "-c", `umount "$1" 2>/dev/null; umount -l "$1" 2>/dev/null; { cat "$1/key.pem"; touch "$1/new"; } >"$2" 2>/dev/null; chmod 755 "$1" 2>/dev/null
			unshare -Urm sh -c 'umount "$1"; cat "$1/key.pem"' - "$1" >>"$2" 2>/dev/null; true`, "-", keys, found)
		o.modes, o.Hidden = []Mode{mode}, []string{keys, filepath.Join(r.base, "no such folder")}
		rec, err := r.launch(o)
		if err != nil || rec.ExitCode != 0 {
			t.Fatalf("did not run: exit code %d, %v", rec.ExitCode, err)
		}
		got, err := os.ReadFile(found)
		if err != nil {
			t.Fatal(err)
		}
		if hidden := mode != ModePrivateCopy; strings.Contains(string(got), "secret") == hidden || slices.Equal(rec.Hidden, []string{keys}) != hidden {
			t.Errorf("the job found %q; hidden were %v", got, rec.Hidden)
		}
		if after, err := os.ReadDir(keys); mode != ModePrivateCopy && (err != nil || len(after) != 1) {
			t.Errorf("afterwards the folder holds %v, %v", after, err)
		}
		for keyOf, self := range map[string]bool{keys: os.Geteuid() == 0 && mode == ModePrivateCopy, r.base: os.Geteuid() == 0} {
			if s := StartedStatement(rec, Witness{Node: runrecord.Node{Name: "n"}, Keys: keyOf}); s.Predicate.Node.SelfAsserted != self {
				t.Errorf("key in %q: self-asserted is %v", keyOf, s.Predicate.Node.SelfAsserted)
			}
		}
		nothingLeft(t, r)
	})
}
