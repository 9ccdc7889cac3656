package admission

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// checkArchive is what `sf check pack ARCHIVE` does.
func checkArchive(t *testing.T, data []byte) Decision {
	t.Helper()
	a, report, err := archive.Check(archive.FromBytes(data), archive.Options{Plain: true})
	if err != nil {
		t.Fatal(err)
	}
	if a == nil {
		d, err := CheckPack(nil, report, CheckOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	t.Cleanup(func() { a.Close() })
	d, err := CheckPack(a, report, CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// checkFolder is what `sf check pack DIR` does.
func checkFolder(t *testing.T, dir string) Decision {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	tree, report, err := archive.OpenDir(root, archive.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := CheckPack(tree, report, CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Every archive of the corpus meets gate 1: the controls pass, and nothing else does.
func TestCorpusArchives(t *testing.T) {
	files, err := testdata.FS.ReadDir("corpus")
	if err != nil {
		t.Fatal(err)
	}
	accepted, refused := 0, 0
	for _, f := range files {
		ext := filepath.Ext(f.Name())
		if ext != ".tar" && ext != ".tgz" && ext != ".gz" || strings.HasSuffix(f.Name(), ".json.gz") {
			continue
		}
		src, err := testdata.FS.ReadFile("corpus/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		d := checkArchive(t, src)
		if control := strings.HasPrefix(f.Name(), "c"); d.Allowed != control {
			t.Errorf("%s: allowed %t: %v", f.Name(), d.Allowed, d.Violations)
		}
		if d.Allowed {
			accepted++
			continue
		}
		refused++
		for _, v := range d.Violations {
			if !strings.HasPrefix(string(v.Rule), "archive.") {
				t.Errorf("%s: refused by %s", f.Name(), v)
			}
		}
	}
	if accepted != 3 {
		t.Errorf("%d controls accepted, want 3", accepted)
	}
	t.Logf("%d archives of the corpus accepted, %d refused", accepted, refused)
}

// A folder and the archive of it get one verdict with one value.
func TestFolderAndArchiveAgree(t *testing.T) {
	for _, folder := range []string{"arithmetic", "grad-clip", "tiny-sft"} {
		dir := filepath.Join("..", "testdata", "packs", folder)
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		tree, _, err := archive.OpenDir(root, archive.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		if _, err := archive.Pack(&packed, tree); err != nil {
			t.Fatal(err)
		}
		ofFolder, err := json.Marshal(checkFolder(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		ofArchive, err := json.Marshal(checkArchive(t, packed.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(ofFolder), string(ofArchive)); diff != "" {
			t.Errorf("%s (-folder +archive):\n%s", folder, diff)
		}
		if !strings.Contains(string(ofFolder), `"allowed":true`) {
			t.Errorf("%s: %s", folder, ofFolder)
		}
	}
}
