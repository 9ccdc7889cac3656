//go:build linux

package launchverify

import (
	"os"
	"os/user"
	"slices"
	"strconv"
	"testing"
)

// An account is found by name and by uid, with its groups; a uid that nobody has needs a group; what means nobody is refused.
func TestLookupUser(t *testing.T) {
	root, err := LookupUser("root")
	if err != nil || root.UID != 0 || root.Name != "root" || root.Home == "" || !slices.Contains(root.Groups, root.GID) {
		t.Errorf("root: %+v, %v", root, err)
	}
	if same, err := LookupUser("0"); err != nil || same.Name != "root" || !slices.Equal(same.Groups, root.Groups) {
		t.Errorf("0: %+v, %v", same, err)
	}
	other, err := LookupUser("root:65534")
	if err != nil || other.UID != 0 || other.GID != 65534 || !slices.Contains(other.Groups, 65534) {
		t.Errorf("another group: %+v, %v", other, err)
	}
	if named, err := LookupUser("root:daemon"); err != nil || named.GID == 0 {
		t.Errorf("a group by name: %+v, %v", named, err)
	}
	nameless, err := LookupUser("4000000001:4000000002")
	if err != nil || nameless.UID != 4000000001 || nameless.GID != 4000000002 || !slices.Equal(nameless.Groups, []int{4000000002}) || nameless.Home != "" {
		t.Errorf("nobody's uid: %+v, %v", nameless, err)
	}
	for _, text := range []string{"", ":1", "root:", "4000000001", "no-such-user", "no-such-user:0", "root:no-such-group", "4294967295:1", "4294967296:1", "-1:1", "0x0:0", "+0:0", "00:0", "root:+0", "root:4294967296", "1:2:3", "ro\not"} {
		if u, err := LookupUser(text); err == nil || ExitCode(Record{}, err) != exitUsage {
			t.Errorf("%q: %+v, %v", text, u, err)
		}
	}
}

// Whoever has supplementary groups gets them all.
func TestLookupGroups(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	want, err := me.GroupIds()
	if err != nil {
		t.Fatal(err)
	}
	got, err := LookupUser(strconv.Itoa(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range want {
		if n, _ := strconv.Atoi(g); !slices.Contains(got.Groups, n) {
			t.Errorf("the groups are %v, %s is not among them", got.Groups, g)
		}
	}
}
