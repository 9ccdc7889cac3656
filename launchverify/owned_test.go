//go:build linux

package launchverify

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
)

// ownedVerb makes this program a root that says what it is worth, by itself, in the record of a launch, and by a probe.
const ownedVerb = "owned-root"

func init() {
	if len(os.Args) == 3 && os.Args[1] == ownedVerb {
		os.Exit(sayOwned(os.Args[2]))
	}
}

func sayOwned(file string) int {
	var a agentOptions
	src, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(src, &a)
	}
	var trust []byte
	if err == nil {
		trust, err = os.ReadFile(a.Trust)
	}
	set, parseErr := receipt.ParseTrust(trust)
	if err != nil || parseErr != nil {
		return 3
	}
	rec, err := Run(context.Background(), Options{JobSpec: a.JobSpec, Trust: set, CacheDir: a.Cache, Command: a.Command, Env: a.Env, Fetcher: &shelf{down: true}})
	probe, probeErr := RunProbe(context.Background(), ProbeOptions{CacheDir: a.Cache})
	told := StartedStatement(rec, Witness{}).Predicate
	fmt.Printf("owned %v, self-asserted %v, launched in mode %q (%v), because %v; probe says %q (%v)", ownedRoot() != "", told.Node.SelfAsserted, rec.Mode, err, rec.Unavailable[ModeRoot] == ownedRoot(), probe.Mode, probeErr)
	return 0
}

// Root of a user namespace is as good as who made it: where that is somebody of the namespace, as in root-less containers, a launch
// has mode user and says why; where it is the node's own root, as in a pod with a user namespace, mode root.
func TestOwnedRoot(t *testing.T) {
	r := newRig(t, dialect.Forge)
	r.spec()
	r.sign()
	o := r.options("true")
	o.modes = []Mode{ModeRoot}
	file := r.agentFile(o)
	say := func(hostID, size int) string {
		cmd := exec.Command("/proc/self/exe", ownedVerb, file)
		cmd.Env = []string{noWait}
		ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: hostID, Size: size}}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, UidMappings: ids, GidMappings: ids}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if os.Geteuid() != 0 {
		if got := say(os.Geteuid(), 1); !strings.HasPrefix(got, "owned true, self-asserted true") {
			t.Error(got)
		}
		return // no folder of the node's is this root's: it gets no mount point
	}
	const want = `owned true, self-asserted true, launched in mode "user" (<nil>), because true; probe says "user" (<nil>)`
	if got := say(0, 65536); got != want {
		t.Errorf("%s\nexpected %s", got, want)
	}
	if got := say(100000, 65536); !strings.HasPrefix(got, "owned false, self-asserted false") {
		t.Errorf("the node's root made the namespace, and is not of it: %s", got)
	}
	if why := ownedRoot(); why != "" && !strings.Contains(why, "namespace") {
		t.Error(why)
	}
}
