package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The verbs of a cache whose folder is none say so, and which one it is.
func TestCacheThatIsNoFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"ls", "verify", "gc"} {
		if out, stderr := sf(t, nil, exitError, "cache", verb, "--cache", path); out != "" || !strings.Contains(stderr, path) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("cache %s: %q, %q", verb, out, stderr)
		}
	}
}
