package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReplaceAndCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := Create(path, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("two"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second Create: %v, want fs.ErrExist", err)
	}
	check(t, path, "one", 0o600)
	if err := Replace(path, []byte("three"), 0o644); err != nil {
		t.Fatal(err)
	}
	check(t, path, "three", 0o644)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v (%v), want the file alone", left, err)
	}
	if err := Replace(filepath.Join(dir, "absent", "f"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Replace in an absent folder: %v, want fs.ErrNotExist", err)
	}
}

func TestReplaceIn(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	path := filepath.Join(dir, "f")
	for _, text := range []string{"one", "two"} {
		if err := ReplaceIn(root, "f", []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		check(t, path, text, 0o640)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"folder", "absent/f", "../f"} {
		if err := ReplaceIn(root, name, nil, 0o600); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("the folder holds %v (%v), want the file and the folder", left, err)
	}
}

func check(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		t.Errorf("content %q (%v), want %q", got, err, content)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != mode {
		t.Errorf("mode %v (%v), want %v", info.Mode().Perm(), err, mode)
	}
}
