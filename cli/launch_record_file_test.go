//go:build linux

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gatehouse-registry/gatehouse/launchverify"
)

// A record takes the place of a record, and of nothing else: no device, no pipe, no link.
func TestRecordFile(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		unix.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("folder"), 0o700), os.Symlink(at("elsewhere"), at("link")),
		os.WriteFile(at("old"), []byte("old"), 0o600), os.Symlink(dir, at("way")),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{at("new"), at("old"), at("way/new"), at("folder/../new")} {
		r := recordFile(path)
		if err := errors.Join(r.check(), r.save(launchverify.Record{})); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if b, err := os.ReadFile(path); err != nil || b[0] != '{' {
			t.Errorf("%s holds %q (%v)", path, b, err)
		}
	}
	for _, path := range []string{at("pipe"), at("folder"), at("folder/"), at("folder/."), at("link"), at("absent/f"), at("old/f"), "/dev/null", "/dev/stdout", "/"} {
		before, _ := os.Lstat(path)
		if err := recordFile(path).check(); err == nil || exitCode(err) != exitUsage {
			t.Errorf("%s: check says %v", path, err)
		}
		if err := recordFile(path).save(launchverify.Record{}); err == nil {
			t.Errorf("%s was written to", path)
		}
		if after, _ := os.Lstat(path); before != nil && (after == nil || after.Mode() != before.Mode()) {
			t.Errorf("%s was %v, now %v", path, before, after)
		}
	}
	if _, err := os.Lstat(at("elsewhere")); err == nil {
		t.Error("a link was followed")
	}
}

// Root writes no record by way of a link of somebody else's, wherever on the way it is and whatever it leads to.
func TestRecordFileOfRoot(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(
		os.MkdirAll(at("job/out"), 0o755), os.Mkdir(at("only-root"), 0o700), os.Symlink("../only-root", at("job/way")), os.Symlink(at("job/way"), at("roots")),
		os.Symlink("job/out", at("plain")), os.Symlink("loop", at("loop")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		for _, path := range []string{"job", "job/out", "job/way"} {
			if err := os.Lchown(at(path), 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
	}
	foreign := os.Geteuid() == 0
	for path, refused := range map[string]bool{
		"job/out/record": false, "plain/record": false, "loop/record": true,
		"job/way/record": foreign, "job/way/../record": false, "roots/record": foreign,
	} {
		r := recordFile(dir + "/" + path)
		if err := r.check(); (err != nil) != refused {
			t.Errorf("%s: check says %v", path, err)
		}
		if err := r.save(launchverify.Record{}); (err != nil) != refused {
			t.Errorf("%s: save says %v", path, err)
		}
	}
	if _, err := os.Lstat(at("only-root/record")); foreign && err == nil {
		t.Error("root wrote where a link of somebody else's led")
	}
}
