package metatest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

var smallTests = map[string]func(*testing.T, registry.MetaStore){
	"SmallBlobs":       testSmallBlobs,
	"ClosedUploads":    testClosedUploads,
	"Generation":       testGeneration,
	"AccessGeneration": testAccessGeneration,
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

// testAccessGeneration checks that changes of content leave the number alone, and that every other change moves it.
func testAccessGeneration(t *testing.T, s registry.MetaStore) {
	g, exact := s.AccessGeneration()
	if !exact {
		return // nothing is promised
	}
	step := func(what string, moves bool, fn func(registry.Tx) error) {
		t.Helper()
		update(t, s, fn)
		now, _ := s.AccessGeneration()
		if moved := now != g; moved != moves || now < g {
			t.Errorf("%s: from generation %d to %d", what, g, now)
		}
		g = now
	}
	m := manifest("m1")
	m.Subject = digest.Digest{}
	step("a new repository", true, func(tx registry.Tx) error { return tx.EnsureRepository(repository("a/x")) })
	step("one that is there", false, func(tx registry.Tx) error { return tx.EnsureRepository(repository("a/x")) })
	step("a push", false, func(tx registry.Tx) error {
		return errors.Join(
			tx.PutSmall(sum("m1"), []byte("m1"), at(1)), tx.LinkBlob("a/x", digest.Descriptor{Digest: sum("blob")}, at(1)), tx.PutManifest(m),
			tx.PutTag(registry.Tag{Repository: "a/x", Name: "v1", Digest: m.Digest}), tx.CloseUpload("u", at(1)), tx.InsertAudit(registry.AuditRow{}))
	})
	step("a deletion", false, func(tx registry.Tx) error { return tx.DeleteManifest("a/x", m.Digest) })
	step("an account", true, func(tx registry.Tx) error { return tx.InsertAccount(account("bob")) })
	step("another state of it", true, func(tx registry.Tx) error { return tx.UpdateAccount(account("bob")) })
	step("a token", true, func(tx registry.Tx) error {
		return tx.InsertToken(registry.Token{ID: "t", Account: "bob", Hash: [32]byte{1}})
	})
	step("its end", true, func(tx registry.Tx) error { return tx.RevokeToken("t", at(9)) })
}
