package archive_test

import (
	"archive/tar"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
)

func folder(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func all(string) bool { return true }

// unpackAlike unpacks a job package: the verdict must be the one of CheckJob, and what is written must be what is told.
func unpackAlike(t *testing.T, src []byte, want rule.Report) {
	t.Helper()
	dir := t.TempDir()
	root := folder(t, dir)
	got, report, err := archive.UnpackJob(archive.FromBytes(src), root, rule.Policy{}, all)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Violations, report.Violations); diff != "" {
		t.Errorf("unpacking judges otherwise (-check +unpack)\n%s", diff)
	}
	if !report.OK() {
		return
	}
	if got.Digest != digest.FromBytes(src) {
		t.Errorf("the digest is %s, expected %s", got.Digest, digest.FromBytes(src))
	}
	if diff := cmp.Diff(written(t, dir), got.Contents); diff != "" {
		t.Errorf("written and told (-written +told)\n%s", diff)
	}
	if got.Files != len(got.Contents) {
		t.Errorf("%d members, told of %d", got.Files, len(got.Contents))
	}
}

// written is what lies below dir.
func written(t *testing.T, dir string) map[string]archive.JobFile {
	t.Helper()
	found := make(map[string]archive.JobFile)
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.Type()&fs.ModeSymlink != 0 {
			link, err := os.Readlink(p)
			found[rel] = archive.JobFile{Link: link}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s can be written to: %s", rel, info.Mode())
		}
		b, err := os.ReadFile(p)
		found[rel] = archive.JobFile{Size: info.Size(), SHA256: sha256.Sum256(b), Executable: info.Mode()&0o111 != 0}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Only what is wanted is written; a link to what is not wanted goes with it.
func TestUnpackJobWanted(t *testing.T) {
	src := jobArchive(t, entry{name: "experiments/a/config.yaml", content: "x"}, entry{name: "common/u.py", content: "u"},
		entry{name: "experiments/a/u.py", link: "../../common/u.py"}, entry{name: "experiments/a/h.py", link: "common/u.py", kind: tar.TypeLink},
		entry{name: "experiments/a/same", link: "config.yaml"})
	dir := t.TempDir()
	got, report, err := archive.UnpackJob(archive.FromBytes(src), folder(t, dir), rule.Policy{}, func(p string) bool { return !strings.HasPrefix(p, "common/") })
	if err != nil || !report.OK() || len(got.Contents) != 2 || got.Files != 5 {
		t.Fatalf("got %+v, %v, %v", got, report.Violations, err)
	}
	if diff := cmp.Diff(written(t, dir), got.Contents); diff != "" {
		t.Errorf("written and told (-written +told)\n%s", diff)
	}
}

// A package in which a file is a folder too is refused like any other, in either order.
func TestUnpackJobClash(t *testing.T) {
	for _, names := range [][]string{{"experiments/a", "experiments/a/b"}, {"experiments/a/b", "experiments/a"}} {
		src := jobArchive(t, entry{name: names[0]}, entry{name: names[1]})
		_, want, err := archive.CheckJob(archive.FromBytes(src), rule.Policy{})
		if err != nil || want.OK() {
			t.Fatalf("%v: %v, %v", names, want, err)
		}
		unpackAlike(t, src, want)
	}
}

// What stands in the way is never written through, and no link in the folder is followed out of it.
func TestUnpackJobIntoLinks(t *testing.T) {
	outside := t.TempDir()
	dir := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "common")); err != nil {
		t.Fatal(err)
	}
	src := jobArchive(t, entry{name: "common/u.py", content: "u"})
	if got, _, err := archive.UnpackJob(archive.FromBytes(src), folder(t, dir), rule.Policy{}, all); err == nil {
		t.Errorf("written through a link: %+v", got)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside: %v, %v", left, err)
	}
}
