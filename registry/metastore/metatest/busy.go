package metatest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
)

var busyTests = map[string]func(*testing.T, registry.MetaStore){
	"OnePublishWins":        testOnePublishWins,
	"OneRecipeHolderWins":   testOneRecipeHolder,
	"ManyPublishesAllThere": testManyPublishes,
	"UpdatesAreSerial":      testUpdatesAreSerial,
	"FailuresStayAlone":     testFailuresStayAlone,
	"ViewsBesideUpdates":    testViewsBesideUpdates,
}

// together runs f n times at once and waits.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func testOnePublishWins(t *testing.T, s registry.MetaStore) {
	withPack(t, s)
	candidates := make([]registry.Version, 64)
	results := make([]error, 64)
	for i := range candidates {
		candidates[i] = version("1.0", i)
		candidates[i].Manifest = sum(fmt.Sprint("bytes ", i))
		if i%2 == 1 { // half of them are other spellings of the version, with the same key
			candidates[i].Version = fmt.Sprint("1.0+", i)
		}
	}
	together(64, func(i int) {
		results[i] = s.Update(context.Background(), func(tx registry.Tx) error { return tx.InsertVersion(candidates[i]) })
	})
	var winners []registry.Version
	for i, err := range results {
		switch registry.CodeOf(err) {
		case "":
			winners = append(winners, candidates[i])
		case registry.Conflict:
		default:
			t.Errorf("publish %d: got error %v, want success or a conflict", i, err)
		}
	}
	if len(winners) != 1 {
		t.Fatalf("%d of 64 publishes of one version won, want 1", len(winners))
	}
	same(t, "the versions", view(t, s, func(tx registry.Tx) ([]registry.Version, error) { return tx.Versions("alice/pack") }), brief(winners...))
	same(t, "the ledger", ledger(t, s, 0, -1), []registry.LedgerRow{row(1, winners[0])})
}

func testOneRecipeHolder(t *testing.T, s registry.MetaStore) {
	results := make([]error, 32)
	together(32, func(i int) {
		results[i] = s.Update(context.Background(), func(tx registry.Tx) error {
			return tx.TakeClientID(registry.ClientID{Dialect: "forge", Kind: "recipe", ID: "verl/grpo", Pack: numbered("alice/p", i)})
		})
	})
	holder := view(t, s, func(tx registry.Tx) (registry.ClientID, error) {
		return tx.ClientIDHolder("forge", "recipe", "verl/grpo")
	})
	for i, err := range results {
		if won := holder.Pack == numbered("alice/p", i); won != (err == nil) || !won && registry.CodeOf(err) != registry.Conflict {
			t.Errorf("pack %d: holds the id %t, got error %v", i, won, err)
		}
	}
}

// testManyPublishes checks that every acknowledged publish is there once, with a ledger without gaps.
func testManyPublishes(t *testing.T, s registry.MetaStore) {
	withPack(t, s)
	together(64, func(i int) {
		for n := range 4 {
			v := version(fmt.Sprintf("%d.%d", i, n), i)
			if err := s.Update(context.Background(), func(tx registry.Tx) error { return tx.InsertVersion(v) }); err != nil {
				t.Errorf("publish of %s: %v", v.Version, err)
			}
			if _, err := find(s, v.Version); err != nil {
				t.Errorf("version %s right after its publish: %v", v.Version, err)
			}
		}
	})
	rows := ledger(t, s, 0, -1)
	seen := map[string]bool{}
	for i, l := range rows {
		if l.Seq != int64(i+1) || seen[l.Version] {
			t.Errorf("ledger row %d: number %d, version %s", i, l.Seq, l.Version)
		}
		seen[l.Version] = true
	}
	if len(rows) != 256 {
		t.Errorf("ledger: got %d rows, want 256", len(rows))
	}
}

// find looks a version of alice/pack up from any goroutine.
func find(s registry.MetaStore, v string) (found registry.Version, err error) {
	err = s.View(context.Background(), func(tx registry.Tx) (err error) {
		found, err = tx.Version("alice/pack", v)
		return err
	})
	return found, err
}

func testUpdatesAreSerial(t *testing.T, s registry.MetaStore) {
	update(t, s, put("counter", "0"))
	together(32, func(int) {
		for range 5 {
			err := s.Update(context.Background(), func(tx registry.Tx) error {
				text, err := tx.Setting("counter")
				if err != nil {
					return err
				}
				n, err := strconv.Atoi(text)
				if err != nil {
					return err
				}
				return tx.PutSetting("counter", strconv.Itoa(n+1))
			})
			if err != nil {
				t.Errorf("update: %v", err)
			}
		}
	})
	present(t, s, "counter", "160")
}

// testFailuresStayAlone runs updates that fail in many ways beside ones that must succeed.
func testFailuresStayAlone(t *testing.T, s registry.MetaStore) {
	update(t, s, func(tx registry.Tx) error { return tx.InsertAccount(account("taken")) })
	const each = 16
	kinds := []func(i int) (fn func(registry.Tx) error, check func(error) bool){
		func(i int) (func(registry.Tx) error, func(error) bool) {
			return put(numbered("good", i), "there"), func(err error) bool { return err == nil }
		},
		func(i int) (func(registry.Tx) error, func(error) bool) {
			return func(tx registry.Tx) error { return errors.Join(put(numbered("own", i), "")(tx), errOwn) },
				func(err error) bool { return errors.Is(err, errOwn) }
		},
		func(i int) (func(registry.Tx) error, func(error) bool) {
			return func(tx registry.Tx) error {
					return errors.Join(put(numbered("taken", i), "")(tx), tx.InsertAccount(account("taken")))
				},
				func(err error) bool { return registry.CodeOf(err) == registry.Conflict }
		},
		func(i int) (func(registry.Tx) error, func(error) bool) {
			return func(tx registry.Tx) error { // an error of the database that the function hides
					tx.PutTag(registry.Tag{Repository: "none", Name: "x", Digest: sum("x")})
					return tx.PutSetting(numbered("hidden", i), "")
				},
				func(err error) bool { return err != nil }
		},
	}
	together(each*len(kinds), func(i int) {
		fn, check := kinds[i%len(kinds)](i / len(kinds))
		if err := s.Update(context.Background(), fn); !check(err) {
			t.Errorf("update %d of kind %d: unexpected error %v", i, i%len(kinds), err)
		}
	})
	for i := range each {
		present(t, s, numbered("good", i), "there")
		for _, kind := range []string{"own", "taken", "hidden"} {
			absent(t, s, "setting of a failed update", numbered(kind, i))
		}
	}
}

// testViewsBesideUpdates checks that no reader sees one of two writes of an update without the other.
func testViewsBesideUpdates(t *testing.T, s registry.MetaStore) {
	both := func(value string) func(registry.Tx) error {
		return func(tx registry.Tx) error { return errors.Join(tx.PutSetting("a", value), tx.PutSetting("b", value)) }
	}
	update(t, s, both("0"))
	together(16, func(i int) {
		for n := range 10 {
			var err error
			if i%4 == 0 {
				err = s.Update(context.Background(), both(fmt.Sprint(i, n)))
			} else {
				err = s.View(context.Background(), func(tx registry.Tx) error {
					a, errA := tx.Setting("a")
					b, errB := tx.Setting("b")
					if a != b {
						t.Errorf("a reader saw %q and %q, which were always written together", a, b)
					}
					return errors.Join(errA, errB)
				})
			}
			if err != nil {
				t.Errorf("routine %d: %v", i, err)
			}
		}
	})
}
