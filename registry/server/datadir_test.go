package server

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLockData holds that a data directory has one server, and that a start waits for what a killed one left running for
// a moment.
func TestLockData(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	release, err := lockData(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockData(dir); err == nil || !strings.Contains(err.Error(), "in use by another server") {
		t.Errorf("a second lock: got error %v, want one that says who has it", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	left := exec.Command("flock", filepath.Join(dir, lockFile), "sh", "-c", "echo locked; sleep 0.2")
	out, err := left.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	if release, err = lockData(dir); err != nil {
		t.Fatalf("a lock that ends soon: %v", err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if err := left.Wait(); err != nil {
		t.Error(err)
	}
}
