//go:build unix

package nodecache

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// A private copy lies where no other account can put something else in its place, whoever may write to the cache.
func TestPrivateFolderAmongOthers(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"a cache for everybody":       func(dir string) error { return os.Chmod(dir, 0o777) },
		"a cache of a group":          func(dir string) error { return os.Chmod(dir, 0o770) },
		"a folder of copies for all":  func(dir string) error { return os.Chmod(filepath.Join(dir, "roots"), 0o777) },
		"below a folder for all":      func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) },
		"a link to a folder for all":  func(dir string) error { return relink(dir, 0o777) },
		"a folder of copies as it is": nil,
		"a cache with a sticky bit":   func(dir string) error { return os.Chmod(dir, 0o777|fs.ModeSticky) },
		"a link to a folder of ours":  func(dir string) error { return relink(dir, 0o755) },
	} {
		outer := filepath.Join(t.TempDir(), "outer")
		dir := filepath.Join(outer, "cache")
		c := open(t, dir, Options{})
		kept := spoil == nil || name == "a cache with a sticky bit" || name == "a link to a folder of ours"
		if spoil != nil {
			if err := spoil(dir); err != nil {
				t.Fatal(err)
			}
		}
		folder, err := c.PrivateFolder(false)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if real, err := filepath.EvalSymlinks(folder); err != nil || real != folder {
			t.Errorf("%s: the copy's path %s leads over a link, %v", name, folder, err)
		}
		below, err := filepath.Glob(filepath.Join(outer, "*", "roots", "*"))
		if err != nil || (len(below) > 0) != kept {
			t.Errorf("%s: the copy lies at %s", name, folder)
		}
		for at := filepath.Dir(folder); at != "/"; at = filepath.Dir(at) {
			if info, err := os.Stat(at); err != nil || info.Mode()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
				t.Errorf("%s: others may change %s, where the copy lies: %v", name, at, err)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(folder); !kept && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the copy is left behind: %v", name, err)
		}
	}
}

// Another account reaches a copy that is for it, wherever it lies.
func TestPrivateFolderForAnother(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c := open(t, dir, Options{})
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	folder, err := c.PrivateFolder(true)
	if err != nil {
		t.Fatal(err)
	}
	for at := folder; at != filepath.Clean(os.TempDir()); at = filepath.Dir(at) {
		if info, err := os.Stat(at); err != nil || info.Mode()&0o001 == 0 || at == filepath.Dir(at) {
			t.Fatalf("%s can't be searched by others: %v, %v", at, info, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// relink moves the folder and leaves a link in its place.
func relink(dir string, mode fs.FileMode) error {
	to := filepath.Join(filepath.Dir(dir), "moved")
	return errors.Join(os.Rename(dir, to), os.Symlink("moved", dir), os.Chmod(to, mode))
}

// Where no folder is ours alone there is no private copy.
func TestNoPrivateFolder(t *testing.T) {
	outer := filepath.Join(t.TempDir(), "tmp")
	if err := errors.Join(os.Mkdir(outer, 0o755), os.Chmod(outer, 0o777)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", outer)
	c := open(t, filepath.Join(outer, "cache"), Options{})
	if folder, err := c.PrivateFolder(false); err == nil || !strings.Contains(err.Error(), outer) {
		t.Errorf("a private copy at %s, %v", folder, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(outer, reservePrefix+"*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
