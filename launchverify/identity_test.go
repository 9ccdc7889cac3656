//go:build linux

package launchverify

import (
	"os"
	"slices"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// The record names the groups that the command has: whoever launches for itself gets no others by asking.
func TestGroupsOfOneself(t *testing.T) {
	r := newRig(t, dialect.Forge)
	r.spec()
	r.sign()
	for gid, want := range map[int]int{os.Getegid(): 0, os.Getegid() + 1: exitUsage} {
		o := r.options("true")
		o.User = &User{UID: os.Geteuid(), GID: gid, Groups: []int{gid, 4000000001}}
		rec, err := r.launch(o)
		if code := ExitCode(rec, err); code != want {
			t.Errorf("group %d: exit code %d (%v), expected %d", gid, code, err, want)
		}
		own, _ := os.Getgroups()
		if want == 0 && (rec.User.GID != gid || !slices.Equal(rec.User.Groups, own)) {
			t.Errorf("the record names %+v, the command had groups %v", rec.User, own)
		}
		if want != 0 && rec.Started {
			t.Errorf("group %d: started", gid)
		}
	}
}
