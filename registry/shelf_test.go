package registry_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// packArchive is the archive of one of the repository's own packs with other words in its documents.
func packArchive(t testing.TB, pack string, change ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	root, swap := path.Join("packs", pack), strings.NewReplacer(change...)
	err := fs.WalkDir(testdata.FS, root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		src, err := testdata.FS.ReadFile(p)
		if err != nil {
			return err
		}
		if strings.HasSuffix(p, ".yaml") {
			src = []byte(swap.Replace(string(src)))
		}
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(p, root+"/"), Size: int64(len(src)), Mode: 0o644}); err != nil {
			return err
		}
		_, err = tw.Write(src)
		return err
	})
	if err != nil || tw.Close() != nil || zw.Close() != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func recipeArchive(t testing.TB, name, version string) []byte {
	return packArchive(t, "tiny-sft", "name: tiny-sft", "name: "+name, `"0.3.0"`, `"`+version+`"`)
}

func operator(name string) auth.Principal { return auth.Principal{Account: name, Role: auth.Operator} }

func publishAs(s *registry.Service, owner string, archive []byte) error {
	_, _, err := s.PublishArchive(context.Background(), operator(owner), owner, bytes.NewReader(archive))
	return err
}

// asForge is a request of a forge client.
func asForge() context.Context {
	return registry.WithCaller(context.Background(), registry.Caller{Dialect: dialect.Forge})
}

// onShelf are the packs that a forge client syncs.
func onShelf(t *testing.T, s *registry.Service) []string {
	t.Helper()
	list, err := s.Extensions(asForge(), operator("vera"))
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, v := range list {
		ids = append(ids, v.ID()+"@"+v.Version)
	}
	return ids
}

// Of owners who publish recipes or benchmarks that are one for the clients, at the same moment on two replicas, one has the
// id; he keeps it when his pack is disabled, and the others are told who has it.
func TestOneOwnerOfAnID(t *testing.T) {
	t.Parallel()
	everyEngine(t, registry.DefaultSettings(), func(t *testing.T, w *world) {
		for _, c := range []struct {
			what     string
			archives map[string][]byte // by owner
		}{
			{"a recipe", map[string][]byte{"alice": recipeArchive(t, "one", "1"), "bob": recipeArchive(t, "one", "1"), "carol": recipeArchive(t, "one", "2")}},
			{"a recipe in other letters", map[string][]byte{"alice": recipeArchive(t, "Two", "1"), "bob": recipeArchive(t, "two", "1"), "carol": recipeArchive(t, "TWO", "2")}},
			{"a benchmark", map[string][]byte{
				"a.b": packArchive(t, "arithmetic", "name: arithmetic", "name: c.d"), "a": packArchive(t, "arithmetic", "name: arithmetic", "name: b.c.d"),
				"a.b.c": packArchive(t, "arithmetic", "name: arithmetic", "name: d"),
			}},
		} {
			var mu sync.Mutex
			var winners []string
			var refused []error
			var all sync.WaitGroup
			n := 0
			for owner, archive := range c.archives {
				s := []*registry.Service{w.janitor, w.other}[n%2]
				n++
				all.Go(func() {
					err := publishAs(s, owner, archive)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						winners = append(winners, owner)
					} else {
						refused = append(refused, err)
					}
				})
			}
			all.Wait()
			if len(winners) != 1 {
				t.Fatalf("%s: %v won, refused %v", c.what, winners, refused)
			}
			for _, err := range refused {
				if registry.CodeOf(err) != registry.Conflict || !strings.Contains(err.Error(), winners[0]+"/") {
					t.Errorf("%s: %v, want a conflict that names %s", c.what, err, winners[0])
				}
			}
			shelf := onShelf(t, w.other)
			mine := slices.IndexFunc(shelf, func(id string) bool { return strings.HasPrefix(id, winners[0]+"/") })
			owner, rest, _ := strings.Cut(shelf[mine], "/")
			packName, _, _ := strings.Cut(rest, "@")
			_, err := w.janitor.SetEnabled(context.Background(), root, owner, packName, "", false)
			w.must("disable", err)
			for other, archive := range c.archives {
				if other == winners[0] {
					continue
				}
				if err := publishAs(w.other, other, archive); registry.CodeOf(err) != registry.Conflict {
					t.Errorf("%s: %s took the id of a disabled pack: %v", c.what, other, err)
				}
			}
		}
	})
}

// The other spelling of a recipe's id is no way to take its name, and neither is a folder that clients make while they sync.
func TestNamesThatWouldHarmClients(t *testing.T) {
	t.Parallel()
	w := newSQLiteWorld(t, registry.DefaultSettings())
	w.must("publish", publishAs(w.other, "alice", recipeArchive(t, "mine", "1")))
	for name, code := range map[string]registry.Code{"alice.mine": registry.Conflict, "Alice.Mine": registry.Conflict, "mine.syncing": registry.ManifestInvalid, "CUSTOM": registry.Conflict} {
		if err := publishAs(w.other, "bob", recipeArchive(t, name, "1")); registry.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", name, err, code)
		}
	}
	if err := publishAs(w.other, "alice", recipeArchive(t, "mine", "2")); err != nil {
		t.Errorf("a newer version of one's own: %v", err)
	}
	c, err := w.other.SubmissionCatalogue(context.Background(), registry.Caller{Dialect: dialect.Forge}, "custom/alice.mine")
	w.must("catalogue", err)
	if e, alias, ok := c.Resolve("custom/alice.mine"); !ok || !alias || e.Name != "custom/mine" || e.Version != "2" || e.Params == nil {
		t.Errorf("the alias gives %+v, %t, %t", e, alias, ok)
	}
}

// Whatever changes which version is the newest is seen at once on every replica: in what clients sync, in the catalogue, in
// what a submission is held to, whose digest is that of the whole catalogue.
func TestShelfFollowsEveryChange(t *testing.T) {
	t.Parallel()
	everyEngine(t, registry.DefaultSettings(), func(t *testing.T, w *world) {
		enable := func(version string, on bool) func() {
			return func() {
				_, err := w.janitor.SetEnabled(context.Background(), root, "alice", "mine", version, on)
				w.must("enable", err)
			}
		}
		publish := func(version string) func() {
			return func() { w.must("publish", publishAs(w.janitor, "alice", recipeArchive(t, "mine", version))) }
		}
		for i, step := range []struct {
			do   func()
			want string // the version that clients get, "" none
		}{
			{func() {}, ""}, {publish("1.0"), "1.0"}, {publish("1.10"), "1.10"}, {publish("1.9"), "1.10"}, {publish("2.0rc1"), "1.10"},
			{enable("1.10", false), "1.9"}, {enable("", false), ""}, {enable("2.0rc1", true), "2.0rc1"}, {enable("1.0", true), "1.0"}, {enable("", true), "1.10"},
		} {
			step.do()
			for _, s := range []*registry.Service{w.other, w.janitor} {
				var want []string
				if step.want != "" {
					want = []string{"alice/mine@" + step.want}
				}
				if got := onShelf(t, s); !slices.Equal(got, want) {
					t.Errorf("step %d: clients sync %v, want %v", i, got, want)
				}
				checkCatalogues(t, s, i, step.want)
			}
		}
	})
}

func checkCatalogues(t *testing.T, s *registry.Service, step int, want string) {
	t.Helper()
	for _, facts := range []bool{false, true} {
		whole, err := s.Catalogue(asForge(), operator("vera"), facts)
		if err != nil {
			t.Fatal(err)
		}
		part, err := s.SubmissionCatalogue(context.Background(), registry.Caller{Dialect: dialect.Forge}, "custom/mine")
		if err != nil {
			t.Fatal(err)
		}
		if whole.Digest() != part.Digest() {
			t.Errorf("step %d: the catalogue's digest is %s, a submission's %s", step, whole.Digest(), part.Digest())
		}
		e, ok := whole.Lookup("custom/mine")
		p, found := part.Lookup("custom/mine")
		if ok != (want != "") || e.Version != want || found != ok || p.Version != want || ok && (e.Params == nil) == facts || found && p.Params == nil {
			t.Errorf("step %d: the catalogue has %q, a submission %q, want %q (facts %t)", step, e.Version, p.Version, want, facts)
		}
		if _, refusal, _ := part.Handshake(catalogue.Claim{Recipe: "custom/mine"}); want == "" && step > 0 && !strings.Contains(refusal[0].Message, "alice/mine") {
			t.Errorf("step %d: the refusal %q does not say what became of the recipe", step, refusal[0].Message)
		}
	}
}

// packRows publishes n packs of a kind by their rows alone, which is quick.
func packRows(t testing.TB, meta registry.MetaStore, s *registry.Service, kind string, n int) {
	t.Helper()
	const step = 500
	for first := 0; first < n; first += step {
		err := meta.Update(context.Background(), func(tx registry.Tx) error {
			for i := first; i < min(first+step, n); i++ {
				if err := packRow(tx, s, kind, fmt.Sprintf("p%06d", i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func packRow(tx registry.Tx, s *registry.Service, kind, name string) error {
	sum := digest.FromBytes([]byte(kind + name))
	blob := digest.Descriptor{MediaType: "application/x", Digest: sum, Size: 1}
	owner := "o-" + kind
	v := registry.Version{
		Repository: owner + "/" + name, Owner: owner, PackName: name, Version: "1.0.0", Key: "1", Dialect: dialect.Forge, Kind: kind, Manifest: sum, Content: sum, Tree: sum,
		Layer: blob, Config: blob, Document: json.RawMessage(`{}`), Enabled: true, CreatedBy: owner, CreatedAt: time.Unix(1_800_000_000, 0),
	}
	if kind == "recipe" {
		builtin, _ := catalogue.Builtin(dialect.Forge, "0.3.56")
		e, _ := builtin.Lookup("verl/dapo")
		e.Name, e.Digest, e.Pack = "verl/"+name, sum.String(), &catalogue.Pack{Owner: owner, Name: name, Version: v.Version, Content: sum, Tree: sum, Manifest: sum}
		var err error
		if v.Catalogue, err = json.Marshal(e); err != nil {
			return err
		}
	}
	if err := tx.EnsureRepository(registry.Repository{Name: v.Repository, Owner: owner}); err != nil {
		return err
	}
	if err := tx.InsertVersion(v); err != nil {
		return err
	}
	return s.Reshelve(tx, v.Repository)
}

// What a program before the shelf published is put on it when the registry opens, with the ids that it took.
func TestShelfOfAnOlderRegistry(t *testing.T) {
	t.Parallel()
	w := newSQLiteWorld(t, registry.DefaultSettings())
	packRows(t, w.bare, w.other, "recipe", 3)
	err := w.bare.Update(context.Background(), func(tx registry.Tx) error {
		for i := range 3 {
			if _, err := tx.TakeOffShelf(dialect.Forge, fmt.Sprintf("o-recipe/p%06d", i)); err != nil {
				return err
			}
		}
		return tx.PutSetting("shelf", "")
	})
	w.must("empty the shelf", err)
	if got := onShelf(t, w.service(w.bare, registry.DefaultSettings(), false)); len(got) != 3 {
		t.Errorf("on the shelf lie %v", got)
	}
	err = w.bare.View(context.Background(), func(tx registry.Tx) error {
		for id, alias := range map[string]bool{"verl/P000001": false, "verl/o-recipe.p000001": true} {
			if holder, err := tx.ClientIDHolder(dialect.Forge, "recipe", id); err != nil || holder.Pack != "o-recipe/p000001" || holder.Alias != alias {
				t.Errorf("%s belongs to %+v (%v)", id, holder, err)
			}
		}
		return nil
	})
	w.must("look at ids", err)
}

// A submission's catalogue costs the same with a few packs and with thousands, of every kind: no allocation more.
func TestSubmissionCatalogueDoesNotGrow(t *testing.T) {
	w := newSQLiteWorld(t, registry.DefaultSettings())
	caller := registry.Caller{Dialect: dialect.Forge}
	cost := func() (allocations [3]float64) {
		for i, recipe := range []string{"verl/grpo", "verl/p000007", "verl/none"} {
			allocations[i] = testing.AllocsPerRun(50, func() {
				if _, err := w.other.SubmissionCatalogue(context.Background(), caller, recipe); err != nil {
					t.Fatal(err)
				}
			})
		}
		return allocations
	}
	packRows(t, w.bare, w.other, "recipe", 250)
	few := cost()
	packRows(t, w.bare, w.other, "prompt", 2000)
	err := w.bare.Update(context.Background(), func(tx registry.Tx) error {
		for i := range 2000 {
			if err := packRow(tx, w.other, "recipe", fmt.Sprintf("q%06d", i)); err != nil {
				return err
			}
		}
		return nil
	})
	w.must("publish many", err)
	many := cost()
	for i := range few {
		if many[i] > few[i]*1.1+1 {
			t.Errorf("lookup %d: %.0f allocations with few packs, %.0f with many", i, few[i], many[i])
		}
	}
	t.Logf("allocations: built-in %.0f, published %.0f, absent %.0f; with many packs %.0f, %.0f, %.0f", few[0], few[1], few[2], many[0], many[1], many[2])
}

// BenchmarkShelf measures what clients ask for with 5,000 packs, on SQLite and PostgreSQL: the list that they sync, the
// catalogue, and a submission's part of it, each right after a change and again.
func BenchmarkShelf(b *testing.B) {
	for _, engine := range []string{"sqlite", "postgres"} {
		b.Run(engine, func(b *testing.B) {
			var w *world
			if engine == "sqlite" {
				w = newSQLiteWorld(b, registry.DefaultSettings())
			} else {
				w = newWorld(b, registry.DefaultSettings(), postgres(b))
			}
			packRows(b, w.bare, w.other, "recipe", 5000)
			ask := map[string]func() error{
				"extensions": func() error { _, err := w.other.Extensions(asForge(), operator("vera")); return err },
				"catalogue":  func() error { _, err := w.other.Catalogue(asForge(), operator("vera"), false); return err },
				"submission": func() error {
					_, err := w.other.SubmissionCatalogue(context.Background(), registry.Caller{Dialect: dialect.Forge}, "verl/p000007")
					return err
				},
			}
			for what, fn := range ask {
				for _, cold := range []bool{true, false} {
					b.Run(fmt.Sprintf("%s/cold=%t", what, cold), func(b *testing.B) {
						for b.Loop() {
							if cold {
								w.other.Rest()
							}
							if err := fn(); err != nil {
								b.Fatal(err)
							}
						}
					})
				}
			}
		})
	}
}

// halfShelf gives half of what lies on the shelf and fails then, as a store that goes away does, until it is mended.
type halfShelf struct {
	registry.MetaStore
	mended bool
}

func (h *halfShelf) View(ctx context.Context, fn func(registry.Tx) error) error {
	return h.MetaStore.View(ctx, func(tx registry.Tx) error {
		if h.mended {
			return fn(tx)
		}
		return fn(halfShelfTx{tx})
	})
}

type halfShelfTx struct{ registry.Tx }

func (h halfShelfTx) Shelf(d dialect.Dialect, yield func(registry.Shelved) error) error {
	n := 0
	return h.Tx.Shelf(d, func(v registry.Shelved) error {
		if n++; n > 2 {
			return registry.Errorf(registry.Unavailable, "the store went away")
		}
		return yield(v)
	})
}

// A list that could not be read whole is an error, never a part of it: a client deletes what is not listed. Nothing of the
// part is remembered.
func TestExtensionsAreAllOrAnError(t *testing.T) {
	t.Parallel()
	w := newSQLiteWorld(t, registry.DefaultSettings())
	packRows(t, w.bare, w.other, "prompt", 5)
	half := &halfShelf{MetaStore: w.bare}
	s := w.service(half, registry.DefaultSettings(), false)
	if list, err := s.Extensions(asForge(), operator("vera")); registry.CodeOf(err) != registry.Unavailable || list != nil {
		t.Errorf("half a shelf answers %d packs, %v", len(list), err)
	}
	half.mended = true
	if got := onShelf(t, s); len(got) != 5 {
		t.Errorf("afterwards the list is %v", got)
	}
	robot := auth.Principal{Account: "vera+ci", Role: auth.Robot, Scopes: []auth.Scope{{Repository: "o-prompt/**", Actions: []auth.Verb{auth.Pull}}}}
	if list, err := s.Extensions(asForge(), robot); registry.CodeOf(err) != registry.Denied {
		t.Errorf("a robot, which may not read all, is told of %d packs (%v)", len(list), err)
	}
}
