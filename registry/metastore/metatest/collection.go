package metatest

import (
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

var collectionTests = map[string]func(*testing.T, registry.MetaStore){
	"Condemned":      testCondemned,
	"Links":          testLinks,
	"UnnamedSmall":   testUnnamedSmall,
	"HeldManifests":  testHeldManifests,
	"NamedBlobs":     testNamedBlobs,
	"OwnerUsage":     testOwnerUsage,
	"OwnerQuotas":    testOwnerQuotas,
	"RecountedUsage": testRecountedUsage,
	"LostRows":       testLostRows,
}

func condemn(t *testing.T, s registry.MetaStore, d digest.Digest) (done bool) {
	t.Helper()
	update(t, s, func(tx registry.Tx) (err error) {
		done, err = tx.Condemn(d, at(1))
		return err
	})
	return done
}

func link(t *testing.T, s registry.MetaStore, repository, blob string, size int64, n int) {
	t.Helper()
	update(t, s, func(tx registry.Tx) error {
		return tx.LinkBlob(repository, digest.Descriptor{MediaType: "application/x", Digest: sum(blob), Size: size}, at(n))
	})
}

// testCondemned holds that only what no row of any kind names is condemned, and that pardons are counted.
func testCondemned(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "a/x")
	link(t, s, "a/x", "linked", 1, 1)
	m := manifest("manifest")
	putManifest(t, s, m)
	update(t, s, func(tx registry.Tx) error {
		if err := tx.InsertAccount(account("alice")); err != nil {
			return err
		}
		if err := tx.InsertJob(registry.Job{ID: "job", Account: "alice", Dialect: "forge", Package: digest.Descriptor{Digest: sum("of a job"), Size: 3}}); err != nil {
			return err
		}
		for _, id := range []string{"stored", "waiting"} {
			if err := tx.InsertPackageUpload(registry.PackageUpload{ID: id, Want: digest.Descriptor{Digest: sum(id), Size: 4}}); err != nil {
				return err
			}
		}
		return tx.MarkPackageStored("stored", "")
	})
	for _, named := range []digest.Digest{sum("linked"), m.Digest, sum("of a job"), sum("stored")} {
		if condemn(t, s, named) {
			t.Errorf("%s was condemned, and a row names it", named)
		}
		if !view(t, s, func(tx registry.Tx) (bool, error) { return tx.BlobNamed(named) }) {
			t.Errorf("%s is not named", named)
		}
	}
	loose := []digest.Digest{sum("loose"), sum("waiting")}
	for _, d := range loose {
		for range 2 {
			if !condemn(t, s, d) {
				t.Errorf("%s was not condemned, though no row names it", d)
			}
		}
	}
	among := func(tx registry.Tx) ([]digest.Digest, error) {
		return tx.CondemnedAmong([]digest.Digest{sum("linked"), sum("loose")})
	}
	same(t, "condemned", len(view(t, s, func(tx registry.Tx) ([]digest.Digest, error) { return tx.Condemned(-1) })), 2)
	same(t, "condemned among", view(t, s, among), loose[:1])
	before := view(t, s, func(tx registry.Tx) (int64, error) { return tx.Pardons() })
	update(t, s, func(tx registry.Tx) error { return tx.Pardon(loose) })
	same(t, "pardoned", view(t, s, among), []digest.Digest(nil))
	same(t, "pardons", view(t, s, func(tx registry.Tx) (int64, error) { return tx.Pardons() }), before+1)
}

func testLinks(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "a/x", "a/y")
	m := manifest("m")
	m.References = []digest.Digest{sum("named")}
	putManifest(t, s, m)
	for _, repository := range []string{"a/y", "a/x"} {
		link(t, s, repository, "named", 5, 1)
		link(t, s, repository, "loose", 7, 1)
	}
	var got []registry.Link
	for after := (registry.Link{}); ; after = got[len(got)-1] {
		page := view(t, s, func(tx registry.Tx) ([]registry.Link, error) { return tx.Links(after, 3) })
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
	}
	want := map[registry.Link]bool{}
	for _, repository := range []string{"a/x", "a/y"} {
		want[registry.Link{Repository: repository, Digest: sum("named"), Size: 5, LinkedAt: at(1), Referenced: repository == "a/x"}] = true
		want[registry.Link{Repository: repository, Digest: sum("loose"), Size: 7, LinkedAt: at(1)}] = true
	}
	for _, l := range got {
		if !want[l] {
			t.Errorf("unexpected link %+v", l)
		}
		delete(want, l)
	}
	if len(want) > 0 {
		t.Errorf("links that were not listed: %v", want)
	}
	one := func(tx registry.Tx) (registry.Link, error) { return tx.Link("a/x", sum("named")) }
	same(t, "link", view(t, s, one), registry.Link{Repository: "a/x", Digest: sum("named"), Size: 5, LinkedAt: at(1), Referenced: true})
	missing(t, s, "no link", registry.BlobUnknown, func(tx registry.Tx) (registry.Link, error) { return tx.Link("a/x", sum("none")) })
	unlink := func(blob string, before time.Time) (done bool) {
		update(t, s, func(tx registry.Tx) (err error) {
			done, err = tx.Unlink("a/x", sum(blob), before)
			return err
		})
		return done
	}
	link(t, s, "a/x", "loose", 7, 5) // pushed again: young
	if unlink("named", at(9)) || unlink("loose", at(4)) || !unlink("loose", at(5)) || unlink("loose", at(5)) {
		t.Error("what a manifest names, or is younger, is not unlinked; what nothing names is, once")
	}
}

func testUnnamedSmall(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "a/x")
	link(t, s, "a/x", "named", 5, 1)
	update(t, s, func(tx registry.Tx) error {
		for n, blob := range []string{"named", "old", "young"} {
			if err := tx.PutSmall(sum(blob), []byte(blob), at(n)); err != nil {
				return err
			}
		}
		return nil
	})
	list := view(t, s, func(tx registry.Tx) ([]registry.StoredBlob, error) {
		return tx.UnnamedSmall(at(1), digest.Digest{}, 10)
	})
	same(t, "unnamed", list, []registry.StoredBlob{{Digest: sum("old"), Size: 3, StoredAt: at(1)}})
	for blob, want := range map[string]bool{"named": false, "old": true, "young": false} {
		update(t, s, func(tx registry.Tx) error {
			done, err := tx.DeleteUnnamedSmall(sum(blob), at(1))
			if done != want {
				t.Errorf("deleted %s: got %v, want %v", blob, done, want)
			}
			return err
		})
	}
}

func testHeldManifests(t *testing.T, s registry.MetaStore) {
	v := withPack(t, s, "1.0")[0]
	m := func(name string, references ...digest.Digest) registry.Manifest {
		return registry.Manifest{Repository: "alice/pack", Digest: sum(name), MediaType: "m", Size: 9, PushedAt: at(2), References: references}
	}
	version := m("version")
	version.Digest = v.Manifest
	referrer := m("referrer")
	referrer.Subject = v.Manifest
	putManifest(t, s, version, referrer, m("child"), m("index", sum("child"), sum("child"), sum("index")))
	update(t, s, func(tx registry.Tx) error {
		for _, name := range []string{"a", "b"} {
			if err := tx.PutTag(registry.Tag{Repository: "alice/pack", Name: name, Digest: sum("index"), UpdatedAt: at(3)}); err != nil {
				return err
			}
		}
		return nil
	})
	base := registry.HeldManifest{Size: 9, PushedAt: at(2)}
	want := map[digest.Digest]registry.HeldManifest{v.Manifest: base, sum("referrer"): base, sum("child"): base, sum("index"): base}
	for d, change := range map[digest.Digest]func(*registry.HeldManifest){
		v.Manifest:      func(h *registry.HeldManifest) { h.Version = true },
		sum("referrer"): func(h *registry.HeldManifest) { h.Subject = v.Manifest },
		sum("child"):    func(h *registry.HeldManifest) { h.Parents = 1 },
		sum("index"):    func(h *registry.HeldManifest) { h.Tags = 2 },
	} {
		h := want[d]
		h.Digest = d
		change(&h)
		want[d] = h
	}
	got := map[digest.Digest]registry.HeldManifest{}
	for after := (digest.Digest{}); ; {
		page := view(t, s, func(tx registry.Tx) ([]registry.HeldManifest, error) { return tx.HeldManifests("alice/pack", after, 3) })
		if len(page) == 0 {
			break
		}
		for _, h := range page {
			got[h.Digest], after = h, h.Digest
		}
	}
	same(t, "held manifests", got, want)
	same(t, "one", view(t, s, func(tx registry.Tx) (registry.HeldManifest, error) {
		return tx.ManifestHolders("alice/pack", sum("child"))
	}), want[sum("child")])
	missing(t, s, "none", registry.ManifestUnknown, func(tx registry.Tx) (registry.HeldManifest, error) {
		return tx.ManifestHolders("alice/pack", sum("none"))
	})
	loose := want[sum("child")]
	loose.LooseSince = at(8)
	update(t, s, func(tx registry.Tx) error { return tx.MarkLoose("alice/pack", sum("child"), at(8)) })
	same(t, "loose", view(t, s, func(tx registry.Tx) (registry.HeldManifest, error) {
		return tx.ManifestHolders("alice/pack", sum("child"))
	}), loose)
	fails(t, s, "none is loose", registry.ManifestUnknown, func(tx registry.Tx) error { return tx.MarkLoose("alice/pack", sum("none"), at(8)) })
	same(t, "tag rows", view(t, s, func(tx registry.Tx) ([]registry.Tag, error) { return tx.TagRows("alice/pack", "a", 10) }),
		[]registry.Tag{{Repository: "alice/pack", Name: "b", Digest: sum("index"), UpdatedAt: at(3)}})
	same(t, "all repositories", len(view(t, s, func(tx registry.Tx) ([]registry.Repository, error) { return tx.AllRepositories("alice", 10) })), 1)
}

func testNamedBlobs(t *testing.T, s registry.MetaStore) {
	v := withPack(t, s, "1.0")[0]
	withRepositories(t, s, "a/x")
	link(t, s, "a/x", "blob", 5, 1)
	update(t, s, func(tx registry.Tx) error { return tx.LinkBlob("alice/pack", v.Layer, at(1)) })
	m := manifest("m")
	putManifest(t, s, m)
	want := map[digest.Digest]int64{sum("blob"): 5, v.Layer.Digest: v.Layer.Size, m.Digest: m.Size}
	got := map[digest.Digest]int64{}
	for after := (digest.Digest{}); ; {
		page := view(t, s, func(tx registry.Tx) ([]digest.Descriptor, error) { return tx.NamedBlobs(after, 2) })
		if len(page) == 0 {
			break
		}
		for _, d := range page {
			got[d.Digest], after = d.Size, d.Digest
		}
	}
	same(t, "named blobs", got, want)
	for d, holders := range map[digest.Digest][]string{sum("blob"): {"a/x"}, v.Layer.Digest: {"alice/Pack@1.0", "alice/pack"}, m.Digest: {"a/x"}, sum("none"): nil} {
		same(t, "holders", view(t, s, func(tx registry.Tx) ([]string, error) { return tx.BlobHolders(d, 10) }), holders)
	}
}

func usage(t *testing.T, s registry.MetaStore, owner string) registry.OwnerUsage {
	t.Helper()
	return view(t, s, func(tx registry.Tx) (registry.OwnerUsage, error) { return tx.OwnerUsage(owner) })
}

// testOwnerUsage holds that an owner is charged once for a digest, from its first row to its last.
func testOwnerUsage(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "a/x", "a/y", "b/x")
	want := registry.OwnerUsage{Owner: "a"}
	check := func(what string, bytes, manifests int64) {
		t.Helper()
		want.Bytes, want.Manifests = bytes, manifests
		same(t, what, usage(t, s, "a"), want)
	}
	check("nothing", 0, 0)
	link(t, s, "a/x", "one", 5, 1)
	link(t, s, "a/x", "one", 5, 2)
	link(t, s, "a/y", "one", 5, 1)
	link(t, s, "b/x", "one", 5, 1)
	check("one digest in two repositories", 5, 0)
	m := registry.Manifest{Repository: "a/x", Digest: sum("one"), Size: 5}
	putManifest(t, s, m, m, registry.Manifest{Repository: "a/y", Digest: sum("two"), Size: 100})
	check("a manifest that is a blob too, and another", 105, 2)
	unlink := func(repository string) {
		update(t, s, func(tx registry.Tx) error { return tx.UnlinkBlob(repository, sum("one")) })
	}
	unlink("a/x")
	unlink("a/y")
	check("a manifest holds it still", 105, 2)
	update(t, s, func(tx registry.Tx) error { return tx.DeleteManifest("a/x", sum("one")) })
	check("the last row has gone", 100, 1)
	same(t, "another owner", usage(t, s, "b"), registry.OwnerUsage{Owner: "b", Bytes: 5})
	withPack(t, s, "1.0", "2.0")
	same(t, "versions", usage(t, s, "alice"), registry.OwnerUsage{Owner: "alice", Versions: 2})
	fails(t, s, "a change that is taken back", registry.Internal, func(tx registry.Tx) error {
		if err := tx.LinkBlob("a/x", digest.Descriptor{Digest: sum("three"), Size: 1}, at(1)); err != nil {
			return err
		}
		return errOwn
	})
	check("a change that was taken back", 100, 1)
}

func testOwnerQuotas(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "a/x")
	link(t, s, "a/x", "one", 5, 1)
	put := func(owner string, q *registry.Quota) {
		update(t, s, func(tx registry.Tx) error { return tx.PutOwnerQuota(owner, q) })
	}
	put("a", &registry.Quota{Bytes: 1})
	put("a", &registry.Quota{Bytes: 10, Versions: 2, Manifests: 3})
	put("nobody", &registry.Quota{Versions: 1})
	a := registry.OwnerUsage{Owner: "a", Bytes: 5, Own: &registry.Quota{Bytes: 10, Versions: 2, Manifests: 3}}
	nobody := registry.OwnerUsage{Owner: "nobody", Own: &registry.Quota{Versions: 1}}
	same(t, "usage", usage(t, s, "a"), a)
	list := func(after string) []registry.OwnerUsage {
		return view(t, s, func(tx registry.Tx) ([]registry.OwnerUsage, error) { return tx.OwnerUsages(after, 10) })
	}
	same(t, "all", list(""), []registry.OwnerUsage{a, nobody})
	same(t, "after", list("a"), []registry.OwnerUsage{nobody})
	put("a", nil)
	a.Own = nil
	same(t, "without a limit of its own", usage(t, s, "a"), a)
}

func testRecountedUsage(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "a/x", "a/y", "b/x")
	link(t, s, "a/x", "one", 5, 1)
	link(t, s, "a/y", "one", 5, 1)
	putManifest(t, s, registry.Manifest{Repository: "b/x", Digest: sum("m"), Size: 7})
	withPack(t, s, "1.0")
	all := func() []registry.OwnerUsage {
		return view(t, s, func(tx registry.Tx) ([]registry.OwnerUsage, error) { return tx.OwnerUsages("", 10) })
	}
	before := all()
	drift := func(tx registry.Tx) (n int, err error) {
		kept, counted, err := tx.UsageDrift(10)
		if len(kept) != len(counted) {
			t.Errorf("%d kept, %d counted", len(kept), len(counted))
		}
		return len(kept), err
	}
	same(t, "drift", view(t, s, drift), 0)
	for range 2 {
		update(t, s, func(tx registry.Tx) error { return tx.RecountUsage() })
		same(t, "recounted", all(), before)
	}
	update(t, s, func(tx registry.Tx) error { return tx.UnlinkBlob("a/x", sum("one")) })
	same(t, "one of two links", usage(t, s, "a").Bytes, int64(5))
	update(t, s, func(tx registry.Tx) error { return tx.UnlinkBlob("a/y", sum("one")) })
	same(t, "no link", usage(t, s, "a").Bytes, int64(0))
	same(t, "drift after changes", view(t, s, drift), 0)
}

// testLostRows holds that versions whose tag or manifest went astray are found; whole ones are not.
func testLostRows(t *testing.T, s registry.MetaStore) {
	list := withPack(t, s, "1.0", "2.0", "3.0", "4.0")
	for i, v := range list[:3] {
		putManifest(t, s, registry.Manifest{Repository: v.Repository, Digest: v.Manifest, MediaType: "m"})
		if i < 2 {
			target := v.Manifest
			if i == 1 {
				target = list[0].Manifest
			}
			update(t, s, func(tx registry.Tx) error {
				return tx.PutTag(registry.Tag{Repository: v.Repository, Name: v.Version, Digest: target})
			})
		}
	}
	lost := view(t, s, func(tx registry.Tx) ([]string, error) { return tx.LostVersions(10) })
	same(t, "versions", lost, []string{
		"alice/Pack@2.0: its tag points at " + list[0].Manifest.String() + ", the version is " + list[1].Manifest.String(),
		"alice/Pack@3.0: its tag is missing",
		"alice/Pack@4.0: its manifest " + list[3].Manifest.String() + " is not in the repository",
	})
	same(t, "tags", view(t, s, func(tx registry.Tx) ([]registry.Tag, error) { return tx.LostTags(10) }), []registry.Tag(nil))
}
