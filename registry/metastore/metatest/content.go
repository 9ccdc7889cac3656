package metatest

import (
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

var contentTests = map[string]func(*testing.T, registry.MetaStore){
	"Repositories":     testRepositories,
	"PackRepositories": testPackRepositories,
	"LinkedBlobs":      testLinkedBlobs,
	"Manifests":        testManifests,
	"DeleteManifest":   testDeleteManifest,
	"Referrers":        testReferrers,
	"Tags":             testTags,
	"TagOrder":         testTagOrder,
}

// withRepositories makes repositories.
func withRepositories(t *testing.T, s registry.MetaStore, names ...string) {
	t.Helper()
	update(t, s, func(tx registry.Tx) error {
		for _, name := range names {
			if err := tx.EnsureRepository(repository(name)); err != nil {
				return err
			}
		}
		return nil
	})
}

func testRepositories(t *testing.T, s registry.MetaStore) {
	names := []string{"a-b/x", "a.b/x", "a/b", "a/b-c", "a/b.c", "a/b/c", "a/b_c", "a/bc", "ab/x", "b0/x", "z/x"}
	slices.Sort(names)
	withRepositories(t, s, names...)
	find := func(name string) registry.Repository {
		return view(t, s, func(tx registry.Tx) (registry.Repository, error) { return tx.Repository(name) })
	}
	same(t, "repository", find("a/b"), repository("a/b"))
	missing(t, s, "unknown repository", registry.NameUnknown, func(tx registry.Tx) (registry.Repository, error) { return tx.Repository("a") })
	changed := repository("a/b")
	changed.Owner, changed.CreatedAt = "other", at(50)
	update(t, s, func(tx registry.Tx) error { return tx.EnsureRepository(changed) })
	same(t, "repository that was ensured twice", find("a/b"), repository("a/b"))

	visible := func(name string) bool {
		return view(t, s, func(tx registry.Tx) (bool, error) { return tx.RepositoryVisible(name) })
	}
	for _, name := range names {
		if visible(name) {
			t.Errorf("%s is visible before it holds a manifest", name)
		}
		m := manifest("m")
		m.Repository = name
		putManifest(t, s, m)
	}
	withRepositories(t, s, "a/empty")
	if !visible("a/b") || visible("a/empty") || visible("a") {
		t.Error("a repository is visible when, and only when, it holds a manifest")
	}
	checkPages(t, s, names, func(tx registry.Tx, after string, limit int) ([]string, error) { return tx.Repositories(after, limit) })
}

// checkPages walks a list of names with pages of every size.
func checkPages(t *testing.T, s registry.MetaStore, want []string, list func(tx registry.Tx, after string, limit int) ([]string, error)) {
	t.Helper()
	page := func(after string, limit int) []string {
		return view(t, s, func(tx registry.Tx) ([]string, error) { return list(tx, after, limit) })
	}
	same(t, "all names in byte order", page("", -1), want)
	same(t, "no names", page("", 0), []string(nil))
	same(t, "names after the last", page(want[len(want)-1], 10), []string(nil))
	for size := 1; size <= len(want)+1; size++ {
		var got []string
		for after := ""; ; after = got[len(got)-1] {
			names := page(after, size)
			if len(names) > size {
				t.Fatalf("a page of %d names, asked for %d", len(names), size)
			}
			got = append(got, names...)
			if len(names) < size {
				break
			}
		}
		same(t, "names in pages", got, want)
	}
}

func testPackRepositories(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "alice/my-algo", "alice/my.algo", "alice/other", "bob/my-algo")
	set := func(name, pack, fold, kind string) func(registry.Tx) error {
		return func(tx registry.Tx) error { return tx.SetPackRepository(name, pack, fold, kind) }
	}
	update(t, s, set("alice/my-algo", "My-Algo", "my-algo", "algorithm"))
	want := repository("alice/my-algo")
	want.PackName, want.PackFold, want.PackKind = "My-Algo", "my-algo", "algorithm"
	same(t, "pack repository", view(t, s, func(tx registry.Tx) (registry.Repository, error) { return tx.Repository("alice/my-algo") }), want)
	same(t, "pack by fold", view(t, s, func(tx registry.Tx) (registry.Repository, error) { return tx.PackByFold("alice", "my-algo") }), want)

	update(t, s, set("alice/my-algo", "My-Algo", "my-algo", "algorithm"))
	if err := fails(t, s, "taken fold", registry.Conflict, set("alice/my.algo", "my.algo", "my-algo", "recipe")); err != nil && !strings.Contains(err.Error(), `"My-Algo"`) {
		t.Errorf("the conflict does not name the pack that has the fold: %v", err)
	}
	update(t, s, set("bob/my-algo", "my_algo", "my-algo", "recipe"))
	update(t, s, set("alice/other", "other", "other", "recipe"))
	fails(t, s, "unknown repository", registry.NameUnknown, set("alice/none", "none", "none", "recipe"))
	for _, fold := range []string{"", "my", "MY-ALGO"} {
		missing(t, s, "pack by the fold "+fold, registry.NameUnknown, func(tx registry.Tx) (registry.Repository, error) { return tx.PackByFold("alice", fold) })
	}
}

func testLinkedBlobs(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "a/x", "a/y", "a/z")
	blob := digest.Descriptor{MediaType: "application/x", Digest: sum("blob"), Size: 1 << 40}
	link := func(repository string, b digest.Descriptor) func(registry.Tx) error {
		return func(tx registry.Tx) error { return tx.LinkBlob(repository, b, at(1)) }
	}
	for _, name := range []string{"a/y", "a/x"} {
		update(t, s, link(name, blob))
	}
	update(t, s, link("a/x", digest.Descriptor{MediaType: "application/other", Digest: blob.Digest, Size: blob.Size}))
	find := func(name string) func(registry.Tx) (digest.Descriptor, error) {
		return func(tx registry.Tx) (digest.Descriptor, error) { return tx.LinkedBlob(name, blob.Digest) }
	}
	same(t, "blob that was linked twice", view(t, s, find("a/x")), blob)
	missing(t, s, "blob of another repository", registry.BlobUnknown, find("a/z"))
	fails(t, s, "link to an unknown repository", registry.NameUnknown, link("a/none", blob))
	same(t, "its repositories", view(t, s, func(tx registry.Tx) ([]string, error) { return tx.BlobRepositories(blob.Digest) }), []string{"a/x", "a/y"})

	unlink := func(tx registry.Tx) error { return tx.UnlinkBlob("a/x", blob.Digest) }
	update(t, s, unlink)
	fails(t, s, "second unlink", registry.BlobUnknown, unlink)
	missing(t, s, "unlinked blob", registry.BlobUnknown, find("a/x"))
	same(t, "the other link", view(t, s, find("a/y")), blob)
}

// manifest makes a manifest of a/x with every field set.
func manifest(name string) registry.Manifest {
	return registry.Manifest{
		Repository: "a/x", Digest: sum(name), MediaType: "application/m", Size: 1234, ArtifactType: "application/t", Subject: sum("subject"),
		Annotations: map[string]string{"b": "2", "a": "<1> ü"},
		References:  []digest.Digest{sum("layer 2"), sum("layer 1"), sum("layer 2"), sum("config " + name)}, PushedAt: at(3),
	}
}

func putManifest(t *testing.T, s registry.MetaStore, list ...registry.Manifest) {
	t.Helper()
	for _, m := range list {
		update(t, s, func(tx registry.Tx) error { return tx.PutManifest(m) })
	}
}

func findManifest(repository string, d digest.Digest) func(registry.Tx) (registry.Manifest, error) {
	return func(tx registry.Tx) (registry.Manifest, error) { return tx.Manifest(repository, d) }
}

func blobReferences(t *testing.T, s registry.MetaStore, repository string, d digest.Digest) int {
	t.Helper()
	return view(t, s, func(tx registry.Tx) (int, error) { return tx.BlobReferences(repository, d) })
}

func testManifests(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "a/x", "a/y")
	full, bare := manifest("m1"), registry.Manifest{Repository: "a/x", Digest: sum("m2"), PushedAt: at(1)}
	elsewhere := manifest("m1")
	elsewhere.Repository, elsewhere.References = "a/y", []digest.Digest{sum("layer 9")}
	putManifest(t, s, full, bare, elsewhere)
	update(t, s, func(tx registry.Tx) error {
		return tx.PutTag(registry.Tag{Repository: "a/x", Name: "v1", Digest: full.Digest})
	})
	find := func(repository string, ref registry.Reference) func(registry.Tx) (registry.Manifest, error) {
		return func(tx registry.Tx) (registry.Manifest, error) { return tx.FindManifest(repository, ref) }
	}
	found := full
	found.References = nil
	same(t, "manifest found by tag", view(t, s, find("a/x", registry.Reference{Tag: "v1"})), found)
	same(t, "manifest found by digest", view(t, s, find("a/x", registry.Reference{Digest: full.Digest})), found)
	missing(t, s, "unknown tag", registry.ManifestUnknown, find("a/x", registry.Reference{Tag: "v2"}))
	missing(t, s, "tag of another repository", registry.ManifestUnknown, find("a/y", registry.Reference{Tag: "v1"}))
	missing(t, s, "unknown digest", registry.ManifestUnknown, find("a/y", registry.Reference{Digest: bare.Digest}))
	for _, m := range []registry.Manifest{full, bare, elsewhere} {
		got := view(t, s, findManifest(m.Repository, m.Digest))
		same(t, "manifest", got, m)
		if (got.Annotations == nil) != (m.Annotations == nil) {
			t.Errorf("annotations: got %v, want %v", got.Annotations, m.Annotations)
		}
	}
	changed := full
	changed.PushedAt, changed.References, changed.MediaType = at(90), nil, "application/other"
	putManifest(t, s, changed)
	same(t, "manifest that was put twice", view(t, s, findManifest("a/x", full.Digest)), full)
	missing(t, s, "manifest of another repository", registry.ManifestUnknown, findManifest("a/y", bare.Digest))
	fails(t, s, "manifest of an unknown repository", registry.NameUnknown, func(tx registry.Tx) error {
		return tx.PutManifest(registry.Manifest{Repository: "a/none", Digest: sum("m")})
	})

	putManifest(t, s, manifest("m3"))
	for d, want := range map[digest.Digest]int{sum("layer 2"): 2, sum("config m1"): 1, sum("layer 9"): 0} {
		if got := blobReferences(t, s, "a/x", d); got != want {
			t.Errorf("manifests of a/x that name %s: got %d, want %d", d, got, want)
		}
	}
}

func testDeleteManifest(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "a/x", "a/y")
	kept, gone, elsewhere := manifest("kept"), manifest("gone"), manifest("gone")
	elsewhere.Repository = "a/y"
	putManifest(t, s, kept, gone, elsewhere)
	update(t, s, func(tx registry.Tx) error {
		for _, tag := range []registry.Tag{
			{Repository: "a/x", Name: "1", Digest: gone.Digest}, {Repository: "a/x", Name: "2", Digest: gone.Digest},
			{Repository: "a/x", Name: "3", Digest: kept.Digest}, {Repository: "a/y", Name: "1", Digest: gone.Digest},
		} {
			if err := tx.PutTag(tag); err != nil {
				return err
			}
		}
		return nil
	})
	remove := func(tx registry.Tx) error { return tx.DeleteManifest("a/x", gone.Digest) }
	update(t, s, remove)
	fails(t, s, "second delete", registry.ManifestUnknown, remove)
	missing(t, s, "deleted manifest", registry.ManifestUnknown, findManifest("a/x", gone.Digest))
	tags := func(repository string) []string {
		return view(t, s, func(tx registry.Tx) ([]string, error) { return tx.Tags(repository, "", -1) })
	}
	same(t, "tags that are left", tags("a/x"), []string{"3"})
	same(t, "tags of the other repository", tags("a/y"), []string{"1"})
	if got := blobReferences(t, s, "a/x", sum("config gone")); got != 0 {
		t.Errorf("manifests that name the config of the deleted one: got %d, want 0", got)
	}
	same(t, "the other manifest", view(t, s, findManifest("a/x", kept.Digest)), kept)
	putManifest(t, s, gone)
	same(t, "manifest that was deleted and put again", view(t, s, findManifest("a/x", gone.Digest)), gone)
}

func testReferrers(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "a/x", "a/y")
	list := []registry.Manifest{manifest("r1"), manifest("r2"), manifest("r3")}
	list[1].References, list[1].Annotations = nil, nil
	slices.SortFunc(list, func(a, b registry.Manifest) int {
		return slices.Compare([]byte(a.Digest.String()), []byte(b.Digest.String()))
	})
	free, other, elsewhere := manifest("free"), manifest("other"), manifest("r1")
	free.Subject, other.Subject, elsewhere.Repository = digest.Digest{}, sum("another subject"), "a/y"
	list[2].ArtifactType = "application/vnd.example.other"
	putManifest(t, s, list[2], free, list[0], other, elsewhere, list[1])
	for i := range list {
		list[i].References = nil
	}
	elsewhere.References = nil
	referrers := func(repository string, subject digest.Digest, artifactType string, after digest.Digest, most int) []registry.Manifest {
		return view(t, s, func(tx registry.Tx) (got []registry.Manifest, err error) {
			err = tx.Referrers(repository, subject, artifactType, after, func(m registry.Manifest) bool {
				got = append(got, m)
				return len(got) < most
			})
			return got, err
		})
	}
	subject, none := sum("subject"), digest.Digest{}
	same(t, "referrers, by digest", referrers("a/x", subject, "", none, 9), list)
	same(t, "the first two", referrers("a/x", subject, "", none, 2), list[:2])
	same(t, "those behind the first", referrers("a/x", subject, "", list[0].Digest, 9), list[1:])
	same(t, "those behind the last", referrers("a/x", subject, "", list[2].Digest, 9), []registry.Manifest(nil))
	same(t, "those of a type", referrers("a/x", subject, list[2].ArtifactType, none, 9), list[2:])
	same(t, "referrers in the other repository", referrers("a/y", subject, "", none, 9), []registry.Manifest{elsewhere})
	same(t, "referrers of nothing", referrers("a/x", none, "", none, 9), []registry.Manifest(nil))
	same(t, "referrers of what nobody refers to", referrers("a/x", sum("lonely"), "", none, 9), []registry.Manifest(nil))
}

func testTags(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "a/x", "a/y")
	putManifest(t, s, manifest("m1"), manifest("m2"))
	tag := registry.Tag{Repository: "a/x", Name: "v1", Digest: sum("m1"), UpdatedAt: at(1)}
	put := func(tag registry.Tag) func(registry.Tx) error {
		return func(tx registry.Tx) error { return tx.PutTag(tag) }
	}
	find := func(repository, name string) func(registry.Tx) (registry.Tag, error) {
		return func(tx registry.Tx) (registry.Tag, error) { return tx.Tag(repository, name) }
	}
	update(t, s, put(tag))
	same(t, "tag", view(t, s, find("a/x", "v1")), tag)
	tag.Digest, tag.UpdatedAt = sum("m2"), at(2)
	update(t, s, put(tag))
	same(t, "moved tag", view(t, s, find("a/x", "v1")), tag)

	unknown := tag
	unknown.Digest = sum("m3")
	fails(t, s, "tag of an unknown manifest", registry.ManifestUnknown, put(unknown))
	unknown.Digest, unknown.Repository = sum("m2"), "a/y"
	fails(t, s, "tag of another repository's manifest", registry.ManifestUnknown, put(unknown))
	missing(t, s, "tag but for case", registry.ManifestUnknown, find("a/x", "V1"))
	missing(t, s, "tag of another repository", registry.ManifestUnknown, find("a/y", "v1"))

	remove := func(tx registry.Tx) error { return tx.DeleteTag("a/x", "v1") }
	update(t, s, remove)
	fails(t, s, "second delete", registry.ManifestUnknown, remove)
	missing(t, s, "deleted tag", registry.ManifestUnknown, find("a/x", "v1"))
	same(t, "manifest whose tag was deleted", view(t, s, findManifest("a/x", sum("m2"))), manifest("m2"))
}

// testTagOrder checks that names compare by their bytes, whatever language the database speaks.
func testTagOrder(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "a/x")
	putManifest(t, s, manifest("m1"))
	names := []string{
		"0", "00", "1", "1-0", "1.0", "1.0.0", "10", "2", "A", "AB", "Aa", "B", "Z", "_", "_a", "a", "a-b", "a.b", "a_b", "aA", "aa", "ab", "b", "z", "ä", "é", "日本",
	}
	slices.Sort(names)
	update(t, s, func(tx registry.Tx) error {
		for i := range names {
			name := names[(i*7)%len(names)]
			if err := tx.PutTag(registry.Tag{Repository: "a/x", Name: name, Digest: sum("m1"), UpdatedAt: at(i)}); err != nil {
				return err
			}
		}
		return nil
	})
	checkPages(t, s, names, func(tx registry.Tx, after string, limit int) ([]string, error) { return tx.Tags("a/x", after, limit) })
}
