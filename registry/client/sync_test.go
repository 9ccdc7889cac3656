package client

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatehouse-registry/gatehouse/testdata"
)

// fileText is a file of a vector: a text, or bytes in base64.
type fileText []byte

func (f *fileText) UnmarshalJSON(src []byte) error {
	var text string
	if json.Unmarshal(src, &text) == nil {
		*f = fileText(text)
		return nil
	}
	var packed struct{ Base64 []byte }
	err := json.Unmarshal(src, &packed)
	*f = packed.Base64
	return err
}

type syncVector struct {
	ID, Kind string
	Input    struct {
		Rows     json.RawMessage
		Local    map[string]map[string]fileText
		Packages map[string]string // base64
	}
	Expect struct {
		Added, Updated, Removed []string
		Failed, Fetched         [][]string
		FilesAfter              []string `json:"files_after"`
	}
}

func readSyncVectors(t *testing.T) []syncVector {
	t.Helper()
	src, err := testdata.FS.ReadFile("vectors/pack-sync-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []syncVector }
	if err := json.Unmarshal(src, &file); err != nil {
		t.Fatal(err)
	}
	return file.Vectors
}

// homeOf lays a vector's local files below a new folder, which has a parent of its own.
func homeOf(t *testing.T, local map[string]map[string]fileText) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir, files := range local {
		for name, text := range files {
			file := filepath.Join(home, dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, text, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return home
}

// filesBelow are the files below a folder with their texts.
func filesBelow(t *testing.T, root string) map[string]fileText {
	t.Helper()
	files := make(map[string]fileText)
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files[name], err = os.ReadFile(filepath.Join(root, name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Our own client syncs packs as the real ones do, but for ids that are no safe paths: those it never follows.
func TestPackSyncVectors(t *testing.T) {
	agree, onPurpose := 0, deliberate(t, "pack-sync")
	for _, v := range readSyncVectors(t) {
		home := homeOf(t, v.Input.Local)
		var fetched [][]string
		opt := SyncOptions{Home: home, Prune: true, Fetch: func(_ context.Context, p ShelfPack) (io.ReadCloser, error) {
			owner, packName, _ := strings.Cut(p.ID, "/")
			fetched = append(fetched, []string{owner, packName, p.Version})
			src, ok := v.Input.Packages[p.ID]
			if !ok {
				return nil, errors.New("no such package")
			}
			raw, err := base64.StdEncoding.DecodeString(src)
			return io.NopCloser(bytes.NewReader(raw)), err
		}}
		shelf, err := ReadShelf(slices.Concat([]byte(`{"extensions":`), v.Input.Rows, []byte("}")))
		if onPurpose[v.ID] {
			if err == nil || v.Kind != "hostile-id" {
				t.Errorf("%s: the shelf %s is taken, or is none to refuse", v.ID, v.Input.Rows)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", v.ID, err)
			continue
		}
		out, err := SyncPacks(t.Context(), shelf, opt)
		if err != nil {
			t.Errorf("%s: %v", v.ID, err)
		}
		var failed []string
		for _, f := range out.Failed {
			failed = append(failed, f.Pack)
		}
		var want []string
		for _, f := range v.Expect.Failed {
			want = append(want, f[0])
		}
		same := cmp.Options{cmpopts.EquateEmpty()}
		diff := cmp.Diff(v.Expect.Added, out.Added, same) + cmp.Diff(v.Expect.Updated, out.Updated, same) + cmp.Diff(v.Expect.Removed, out.Removed, same) +
			cmp.Diff(want, failed, same) + cmp.Diff(v.Expect.Fetched, fetched, same) + cmp.Diff(v.Expect.FilesAfter, slices.Sorted(maps.Keys(filesBelow(t, home))), same)
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", v.ID, diff)
			continue
		}
		agree++
	}
	t.Logf("pack-sync: %d agree, %d differ on purpose (ids that are no safe paths)", agree, len(onPurpose))
}

// deliberate are the vectors of a family that we answer otherwise on purpose.
func deliberate(t *testing.T, family string) map[string]bool {
	t.Helper()
	src, err := testdata.FS.ReadFile("vectors/deliberate.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]struct{ ID string }
	if err := json.Unmarshal(src, &all); err != nil {
		t.Fatal(err)
	}
	ids := make(map[string]bool)
	for _, v := range all[family] {
		ids[v.ID] = true
	}
	return ids
}

// What is not on the shelf stays until somebody asks for it to go; an answer that can't be trusted changes nothing.
func TestSyncLeavesWhatNobodyAskedToRemove(t *testing.T) {
	home := homeOf(t, map[string]map[string]fileText{"recipes/alice/tune": {"plugin.yaml": fileText("a")}})
	out, err := SyncPacks(t.Context(), nil, SyncOptions{Home: home})
	if err != nil || !slices.Equal(out.Left, []string{"alice/tune"}) || len(out.Removed) != 0 || len(filesBelow(t, home)) != 1 {
		t.Errorf("%+v, %v, files %v", out, err, filesBelow(t, home))
	}
	for _, bad := range []string{
		``, `[]`, `{"extensions":{}}`, `{"extensions":["a/b"]}`, `{"extensions":[null]}`, `{"extensions":[{"id":"a/../b","kind":"recipe"}]}`,
		`{"extensions":[{"id":"a/.b","kind":"recipe"}]}`, `{"extensions":[{"id":"a/B","kind":"recipe"},{"id":"a/b","kind":"recipe"}]}`,
		`{"extensions":[{"id":"a\\b/c","kind":"recipe"}]}`, `{"extensions":[{"id":"/b","kind":"recipe"}]}`,
	} {
		if list, err := ReadShelf([]byte(bad)); err == nil {
			t.Errorf("%s is read as %v", bad, list)
		}
	}
}

// A link in the home that leads elsewhere is not followed.
func TestSyncStaysInItsHome(t *testing.T) {
	v := readSyncVectors(t)[0]
	home := homeOf(t, nil)
	elsewhere := filepath.Join(filepath.Dir(home), "elsewhere")
	if err := errors.Join(os.MkdirAll(elsewhere, 0o755), os.Symlink(elsewhere, filepath.Join(home, "recipes"))); err != nil {
		t.Fatal(err)
	}
	shelf, err := ReadShelf(slices.Concat([]byte(`{"extensions":`), v.Input.Rows, []byte("}")))
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := base64.StdEncoding.DecodeString(v.Input.Packages[shelf[0].ID])
	out, _ := SyncPacks(t.Context(), shelf, SyncOptions{Home: home, Prune: true, Fetch: func(context.Context, ShelfPack) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(raw)), nil
	}})
	if len(out.Failed) != 1 || len(filesBelow(t, elsewhere)) != 0 {
		t.Errorf("%+v; outside lies %v", out, filesBelow(t, elsewhere))
	}
}
