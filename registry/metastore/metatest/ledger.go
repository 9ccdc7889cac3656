package metatest

import (
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
)

var ledgerTests = map[string]func(*testing.T, registry.MetaStore){
	"VersionIsTaken": testVersionIsTaken,
	"Ledger":         testLedger,
	"MergeLedger":    testMergeLedger,
}

// row is what the ledger keeps of a version.
func row(seq int64, v registry.Version) registry.LedgerRow {
	return registry.LedgerRow{Seq: seq, Owner: v.Owner, Name: v.PackName, Version: v.Version, Dialect: v.Dialect, Kind: v.Kind,
		Manifest: v.Manifest, Content: v.Content, Tree: v.Tree, CreatedBy: v.CreatedBy, CreatedAt: v.CreatedAt}
}

func ledger(t *testing.T, s registry.MetaStore, after int64, limit int) []registry.LedgerRow {
	t.Helper()
	return view(t, s, func(tx registry.Tx) ([]registry.LedgerRow, error) { return tx.Ledger(after, limit) })
}

// refused inserts a version that must meet a conflict whose message holds all parts.
func refused(t *testing.T, s registry.MetaStore, what string, v registry.Version, parts ...string) {
	t.Helper()
	err := fails(t, s, what, registry.Conflict, func(tx registry.Tx) error { return tx.InsertVersion(v) })
	for _, part := range parts {
		if err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%s: the conflict does not say %q: %v", what, part, err)
		}
	}
}

func testVersionIsTaken(t *testing.T, s registry.MetaStore) {
	list := withPack(t, s, "1.0", "1.0.post1")
	other := version("1.0", 9)
	other.Manifest, other.Key = sum("other bytes"), "another key"
	refused(t, s, "taken version", other, "alice/Pack", `"1.0"`, list[0].Manifest.String())
	other.Version, other.Key = "1", list[0].Key
	refused(t, s, "taken key", other, `"1"`, `"1.0"`, list[0].Manifest.String())
	other.Version, other.Key = "1.0", list[1].Key
	refused(t, s, "taken version, key of another", other, "taken", list[0].Manifest.String())
	same(t, "versions", view(t, s, func(tx registry.Tx) ([]registry.Version, error) { return tx.Versions("alice/pack") }), brief(list...))
	same(t, "ledger", ledger(t, s, 0, -1), []registry.LedgerRow{row(1, list[0]), row(2, list[1])})

	// A conflict does not end the transaction: what else its function does is committed.
	update(t, s, func(tx registry.Tx) error {
		if err := tx.InsertVersion(other); registry.CodeOf(err) != registry.Conflict {
			t.Errorf("taken version: got error %v, want a conflict", err)
		}
		return tx.PutSetting("after", "conflict")
	})
	view(t, s, func(tx registry.Tx) (string, error) { return tx.Setting("after") })
}

func testLedger(t *testing.T, s registry.MetaStore) {
	same(t, "empty ledger", ledger(t, s, 0, -1), []registry.LedgerRow(nil))
	var want []registry.LedgerRow
	for i, v := range withPack(t, s, "3", "1", "2") {
		want = append(want, row(int64(i+1), v))
	}
	same(t, "ledger, in the order of publishing", ledger(t, s, 0, -1), want)
	same(t, "ledger after 1", ledger(t, s, 1, -1), want[1:])
	same(t, "ledger after 1, one row", ledger(t, s, 1, 1), want[1:2])
	same(t, "ledger after the last", ledger(t, s, 3, 10), []registry.LedgerRow(nil))

	// A publish that is rolled back leaves no row and no gap.
	fails(t, s, "publish that is rolled back", registry.Internal, func(tx registry.Tx) error {
		if err := tx.InsertVersion(version("4", 4)); err != nil {
			return err
		}
		return errOwn
	})
	update(t, s, func(tx registry.Tx) error { return tx.InsertVersion(version("5", 5)) })
	same(t, "ledger after a rollback", ledger(t, s, 3, -1), []registry.LedgerRow{row(4, version("5", 5))})
}

func testMergeLedger(t *testing.T, s registry.MetaStore) {
	list := withPack(t, s, "1", "2")
	merge := func(l registry.LedgerRow, key string, want bool) {
		t.Helper()
		update(t, s, func(tx registry.Tx) error {
			added, err := tx.MergeLedger("alice/pack", key, l)
			if added != want {
				t.Errorf("merge of %q: got added %t, want %t", l.Version, added, want)
			}
			return err
		})
	}
	merge(row(1, list[0]), list[0].Key, false)
	lost := version("3", 3)
	merge(row(7, lost), lost.Key, true)
	merge(row(7, lost), lost.Key, false)
	late := version("4", 4) // its number is another's here: it gets the next
	merge(row(2, late), late.Key, true)
	same(t, "merged ledger", ledger(t, s, 0, -1), []registry.LedgerRow{row(1, list[0]), row(2, list[1]), row(7, lost), row(8, late)})

	other := row(9, version("3", 3))
	other.Manifest = sum("other bytes")
	fails(t, s, "merge of a version with other bytes", registry.Conflict, func(tx registry.Tx) error {
		_, err := tx.MergeLedger("alice/pack", lost.Key, other)
		return err
	})
	other.Version = "3.0"
	fails(t, s, "merge of a version whose key is taken", registry.Conflict, func(tx registry.Tx) error {
		_, err := tx.MergeLedger("alice/pack", lost.Key, other)
		return err
	})

	// A version that only the ledger has can't be published again, not even with the same bytes.
	refused(t, s, "version that only the ledger has", lost, "taken", lost.Manifest.String(), "never used twice")
	again := version("3.0", 5)
	again.Key = lost.Key
	refused(t, s, "key that only the ledger has", again, `"3"`, "never used twice")
	missing(t, s, "version that only the ledger has", registry.NotFound, func(tx registry.Tx) (registry.Version, error) { return tx.Version("alice/pack", "3") })
	update(t, s, func(tx registry.Tx) error { return tx.InsertVersion(version("6", 6)) })
	same(t, "ledger after the next publish", ledger(t, s, 8, -1), []registry.LedgerRow{row(9, version("6", 6))})
}
