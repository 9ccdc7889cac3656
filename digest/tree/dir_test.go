package tree_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// open hashes the directory dir.
func open(t *testing.T, dir string) *tree.Dir {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	d, err := tree.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// write makes a directory of files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// plainDigests are the two digests of files, computed as packs.md and design.md define them.
func plainDigests(paths []string, files map[string]string) (content, treeDigest digest.Digest) {
	c, tr := sha256.New(), sha256.New()
	for _, path := range paths {
		io.WriteString(c, path+"\x00"+files[path]+"\x00")
		sum := sha256.Sum256([]byte(files[path]))
		io.WriteString(tr, hex.EncodeToString(sum[:])+"  "+path+"\n")
	}
	return digest.FromHash(digest.SHA256, c), digest.FromHash(digest.SHA256, tr)
}

func TestDirListing(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 100_000) // several pieces of the reading
	files := map[string]string{
		"a-b": "1", "a.txt": "2", "a/b.txt": "3", "a0": "", "big": big, "z/deep/er": "4",
	}
	dir := write(t, files)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(filepath.Join(dir, "a.txt"), 0o755))
	must(os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	must(os.MkdirAll(filepath.Join(dir, "__pycache__/in"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "__pycache__/real.py"), []byte("5"), 0o644))
	must(os.WriteFile(filepath.Join(dir, "m.pyc"), nil, 0o644))
	must(os.Symlink("../a.txt", filepath.Join(dir, "a/link")))
	must(os.Symlink("__pycache__/real.py", filepath.Join(dir, "into")))
	must(os.Symlink("a", filepath.Join(dir, "folder")))
	must(os.Symlink("gone", filepath.Join(dir, "gone.py")))
	must(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	must(os.Symlink("pipe", filepath.Join(dir, "topipe")))

	d := open(t, dir)
	type row struct {
		Path       string
		Kind       tree.Kind
		Link       string
		Size       int64
		Executable bool
		Head       string
	}
	var got []row
	for _, e := range d.Listing().Entries {
		got = append(got, row{e.Path, e.Kind, e.Link, e.Size, e.Executable, string(e.Head)})
	}
	want := []row{
		{"__pycache__", tree.Excluded, "", 0, false, ""},
		{"a", tree.Folder, "", 0, false, ""},
		{"a-b", tree.Counted, "", 1, false, "1"},
		{"a.txt", tree.Counted, "", 1, true, "2"},
		{"a/b.txt", tree.Counted, "", 1, false, "3"},
		{"a/link", tree.Counted, "../a.txt", 1, true, "2"},
		{"a0", tree.Counted, "", 0, false, ""},
		{"big", tree.Counted, "", 1_600_000, false, big[:64]},
		{"empty", tree.Folder, "", 0, false, ""},
		{"folder", tree.FolderLink, "a", 0, false, ""},
		{"gone.py", tree.Dangling, "gone", 0, false, ""},
		{"into", tree.Counted, "__pycache__/real.py", 1, false, "5"},
		{"m.pyc", tree.Excluded, "", 0, false, ""},
		{"pipe", tree.Special, "", 0, false, ""},
		{"topipe", tree.Special, "pipe", 0, false, ""},
		{"z", tree.Folder, "", 0, false, ""},
		{"z/deep", tree.Folder, "", 0, false, ""},
		{"z/deep/er", tree.Counted, "", 1, false, "4"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries differ (-want +got):\n%s", diff)
	}
	files["a/link"], files["into"] = "2", "5"
	content, proof := plainDigests([]string{"a-b", "a.txt", "a/b.txt", "a/link", "a0", "big", "into", "z/deep/er"}, files)
	if l := d.Listing(); l.Content != content || l.Tree != proof || l.Files != 8 || l.Bytes != 1_600_006 {
		t.Errorf("listing is %v, %v, %d files, %d bytes, want %v, %v, 8, 1600006", l.Content, l.Tree, l.Files, l.Bytes, content, proof)
	}
}

func TestDirOutsideHasNoDigest(t *testing.T) {
	for _, text := range []string{"/etc/passwd", "../x", "a/../../x", "..", "/"} {
		dir := write(t, map[string]string{"a/f": "1"})
		if err := os.Symlink(text, filepath.Join(dir, "l")); err != nil {
			t.Fatal(err)
		}
		l := open(t, dir).Listing()
		if e, ok := l.Lookup("l"); !ok || e.Kind != tree.Outside || e.Link != text {
			t.Errorf("link to %s is %+v, want Outside", text, e)
		}
		if !l.Content.IsZero() || !l.Tree.IsZero() {
			t.Errorf("a tree with a link to %s has the digests %v and %v, want none", text, l.Content, l.Tree)
		}
		if err := os.Rename(filepath.Join(dir, "l"), filepath.Join(dir, "l.pyc")); err != nil {
			t.Fatal(err)
		}
		if l := open(t, dir).Listing(); l.Content.IsZero() {
			t.Errorf("a link to %s that is excluded by its own name takes the digest away", text)
		}
	}
}

func TestDirOpenVerifies(t *testing.T) {
	files := map[string]string{"f": "the bytes", "g": "others"}
	dir := write(t, files)
	d := open(t, dir)
	if got, err := tree.ReadFile(d, "f", 9); err != nil || string(got) != "the bytes" {
		t.Errorf("ReadFile = %q, %v", got, err)
	}
	if _, err := tree.ReadFile(d, "f", 8); !errors.Is(err, tree.ErrTooLarge) {
		t.Errorf("ReadFile above its limit: %v, want ErrTooLarge", err)
	}
	for _, path := range []string{"", ".", "gone", "../f", "/etc/passwd"} {
		if _, err := d.Open(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Open(%q): %v, want ErrNotExist", path, err)
		}
	}
	for _, changed := range []string{"the bytez", "the byte", "the bytes and more"} {
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := tree.ReadFile(d, "f", 1000)
		if _, ok := errors.AsType[*digest.MismatchError](err); !ok {
			t.Errorf("reading %q: %v, want a mismatch", changed, err)
		}
		err = tree.Each(d, func(tree.Entry, io.Reader) error { return nil })
		if _, ok := errors.AsType[*digest.MismatchError](err); !ok {
			t.Errorf("walking past %q: %v, want a mismatch", changed, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "f"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Open("f"); err == nil {
		t.Error("a file that became a FIFO opens")
	}
}

func TestDirLimits(t *testing.T) {
	dir := write(t, map[string]string{"a": "12345", "b": "12345", strings.Repeat("d/", 8) + "f": ""})
	sparse := filepath.Join(dir, "sparse")
	tests := []struct {
		name string
		lim  tree.Limits
		size int64 // of a sparse file beside the others
		what string
	}{
		{"none", tree.Limits{}, 1, ""},
		{"just enough", tree.Limits{Files: 4, Bytes: 11, Path: 100}, 1, ""},
		{"files", tree.Limits{Files: 3}, 1, "files"},
		{"entries", tree.Limits{Files: 1}, 1, "files"},
		{"bytes", tree.Limits{Bytes: 10}, 1, "bytes"},
		{"terabyte", tree.Limits{Bytes: 1 << 20}, 1 << 40, "bytes"},
		{"path", tree.Limits{Path: 2}, 1, "path"},
	}
	for _, tt := range tests {
		if err := os.WriteFile(sparse, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(sparse, tt.size); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		_, err = tree.OpenDirWithin(root, tt.lim)
		over, ok := errors.AsType[*tree.LimitError](err)
		switch {
		case tt.what == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.what != "" && (!ok || over.What != tt.what || over.Found <= over.Limit):
			t.Errorf("%s: %v, want a limit on %s", tt.name, err, tt.what)
		}
	}
}

func TestDirReadError(t *testing.T) {
	dir := write(t, map[string]string{"a": "1"})
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	root.Close()
	if _, err := tree.OpenDir(root); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed root: %v, want ErrClosed", err)
	}
}

func TestContentBelow(t *testing.T) {
	files := map[string]string{"recipe.yaml": "x", "template/a": "1", "template/b/c": "2", "template2/a": "3"}
	d := open(t, write(t, files))
	inner := open(t, write(t, map[string]string{"a": "1", "b/c": "2"}))
	for dir, want := range map[string]digest.Digest{
		"template": inner.Listing().Content, "template/": inner.Listing().Content, "./template": inner.Listing().Content,
		".": d.Listing().Content, "": d.Listing().Content, "gone": digest.FromBytes(nil),
	} {
		if got, err := tree.ContentBelow(d, dir); err != nil || got != want {
			t.Errorf("ContentBelow(%q) = %v, %v, want %v", dir, got, err, want)
		}
	}
}

func TestEachInPathOrder(t *testing.T) {
	d := open(t, write(t, map[string]string{"b": "2", "a/x": "1", "a-b": "3"}))
	var got bytes.Buffer
	err := tree.Each(d, func(e tree.Entry, r io.Reader) error {
		got.WriteString(e.Path + "=")
		_, err := io.Copy(&got, r)
		return err
	})
	if err != nil || got.String() != "a-b=3a/x=1b=2" {
		t.Errorf("Each gives %q, %v", got.String(), err)
	}
}
