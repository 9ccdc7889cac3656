//go:build unix

package nodecache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// theirs is a file as another account's.
type theirs struct{ fs.FileInfo }

func (t theirs) Sys() any {
	stat := *t.FileInfo.Sys().(*syscall.Stat_t)
	stat.Uid++
	return &stat
}

// What carries no signature is only believed of ourselves.
func TestOwnDocument(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, Options{})
	if err := c.SetDocument("note", []byte("ours")); err != nil {
		t.Fatal(err)
	}
	if b, err := c.OwnDocument("note"); err != nil || string(b) != "ours" {
		t.Errorf("our own: %q, %v", b, err)
	}
	info, err := os.Stat(filepath.Join(dir, "documents", "note"))
	if err != nil {
		t.Fatal(err)
	}
	if ownFile(theirs{info}) || !ownFile(info) {
		t.Error("whose a file is can't be told")
	}
	if _, err := c.document("note", func(info fs.FileInfo) bool { return ownFile(theirs{info}) }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another account's: %v", err)
	}
	for name, put := range map[string]func(string) error{
		"a folder": func(at string) error { return os.Mkdir(at, 0o755) },
		"nothing":  func(string) error { return nil },
	} {
		if err := put(filepath.Join(dir, "documents", name)); err != nil {
			t.Fatal(err)
		}
		if b, err := c.OwnDocument(name); err == nil {
			t.Errorf("%s: %q", name, b)
		}
	}
}
