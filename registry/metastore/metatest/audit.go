package metatest

import (
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
)

var auditTests = map[string]func(*testing.T, registry.MetaStore){
	"Audit":    testAudit,
	"Settings": testSettings,
}

func testAudit(t *testing.T, s registry.MetaStore) {
	var want []registry.AuditRow
	for n := range 5 {
		a := registry.AuditRow{At: at(n), Account: "alice", Action: "pack.publish", Subject: "alice/x", Outcome: "ok", Detail: "é\n\"" + numbered("d", n), Remote: "192.0.2.1", Request: "r" + numbered("", n)}
		update(t, s, func(tx registry.Tx) error { return tx.InsertAudit(a) })
		want = append(want, a)
	}
	list := func(after int64, limit int) []registry.AuditRow {
		return view(t, s, func(tx registry.Tx) ([]registry.AuditRow, error) { return tx.Audit(after, limit) })
	}
	got := list(0, -1)
	for i := range min(len(got), len(want)) {
		if want[i].Seq = got[i].Seq; i > 0 && got[i].Seq <= got[i-1].Seq {
			t.Errorf("row %d has the number %d after %d", i, got[i].Seq, got[i-1].Seq)
		}
	}
	same(t, "audit log", got, want)
	same(t, "audit log after the second row", list(want[1].Seq, 2), want[2:4])
	same(t, "audit log after the last row", list(want[4].Seq, 2), []registry.AuditRow(nil))
}

func testSettings(t *testing.T, s registry.MetaStore) {
	find := func(key string) func(registry.Tx) (string, error) {
		return func(tx registry.Tx) (string, error) { return tx.Setting(key) }
	}
	missing(t, s, "unknown setting", registry.NotFound, find("id"))
	for _, value := range []string{"first", "", "a\x7f 'quoted' \"value\" $1 ?; DROP TABLE settings"} {
		update(t, s, func(tx registry.Tx) error { return tx.PutSetting("id", value) })
		if got := view(t, s, find("id")); got != value {
			t.Errorf("setting: got %q, want %q", got, value)
		}
	}
	missing(t, s, "setting but for case", registry.NotFound, find("ID"))
}
