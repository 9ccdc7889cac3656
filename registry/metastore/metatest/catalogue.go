package metatest

import (
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry"
)

var catalogueTests = map[string]func(*testing.T, registry.MetaStore){
	"ClientIDs": testClientIDs,
	"Shelf":     testShelf,
	"Stamps":    testStamps,
	"Snapshots": testSnapshots,
}

func testClientIDs(t *testing.T, s registry.MetaStore) {
	take := func(d dialect.Dialect, kind, id, pack string, alias bool) func(registry.Tx) error {
		return func(tx registry.Tx) error {
			return tx.TakeClientID(registry.ClientID{Dialect: d, Kind: kind, ID: id, Pack: pack, Alias: alias})
		}
	}
	update(t, s, take(dialect.Forge, "recipe", "verl/grpo", "alice/grpo", false))
	update(t, s, take(dialect.Forge, "recipe", "verl/grpo", "alice/grpo", false))
	update(t, s, take(dialect.Forge, "recipe", "nemo/Sft", "bob/sft", false))
	update(t, s, take(dialect.Forge, "recipe", "nemo/bob.Sft", "bob/sft", true))
	update(t, s, take(dialect.Forge, "benchmark", "verl/grpo", "bob/sft", false))
	update(t, s, take(dialect.TunePlane, "recipe", "verl/grpo", "carol/grpo", false))
	update(t, s, take(dialect.Forge, "recipe", "verl/grpo", "bob/grpo", true)) // an alias gives way
	for _, id := range []string{"verl/grpo", "VERL/Grpo"} {
		if err := fails(t, s, "taken recipe id", registry.Conflict, take(dialect.Forge, "recipe", id, "bob/grpo", false)); err != nil && !strings.Contains(err.Error(), "alice/grpo") {
			t.Errorf("the conflict does not name the holder: %v", err)
		}
	}
	fails(t, s, "id that is another's alias", registry.Conflict, take(dialect.Forge, "recipe", "nemo/bob.sft", "mallory/bob.sft", false))
	ids := func(d dialect.Dialect, kind string) []registry.ClientID {
		return view(t, s, func(tx registry.Tx) ([]registry.ClientID, error) { return tx.ClientIDs(d, kind) })
	}
	grpo := registry.ClientID{Dialect: dialect.Forge, Kind: "recipe", ID: "verl/grpo", Pack: "alice/grpo"}
	sft := registry.ClientID{Dialect: dialect.Forge, Kind: "recipe", ID: "nemo/Sft", Pack: "bob/sft"}
	same(t, "recipe ids of forge", ids(dialect.Forge, "recipe"), []registry.ClientID{sft, grpo})
	same(t, "recipe ids of tuneplane", ids(dialect.TunePlane, "recipe"), []registry.ClientID{{Dialect: dialect.TunePlane, Kind: "recipe", ID: "verl/grpo", Pack: "carol/grpo"}})
	holder := func(d dialect.Dialect, kind, id string) func(registry.Tx) (registry.ClientID, error) {
		return func(tx registry.Tx) (registry.ClientID, error) { return tx.ClientIDHolder(d, kind, id) }
	}
	same(t, "holder", view(t, s, holder(dialect.Forge, "recipe", "Verl/GRPO")), grpo)
	missing(t, s, "holder of a free id", registry.NotFound, holder(dialect.TunePlane, "recipe", "nemo/Sft"))
	missing(t, s, "holder of a free benchmark id", registry.NotFound, holder(dialect.Forge, "benchmark", "nemo/Sft"))

	update(t, s, take(dialect.Forge, "recipe", "nemo/bob.Sft", "bob/sft", false)) // its own alias becomes its id
	same(t, "recipe ids", ids(dialect.Forge, "recipe"), []registry.ClientID{sft, {Dialect: dialect.Forge, Kind: "recipe", ID: "nemo/bob.Sft", Pack: "bob/sft"}, grpo})
}

// shelved is a version on the shelf, of a recipe when there is an id.
func shelved(v registry.Version, recipe string) registry.Shelved {
	row := registry.Shelved{Dialect: v.Dialect, Repository: v.Repository, Version: v.Version, Owner: v.Owner, PackName: v.PackName, Kind: "prompt", Content: v.Content, Tree: v.Tree}
	if recipe != "" {
		row.Kind, row.Recipe, row.RecipeVersion, row.RecipeDigest, row.Entry = "recipe", recipe, "1 "+v.Version, sum(recipe).String(), []byte(`{"name":"`+recipe+`"}`)
		row.Alias = strings.Replace(recipe, "/", "/"+v.Owner+".", 1)
	}
	return row
}

func testShelf(t *testing.T, s registry.MetaStore) {
	versions := withPack(t, s, "1.0", "1.1")
	find := func(d dialect.Dialect, repository string) func(registry.Tx) (registry.Shelved, error) {
		return func(tx registry.Tx) (registry.Shelved, error) { return tx.Shelved(d, repository) }
	}
	put := func(v registry.Shelved) func(registry.Tx) error {
		return func(tx registry.Tx) error { return tx.PutShelved(v) }
	}
	missing(t, s, "an empty shelf", registry.NotFound, find(dialect.Forge, "alice/pack"))
	first, second := shelved(versions[0], "trl/Mine"), shelved(versions[1], "trl/mine2")
	update(t, s, put(first))
	same(t, "what lies there", view(t, s, find(first.Dialect, "alice/pack")), first)
	update(t, s, put(second))
	same(t, "what replaced it", view(t, s, find(first.Dialect, "alice/pack")), second)
	other := second
	other.Dialect, other.Recipe, other.Alias = first.Dialect.Other(), "trl/other", "trl/alice.other"
	update(t, s, put(other))
	ghost := first
	ghost.Version = "9.9"
	fails(t, s, "a version that was never published", registry.NotFound, put(ghost))

	recipe := func(d dialect.Dialect, id string) []registry.Shelved {
		return view(t, s, func(tx registry.Tx) ([]registry.Shelved, error) { return tx.ShelvedRecipe(d, id) })
	}
	same(t, "by id", recipe(second.Dialect, "trl/mine2"), []registry.Shelved{second})
	same(t, "by alias", recipe(second.Dialect, "trl/alice.mine2"), []registry.Shelved{second})
	same(t, "in the other dialect", recipe(other.Dialect, "trl/mine2"), []registry.Shelved{})
	same(t, "no id at all", recipe(second.Dialect, ""), []registry.Shelved{})
	names := view(t, s, func(tx registry.Tx) ([]string, error) { return tx.ShelvedNames(second.Dialect, "trl/", 10) })
	same(t, "names", names, []string{"trl/mine2"})

	var off [2]bool
	update(t, s, func(tx registry.Tx) (err error) {
		if off[0], err = tx.TakeOffShelf(second.Dialect, "alice/pack"); err == nil {
			off[1], err = tx.TakeOffShelf(second.Dialect, "alice/pack")
		}
		return err
	})
	if off != [2]bool{true, false} {
		t.Errorf("taken off the shelf twice: %v", off)
	}
	missing(t, s, "what was taken off", registry.NotFound, find(second.Dialect, "alice/pack"))
	testLongShelf(t, s, versions[0])
}

// testLongShelf lists more rows than a page has.
func testLongShelf(t *testing.T, s registry.MetaStore, like registry.Version) {
	const n = 1203
	var want []registry.Shelved
	update(t, s, func(tx registry.Tx) error {
		want = want[:0]
		for i := range n {
			v := like
			v.Repository, v.PackName, v.Key = numbered("carol/p", 1000+i), numbered("p", 1000+i), "k"
			if err := tx.EnsureRepository(registry.Repository{Name: v.Repository, Owner: "carol", CreatedAt: at(0)}); err != nil {
				return err
			}
			if err := tx.InsertVersion(v); err != nil {
				return err
			}
			recipe := ""
			if i%2 == 0 {
				recipe = numbered("trl/r", 5000-i)
			}
			row := shelved(v, recipe)
			if err := tx.PutShelved(row); err != nil {
				return err
			}
			want = append(want, row)
		}
		return nil
	})
	list := func(all func(registry.Tx, func(registry.Shelved) error) error) (got []registry.Shelved) {
		view(t, s, func(tx registry.Tx) (any, error) {
			got = nil
			return nil, all(tx, func(v registry.Shelved) error {
				got = append(got, v)
				return nil
			})
		})
		return got
	}
	recipes := slices.DeleteFunc(slices.Clone(want), func(v registry.Shelved) bool { return v.Recipe == "" })
	slices.Reverse(recipes)
	same(t, "recipes, by id", list(func(tx registry.Tx, yield func(registry.Shelved) error) error {
		return tx.ShelvedRecipes(like.Dialect, yield)
	}), recipes)
	for i := range want {
		want[i].Entry, want[i].Recipe, want[i].Alias, want[i].RecipeVersion, want[i].RecipeDigest = nil, "", "", "", ""
	}
	same(t, "all, by repository", list(func(tx registry.Tx, yield func(registry.Shelved) error) error { return tx.Shelf(like.Dialect, yield) }), want)
	var digests []string
	view(t, s, func(tx registry.Tx) (any, error) {
		digests = nil
		return nil, tx.ShelvedDigests(like.Dialect, func(id, version, digest string) { digests = append(digests, id+" "+version+" "+digest) })
	})
	if len(digests) != len(recipes) || digests[0] != recipes[0].Recipe+" "+recipes[0].RecipeVersion+" "+recipes[0].RecipeDigest || !slices.IsSorted(digests) {
		t.Errorf("%d digests, the first %q; want %d", len(digests), digests[0], len(recipes))
	}
}

func testStamps(t *testing.T, s registry.MetaStore) {
	stamp := func(d dialect.Dialect, part registry.CataloguePart) string {
		return view(t, s, func(tx registry.Tx) (string, error) { return tx.CatalogueStamp(d, part) })
	}
	if got := stamp(dialect.Forge, registry.ShelfPart); got != "" {
		t.Errorf("the stamp of what never changed is %q", got)
	}
	for _, text := range []string{"a", "b"} {
		update(t, s, func(tx registry.Tx) error { return tx.PutCatalogueStamp(dialect.Forge, registry.ShelfPart, text) })
		if got := stamp(dialect.Forge, registry.ShelfPart); got != text {
			t.Errorf("the stamp is %q, want %q", got, text)
		}
	}
	if a, b := stamp(dialect.Forge, registry.ReleasesPart), stamp(dialect.TunePlane, registry.ShelfPart); a != "" || b != "" {
		t.Errorf("other stamps are %q and %q", a, b)
	}
}

func testSnapshots(t *testing.T, s registry.MetaStore) {
	snapshot := func(release string, n int) registry.Snapshot {
		return registry.Snapshot{Dialect: dialect.Forge, Release: release, Document: []byte("document " + release), ImportedBy: "root", ImportedAt: at(n)}
	}
	put := func(list ...registry.Snapshot) {
		t.Helper()
		for _, v := range list {
			update(t, s, func(tx registry.Tx) error { return tx.PutSnapshot(v) })
		}
	}
	list := func(d dialect.Dialect) []registry.Snapshot {
		return view(t, s, func(tx registry.Tx) ([]registry.Snapshot, error) { return tx.Snapshots(d) })
	}
	first, second := snapshot("0.3.56", 1), snapshot("0.3.51", 2)
	put(second, first)
	bare := func(list ...registry.Snapshot) []registry.Snapshot {
		for i := range list {
			list[i].Document = nil
		}
		return list
	}
	same(t, "snapshots, newest import last", list(dialect.Forge), bare(first, second))
	first.Document, first.ImportedBy, first.ImportedAt = []byte{0, 255, '\n'}, "bob", at(3)
	put(first)
	same(t, "snapshots after a new import", list(dialect.Forge), bare(second, first))
	same(t, "snapshots of the other dialect", list(dialect.TunePlane), []registry.Snapshot(nil))
	find := func(d dialect.Dialect, release string) func(registry.Tx) (registry.Snapshot, error) {
		return func(tx registry.Tx) (registry.Snapshot, error) { return tx.Snapshot(d, release) }
	}
	same(t, "snapshot", view(t, s, find(dialect.Forge, "0.3.56")), first)
	missing(t, s, "snapshot of the other dialect", registry.NotFound, find(dialect.TunePlane, "0.3.56"))
}
