package oci_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestConformance runs the official conformance program, every workflow on, over the real stores. The program is built
// from a module of its own (registry/internal/conformance).
func TestConformance(t *testing.T) {
	s := newServer(t)
	passwordFile := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(passwordFile, []byte(password), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "run", "-C", "../internal/conformance", ".",
		"-server", s.URL, "-user", "admin", "-password-file", passwordFile).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
