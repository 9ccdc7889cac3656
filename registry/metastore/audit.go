package metastore

import (
	"github.com/gatehouse-registry/gatehouse/registry"
)

// InsertAudit implements registry.AuditTx. What a request brought is kept even where no text column can hold all of it:
// such characters become U+FFFD. Numbers rise in the order of commits, without gaps.
func (t *tx) InsertAudit(a registry.AuditRow) error {
	_, err := t.exec(`INSERT INTO audit (seq, at, account, action, subject, outcome, detail, remote, request)
		VALUES ((SELECT COALESCE(MAX(seq), 0) + 1 FROM audit), $1, $2, $3, $4, $5, $6, $7, $8)`,
		micros(a.At), printable(a.Account), printable(a.Action), printable(a.Subject), printable(a.Outcome), printable(a.Detail),
		printable(a.Remote), printable(a.Request))
	return err
}

// Audit implements registry.AuditTx.
func (t *tx) Audit(afterSeq int64, limit int) ([]registry.AuditRow, error) {
	return all(t, func(r row) (a registry.AuditRow, err error) {
		err = r.Scan(&a.Seq, timeColumn{&a.At}, &a.Account, &a.Action, &a.Subject, &a.Outcome, &a.Detail, &a.Remote, &a.Request)
		return a, err
	}, `SELECT seq, at, account, action, subject, outcome, detail, remote, request FROM audit WHERE seq > $1 ORDER BY seq LIMIT $2`, afterSeq, atMost(limit))
}

// Setting implements registry.AuditTx.
func (t *tx) Setting(key string) (string, error) {
	return one(t, registry.Errorf(registry.NotFound, "there is no setting %.100q", key), text, `SELECT value FROM settings WHERE key = $1`, key)
}

// PutSetting implements registry.AuditTx.
func (t *tx) PutSetting(key, value string) error {
	_, err := t.exec(`INSERT INTO settings (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`, key, value)
	return err
}
