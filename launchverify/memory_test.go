//go:build linux

package launchverify

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// What a control group leaves is its limit less what is used and can't be taken back; one without a limit limits nothing.
func TestGroupLeft(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		left  int64
		ok    bool
	}{
		"a limit":               {map[string]string{"memory.max": "1000000\n", "memory.current": "400000\n"}, 600000, true},
		"with files cached":     {map[string]string{"memory.max": "1000000", "memory.current": "900000", "memory.stat": "anon 5\ninactive_file 100000\nactive_file 200000\n"}, 400000, true},
		"nothing left":          {map[string]string{"memory.max": "1000", "memory.current": "4000"}, 0, true},
		"no limit":              {map[string]string{"memory.max": "max\n", "memory.current": "4000"}, 0, false},
		"a limit that is none":  {map[string]string{"memory.max": "9223372036854771712"}, 0, false},
		"no such group":         {nil, 0, false},
		"what can't be read":    {map[string]string{"memory.max": "much"}, 0, false},
		"usage that is unknown": {map[string]string{"memory.max": "1000"}, 1000, true},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		left, _, ok := memoryGroup{dir, "memory.max", "memory.current"}.left()
		if left != c.left || ok != c.ok {
			t.Errorf("%s: %d, %v; expected %d, %v", name, left, ok, c.left, c.ok)
		}
	}
	if left, by := memoryLeft(); left <= 0 || left == math.MaxInt64 || by == "" {
		t.Errorf("this node: %d by %q", left, by)
	}
}
