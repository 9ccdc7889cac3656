package tree_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// opener opens files from memory and counts.
type opener struct {
	files  map[string]string
	opened int
}

func (o *opener) open(path string) (io.ReadCloser, error) {
	o.opened++
	return io.NopCloser(strings.NewReader(o.files[path])), nil
}

func hashAll(t *testing.T, paths []string, files map[string]string) (*tree.Listing, int) {
	t.Helper()
	h := tree.NewHasher()
	defer h.Close()
	for _, path := range paths {
		if err := h.Add(path, false, iotest.HalfReader(strings.NewReader(files[path]))); err != nil {
			t.Fatal(err)
		}
	}
	o := opener{files: files}
	l, err := h.Finish(o.open)
	if err != nil {
		t.Fatal(err)
	}
	return l, o.opened
}

func TestHasherAnyOrder(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"a-b": "1", "a.txt": strings.Repeat("2", 200_000), "a/b": "", "a0": "4", "aa": strings.Repeat("5", 64<<10), "é": "6",
	}
	sorted := []string{"a-b", "a.txt", "a/b", "a0", "aa", "é"}
	want, opened := hashAll(t, sorted, files)
	if opened != 0 {
		t.Errorf("files in path order were read again: %d opened", opened)
	}
	content, proof := plainDigests(sorted, files)
	if want.Content != content || want.Tree != proof || want.Files != 6 {
		t.Errorf("listing %v, %v, %d files, want %v, %v, 6", want.Content, want.Tree, want.Files, content, proof)
	}
	dir := open(t, write(t, files)).Listing()
	dir.Entries = slices.DeleteFunc(dir.Entries, func(e tree.Entry) bool { return e.Kind == tree.Folder })
	if diff := cmp.Diff(dir, want, cmp.Comparer(func(a, b digest.Digest) bool { return a == b })); diff != "" {
		t.Errorf("directory and entries differ (-directory +entries):\n%s", diff)
	}
	for range 30 {
		shuffled := slices.Clone(sorted)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		got, opened := hashAll(t, shuffled, files)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b digest.Digest) bool { return a == b })); diff != "" {
			t.Errorf("order %q gives another listing:\n%s", shuffled, diff)
		}
		if inOrder := slices.IsSorted(shuffled); inOrder != (opened == 0) {
			t.Errorf("order %q: %d files opened again", shuffled, opened)
		}
	}
}

func TestHasherLinks(t *testing.T) {
	t.Parallel()
	h := tree.NewHasher()
	defer h.Close()
	h.Link("alias", "main.py", "main.py")
	if err := h.Add("main.py", true, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	h.Link("sub/hard", "main.py", "")
	o := opener{files: map[string]string{"main.py": "x"}}
	l, err := h.Finish(o.open)
	if err != nil {
		t.Fatal(err)
	}
	content, proof := plainDigests([]string{"alias", "main.py", "sub/hard"}, map[string]string{"alias": "x", "main.py": "x", "sub/hard": "x"})
	if l.Content != content || l.Tree != proof || l.Bytes != 3 {
		t.Errorf("listing %+v, want %v, %v", l, content, proof)
	}
	if e, _ := l.Lookup("alias"); e.Link != "main.py" || !e.Executable || string(e.Head) != "x" {
		t.Errorf("alias is %+v", e)
	}
}

func TestHasherRefuses(t *testing.T) {
	t.Parallel()
	add := func(h *tree.Hasher, path string) {
		if err := h.Add(path, false, strings.NewReader(path)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name  string
		build func(h *tree.Hasher)
		want  error
	}{
		{"same path twice", func(h *tree.Hasher) { add(h, "a"); add(h, "a") }, tree.ErrTwice},
		{"same path later", func(h *tree.Hasher) { add(h, "a"); add(h, "b"); add(h, "a") }, tree.ErrTwice},
		{"link over a file", func(h *tree.Hasher) { add(h, "a"); add(h, "b"); h.Link("a", "b", "") }, nil},
		{"link to nothing", func(h *tree.Hasher) { add(h, "a"); h.Link("b", "c", "") }, nil},
		{"link to itself", func(h *tree.Hasher) { h.Link("b", "b", "") }, nil},
		{"link to a link", func(h *tree.Hasher) { add(h, "a"); h.Link("b", "a", ""); h.Link("c", "b", "") }, nil},
	}
	for _, tt := range tests {
		h := tree.NewHasher()
		tt.build(h)
		o := opener{files: map[string]string{"a": "a", "b": "b"}}
		l, err := h.Finish(o.open)
		if err == nil || l != nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: listing %v, error %v, want %v", tt.name, l, err, tt.want)
		}
	}
}

func TestHasherVerifiesSecondReading(t *testing.T) {
	t.Parallel()
	h := tree.NewHasher()
	for _, path := range []string{"b", "a"} {
		if err := h.Add(path, false, strings.NewReader(path)); err != nil {
			t.Fatal(err)
		}
	}
	o := opener{files: map[string]string{"a": "a", "b": "changed"}}
	_, err := h.Finish(o.open)
	if _, ok := errors.AsType[*digest.MismatchError](err); !ok {
		t.Errorf("bytes that differ the second time: %v, want a mismatch", err)
	}
}

func TestHasherReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	h := tree.NewHasher()
	defer h.Close()
	err := h.Add("a", false, io.MultiReader(bytes.NewReader(make([]byte, 100_000)), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's own", err)
	}
}

// TestHasherManyFiles has files of all sizes begin and end anywhere in the Hasher's buffers.
func TestHasherManyFiles(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	files := make(map[string]string)
	var paths []string
	for i := range 2000 {
		path := fmt.Sprintf("f%04d", i)
		size := random.IntN(200)
		if i%100 == 0 {
			size = random.IntN(300_000)
		}
		paths, files[path] = append(paths, path), strings.Repeat(string(rune('a'+i%26)), size)
	}
	l, _ := hashAll(t, paths, files)
	content, proof := plainDigests(paths, files)
	if l.Content != content || l.Tree != proof {
		t.Errorf("digests %v, %v, want %v, %v", l.Content, l.Tree, content, proof)
	}
	for _, e := range l.Entries {
		if want := files[e.Path]; string(e.Head) != want[:min(len(want), tree.HeadSize)] || e.Size != int64(len(want)) {
			t.Errorf("%s: head %q, size %d, want %q, %d", e.Path, e.Head, e.Size, want[:min(len(want), tree.HeadSize)], len(want))
		}
	}
}
