//go:build linux

package walk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A path leads where the kernel would lead it, but for links that have more than a text.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.MkdirAll(at("a/b"), 0o755), os.Symlink("a", at("relative")), os.Symlink(at("a"), at("absolute")), os.Symlink("../../relative/b/..", at("a/b/back")),
		os.Symlink("loop", at("loop")), os.WriteFile(at("file"), nil, 0o600), os.Mkdir(at("gone"), 0o755),
	)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"a": "a", "a/b": "a/b", "relative/b": "a/b", "absolute": "a", "a/b/back": "a", "a/b/back/b": "a/b", "/": "",
		"loop": "!", "file": "!", "file/x": "!", "absent": "!",
	} {
		f, err := Open(dir+"/"+path, nil)
		if want == "!" {
			if err == nil {
				t.Errorf("%s was opened", path)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		got, gotErr := f.Stat()
		expected, wantErr := os.Stat(at(want))
		if f.Close(); gotErr != nil || wantErr != nil || !os.SameFile(got, expected) {
			t.Errorf("%s leads elsewhere than %s", path, want)
		}
	}

	// A folder that has no name any more has a descriptor, and a link to that in /proc, which leads nowhere.
	held, err := os.Open(at("gone"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := os.Remove(at("gone")); err != nil {
		t.Fatal(err)
	}
	magic := fmt.Sprintf("/proc/self/fd/%d", held.Fd())
	if _, err := os.Stat(magic); err != nil {
		t.Fatal(err)
	}
	if f, err := Open(magic, nil); err == nil {
		f.Close()
		t.Error("a link of /proc led to more than its text")
	}

	refused := errors.New("refused")
	owner := -1
	if _, err := Open(at("relative"), func(of int) error { owner = of; return refused }); !errors.Is(err, refused) || owner != os.Geteuid() {
		t.Errorf("a link that is refused: %v, owner %d", err, owner)
	}
	if _, err := Open(at("a/b"), func(int) error { return refused }); err != nil {
		t.Errorf("no link: %v", err)
	}
	if _, err := Open(at("loop"), nil); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a loop: %v", err)
	}
}
