package metatest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

var packTests = map[string]func(*testing.T, registry.MetaStore){
	"Versions":    testVersions,
	"AllVersions": testAllVersions,
	"Enable":      testEnable,
	"Activations": testActivations,
}

// brief is what a list has of the versions.
func brief(versions ...registry.Version) []registry.Version {
	versions = slices.Clone(versions)
	for i := range versions {
		versions[i].Summary, versions[i].Document, versions[i].Catalogue = "", nil, nil
	}
	return versions
}

func testVersions(t *testing.T, s registry.MetaStore) {
	list := withPack(t, s, "1.0", "1.10", "1.9")
	early := version("0.9rc1", -5)
	early.Document, early.Catalogue, early.Enabled, early.Summary = nil, []byte(`{"a": 1}`), false, ""
	early.Content = list[1].Content
	update(t, s, func(tx registry.Tx) error { return tx.InsertVersion(early) })
	same(t, "versions, by time", view(t, s, func(tx registry.Tx) ([]registry.Version, error) { return tx.Versions("alice/pack") }),
		brief(early, list[0], list[1], list[2]))
	same(t, "versions of another pack", view(t, s, func(tx registry.Tx) ([]registry.Version, error) { return tx.Versions("alice/other") }), []registry.Version(nil))
	find := func(repository, v string) func(registry.Tx) (registry.Version, error) {
		return func(tx registry.Tx) (registry.Version, error) { return tx.Version(repository, v) }
	}
	same(t, "version", view(t, s, find("alice/pack", "1.10")), list[1])
	if got := view(t, s, find("alice/pack", "0.9rc1")); got.Document != nil {
		t.Errorf("a document that was nil: got %q", got.Document)
	}
	for _, v := range []string{"1.1", "1.10 ", "0.9RC1", ""} {
		missing(t, s, "version "+v, registry.NotFound, find("alice/pack", v))
	}
	missing(t, s, "version of another pack", registry.NotFound, find("alice/other", "1.0"))

	byContent := func(d digest.Digest) []registry.Version {
		return view(t, s, func(tx registry.Tx) ([]registry.Version, error) { return tx.VersionsByContent(d) })
	}
	same(t, "versions with one content", byContent(list[1].Content), brief(list[1], early))
	same(t, "versions with unknown content", byContent(sum("none")), []registry.Version(nil))
	byManifest := func(repository string, d digest.Digest) func(registry.Tx) (registry.Version, error) {
		return func(tx registry.Tx) (registry.Version, error) { return tx.VersionByManifest(repository, d) }
	}
	same(t, "version by manifest", view(t, s, byManifest("alice/pack", list[2].Manifest)), list[2])
	missing(t, s, "version by an unknown manifest", registry.NotFound, byManifest("alice/pack", sum("none")))
	missing(t, s, "version by manifest in another repository", registry.NotFound, byManifest("alice/other", list[2].Manifest))
	stray := version("1.0", 9)
	stray.Repository = "alice/none"
	fails(t, s, "version of an unknown repository", registry.NameUnknown, func(tx registry.Tx) error { return tx.InsertVersion(stray) })
}

func testAllVersions(t *testing.T, s registry.MetaStore) {
	withRepositories(t, s, "b/pack", "a/pack", "a/pack2")
	var want []registry.Version
	for _, repository := range []string{"a/pack", "a/pack2", "b/pack"} {
		update(t, s, func(tx registry.Tx) error {
			for n := range 300 {
				v := version(numbered("v", n), n/7)
				v.Repository = repository
				want = append(want, v)
				if err := tx.InsertVersion(v); err != nil {
					return err
				}
			}
			return nil
		})
	}
	collect := func(tx registry.Tx) (got []registry.Version, err error) {
		return got, tx.AllVersions(func(v registry.Version) error {
			got = append(got, v)
			_, err := tx.Version(v.Repository, v.Version) // the transaction may be used meanwhile
			return err
		})
	}
	same(t, "all versions, by repository, then time", view(t, s, func(tx registry.Tx) ([]registry.Version, error) {
		var got []registry.Version
		_, err := collect(tx)
		if err == nil {
			err = tx.AllVersions(func(v registry.Version) error { got = append(got, v); return nil })
		}
		return got, err
	}), brief(want...))
	n := 0
	err := s.View(context.Background(), func(tx registry.Tx) error {
		return tx.AllVersions(func(registry.Version) error {
			if n++; n == 3 {
				return errOwn
			}
			return nil
		})
	})
	if !errors.Is(err, errOwn) || n != 3 {
		t.Errorf("a listing that is ended: got %d versions and error %v, want 3 and the function's", n, err)
	}
}

func testEnable(t *testing.T, s registry.MetaStore) {
	withPack(t, s, "1", "2", "3")
	withRepositories(t, s, "alice/other")
	other := version("1", 7)
	other.Repository = "alice/other"
	update(t, s, func(tx registry.Tx) error { return tx.InsertVersion(other) })
	set := func(repository, v string, enabled bool, rows int) {
		t.Helper()
		update(t, s, func(tx registry.Tx) error {
			n, err := tx.SetEnabled(repository, v, enabled, "")
			if n != rows {
				t.Errorf("SetEnabled(%q, %q): got %d rows, want %d", repository, v, n, rows)
			}
			return err
		})
	}
	check := func(want map[string]bool) {
		t.Helper()
		got := map[string]bool{}
		for _, v := range view(t, s, func(tx registry.Tx) ([]registry.Version, error) { return tx.Versions("alice/pack") }) {
			got[v.Version] = v.Enabled
		}
		same(t, "enabled versions", got, want)
	}
	set("alice/pack", "2", false, 1)
	set("alice/pack", "2", false, 1)
	check(map[string]bool{"1": true, "2": false, "3": true})
	set("alice/pack", "", false, 3)
	check(map[string]bool{"1": false, "2": false, "3": false})
	set("alice/pack", "", true, 3)
	set("alice/pack", "9", false, 0)
	set("alice/none", "", false, 0)
	check(map[string]bool{"1": true, "2": true, "3": true})
	same(t, "another pack", view(t, s, func(tx registry.Tx) (registry.Version, error) { return tx.Version("alice/other", "1") }), other)
}

func testActivations(t *testing.T, s registry.MetaStore) {
	find := func(kind string) registry.Activation {
		return view(t, s, func(tx registry.Tx) (registry.Activation, error) { return tx.Activation(kind) })
	}
	put := func(generation, expected int64, reference string) func(registry.Tx) error {
		return func(tx registry.Tx) error {
			return tx.PutActivation(registry.Activation{Kind: "playbook", Generation: generation, Reference: []byte(reference)}, expected)
		}
	}
	if a := find("playbook"); a.Generation != 0 || a.Reference != nil || a.Kind != "playbook" {
		t.Errorf("activation before the first change: got %+v, want generation 0 and null", a)
	}
	fails(t, s, "change of what nobody set", registry.Precondition, put(2, 1, "x"))
	update(t, s, put(1, 0, `{"id": "a/b"}`))
	same(t, "activation", find("playbook"), registry.Activation{Kind: "playbook", Generation: 1, Reference: []byte(`{"id": "a/b"}`)})
	for _, expected := range []int64{0, 2} {
		fails(t, s, "change with another generation", registry.Precondition, put(9, expected, "x"))
	}
	update(t, s, put(2, 1, `null`))
	same(t, "activation after the second change", find("playbook"), registry.Activation{Kind: "playbook", Generation: 2, Reference: []byte(`null`)})
	same(t, "activation of another kind", find("prompt"), registry.Activation{Kind: "prompt"})
}
