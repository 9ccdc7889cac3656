//go:build linux

package launchverify

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// A probe finds the modes that launches get here, and leaves nothing: no folder for a cache that is not there, no mount point.
func TestProbe(t *testing.T) {
	base := t.TempDir()
	_, before := os.Lstat(runMountPoint)
	o := ProbeOptions{CacheDir: filepath.Join(base, "not", "yet", "there")}
	found, err := RunProbe(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	var got []Mode
	for _, m := range found.Modes {
		if m.Available {
			got = append(got, m.Mode)
		}
		if m.Available == (m.Why != "") || m.Available && m.Tracking == "" {
			t.Errorf("%+v", m)
		}
	}
	want := modes(t)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %v, launches get %v", got, want)
	}
	left, err := os.ReadDir(base)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	if _, after := os.Lstat(runMountPoint); errors.Is(before, fs.ErrNotExist) && after == nil && len(want) < 2 {
		t.Errorf("%s was left", runMountPoint)
	}

	// What it says a launch would get is what one gets.
	r := newRig(t, dialect.Forge)
	r.spec()
	r.sign()
	lo := r.options()
	lo.AllowPrivateCopy = false
	if rec, err := r.launch(lo); rec.Mode != found.Mode || (err == nil) != (found.Mode != "") {
		t.Errorf("a launch got %q (%v), the probe said %q", rec.Mode, err, found.Mode)
	}
	nothingLeft(t, r)
}

// What can't be had is said, and why.
func TestProbeFindsNothing(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := RunProbe(context.Background(), ProbeOptions{CacheDir: filepath.Join(file, "cache"), MountPoint: base})
	if err != nil || found.Mode != "" {
		t.Errorf("found %+v, %v", found, err)
	}
	for _, m := range found.Modes {
		if m.Mode != ModePrivateCopy && (m.Available || m.Why == "") {
			t.Errorf("%+v", m)
		}
	}
	facts := map[string]bool{}
	for _, f := range found.Facts {
		facts[f.Name] = f.OK
	}
	if facts["cache"] || facts["mount point"] || !facts["no_new_privs"] || !facts["/proc"] {
		t.Errorf("facts %+v", found.Facts)
	}
	if _, err := RunProbe(context.Background(), ProbeOptions{CacheDir: base, User: &User{UID: os.Geteuid() + 1}}); os.Geteuid() != 0 && ExitCode(Record{}, err) != exitUsage {
		t.Errorf("another user: %v", err)
	}
}

// A limit on namespaces is named as what it is: the kernel says that no space is left on a device.
func TestNamespacesUsedUp(t *testing.T) {
	got := whyUnavailable(&fs.PathError{Op: "fork/exec", Path: "/proc/self/exe", Err: syscall.ENOSPC})
	if strings.Contains(got, "device") || !strings.Contains(got, "user.max_user_namespaces=") {
		t.Errorf("said %q", got)
	}
	if got := whyUnavailable(syscall.EPERM); got != syscall.EPERM.Error() {
		t.Errorf("said %q", got)
	}
}
