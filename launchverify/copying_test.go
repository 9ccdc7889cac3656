//go:build unix

package launchverify

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCopies copies a tree of the cache that changes after it was listed: what was there when it was read is copied, with a
// byte more of a file that grew, so that gate 3 sees it.
func TestCopies(t *testing.T) {
	dir, into := t.TempDir(), t.TempDir()
	put := func(name string, content []byte) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.NewChaCha8([32]byte{1})
	want := map[string][]byte{}
	for i, size := range []int{0, 1, copyBuffer - 1, copyBuffer, largeFile - 1, largeFile, largeFile + 1, window, window + 1, 2*window + largeFile + 7} {
		for _, fate := range []string{"same", "grown", "shorter", "empty"} {
			if size > window && fate == "empty" {
				continue // all together must be no larger than a pack
			}
			content := make([]byte, size)
			random.Read(content)
			name := fmt.Sprintf("%s/%d/%s%d", strings.Repeat("d", i+1), size, fate, size)
			put(name, content)
			want[name] = content
		}
	}
	for i := range 3 * neighbours {
		put(fmt.Sprintf("many/%d", i), []byte{byte(i)})
		want[fmt.Sprintf("many/%d", i)] = []byte{byte(i)}
	}
	put("replaced", []byte("theirs"))
	put("tool", []byte("#!"))
	want["replaced"], want["tool"] = []byte("ours"), []byte("#!")
	if err := os.Chmod(filepath.Join(dir, "tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	src, err := cachedSource(dir, "a/b")
	if err != nil {
		t.Fatal(err)
	}
	defer src.close()
	for name, content := range want {
		switch fate := filepath.Base(name); {
		case strings.HasPrefix(fate, "grown"):
			put(name, append(bytes.Clone(content), "xy"...))
			want[name] = append(bytes.Clone(content), 'x')
		case strings.HasPrefix(fate, "shorter") && len(content) > 0:
			put(name, content[:len(content)-1])
			want[name] = content[:len(content)-1]
		case strings.HasPrefix(fate, "empty"):
			put(name, nil)
			want[name] = nil
		}
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := src.writeTo(root, map[string][]byte{"replaced": []byte("ours")}); err != nil {
		t.Fatal(err)
	}
	for name, content := range want {
		path := filepath.Join(into, "a/b", name)
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes (%v), want %d", name, len(got), err, len(content))
		}
		mode := os.FileMode(0o444)
		if name == "tool" {
			mode = 0o555
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v (%v), want %v", name, info.Mode(), err, mode)
		}
	}
	if err := src.writeTo(root, nil); err == nil {
		t.Error("what stands there already was written over")
	}
}

// TestCachedSourceRefuses lists trees that no cache of ours holds.
func TestCachedSourceRefuses(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"a link":     func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "link")) },
		"a deep one": func(dir string) error { return os.MkdirAll(filepath.Join(dir, strings.Repeat("deep/", 300)), 0o755) },
		"no folder":  func(dir string) error { return os.Remove(dir) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
			if src, err := cachedSource(dir, "x"); err == nil {
				src.close()
				t.Error("taken")
			}
		})
	}
}
