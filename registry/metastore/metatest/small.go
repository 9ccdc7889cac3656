package metatest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

var smallTests = map[string]func(*testing.T, registry.MetaStore){
	"SmallBlobs":    testSmallBlobs,
	"ClosedUploads": testClosedUploads,
	"Generation":    testGeneration,
}

func testSmallBlobs(t *testing.T, s registry.MetaStore) {
	put := func(content []byte, n int) {
		update(t, s, func(tx registry.Tx) error { return tx.PutSmall(digest.FromBytes(content), content, at(n)) })
	}
	contents := [][]byte{nil, []byte("{}"), {0, 255, 0}, bytes.Repeat([]byte("x"), 32<<10)}
	var list []registry.StoredBlob
	for i, content := range contents {
		put(content, i)
		list = append(list, registry.StoredBlob{Digest: digest.FromBytes(content), Size: int64(len(content)), StoredAt: at(i)})
	}
	byDigest := func(a, b registry.StoredBlob) int { return strings.Compare(a.Digest.String(), b.Digest.String()) }
	for i, content := range contents {
		got := view(t, s, func(tx registry.Tx) ([]byte, error) { return tx.Small(list[i].Digest) })
		same(t, "small blob", got, content)
		stat := view(t, s, func(tx registry.Tx) (registry.StoredBlob, error) { return tx.StatSmall(list[i].Digest) })
		same(t, "what is known of a small blob", stat, list[i])
	}
	put(contents[1], 50)
	list[1].StoredAt = at(50)
	slices.SortFunc(list, byDigest)
	page := func(after digest.Digest, limit int) []registry.StoredBlob {
		return view(t, s, func(tx registry.Tx) ([]registry.StoredBlob, error) { return tx.SmallBlobs(after, limit) })
	}
	same(t, "all small blobs, by digest", page(digest.Digest{}, -1), list)
	same(t, "the first two", page(digest.Digest{}, 2), list[:2])
	same(t, "those behind the first", page(list[0].Digest, 9), list[1:])

	gone := list[1].Digest
	for range 2 {
		update(t, s, func(tx registry.Tx) error { return tx.DeleteSmall(gone) })
	}
	missing(t, s, "deleted small blob", registry.BlobUnknown, func(tx registry.Tx) ([]byte, error) { return tx.Small(gone) })
	missing(t, s, "deleted small blob", registry.BlobUnknown, func(tx registry.Tx) (registry.StoredBlob, error) { return tx.StatSmall(gone) })
	same(t, "the others", page(list[0].Digest, 9), list[2:])
}

func testClosedUploads(t *testing.T, s registry.MetaStore) {
	closed := func(id string) bool {
		return view(t, s, func(tx registry.Tx) (bool, error) { return tx.UploadClosed(id) })
	}
	if closed("u1") {
		t.Error("an upload is closed before it was closed")
	}
	for i, id := range []string{"u1", "u2", "u1"} {
		update(t, s, func(tx registry.Tx) error { return tx.CloseUpload(id, at(i+1)) })
	}
	for n, want := range [][2]bool{{true, true}, {false, true}, {false, false}} {
		update(t, s, func(tx registry.Tx) error { return tx.ForgetClosedUploads(at(n)) })
		if got := [2]bool{closed("u1"), closed("u2")}; got != want {
			t.Errorf("closed at second %d: got %v, want %v", n, got, want)
		}
	}
}

// testGeneration checks that a store that counts its commits moves the number with every one that changes something.
func testGeneration(t *testing.T, s registry.MetaStore) {
	before, exact := s.Generation()
	if !exact {
		return // nothing is promised
	}
	view(t, s, func(tx registry.Tx) ([]string, error) { return tx.Repositories("", 1) })
	if g, _ := s.Generation(); g != before {
		t.Errorf("a View moves the generation from %d to %d", before, g)
	}
	for range 3 {
		update(t, s, func(tx registry.Tx) error { return tx.PutSetting("a", "b") })
		g, _ := s.Generation()
		if g <= before {
			t.Errorf("generation after a commit: %d, before it %d", g, before)
		}
		before = g
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Update(ctx, func(tx registry.Tx) error { return tx.PutSetting("a", "c") }); err == nil {
		t.Error("an Update without time succeeds")
	}
}
