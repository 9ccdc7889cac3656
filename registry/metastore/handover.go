package metastore

import (
	"fmt"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// conditions collects what a query asks of rows, with its arguments.
type conditions struct {
	list []string
	args []any
}

// arg adds an argument and gives its place holder.
func (c *conditions) arg(value any) string {
	c.args = append(c.args, value)
	return fmt.Sprintf("$%d", len(c.args))
}

// add adds a condition in which %s stands for the value.
func (c *conditions) add(condition string, value any) {
	c.list = append(c.list, fmt.Sprintf(condition, c.arg(value)))
}

// equal adds the condition that a column has the text, unless that is empty.
func (c *conditions) equal(column, text string) {
	if text != "" {
		c.add(column+` = %s`, text)
	}
}

func (c *conditions) where() string {
	if len(c.list) == 0 {
		return ""
	}
	return ` WHERE ` + strings.Join(c.list, ` AND `)
}

const handoverColumns = `id, job, target, event, state, tries, created_at, since, due_at, holder, lease_until, last_error, ended_at`

func scanHandover(r row) (h registry.Handover, err error) {
	err = r.Scan(&h.ID, &h.Job, &h.Target, &h.Event, &h.State, &h.Tries, timeColumn{&h.CreatedAt}, timeColumn{&h.Since}, timeColumn{&h.DueAt},
		&h.Holder, timeColumn{&h.LeaseUntil}, &h.LastError, timeColumn{&h.EndedAt})
	return h, err
}

// InsertHandover implements registry.HandoverTx.
func (t *tx) InsertHandover(h registry.Handover) error {
	err := t.insert(conflict("the hand-over %.200q exists already", h.ID),
		`INSERT INTO handovers (`+handoverColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT DO NOTHING`,
		h.ID, h.Job, h.Target, string(h.Event), string(h.State), h.Tries, micros(h.CreatedAt), micros(h.Since), micros(h.DueAt),
		h.Holder, micros(h.LeaseUntil), printable(h.LastError), micros(h.EndedAt))
	return t.named(err, noJob(h.Job))
}

func noHandover(id string) *registry.Error {
	return registry.Errorf(registry.NotFound, "there is no hand-over %.200q", id)
}

// Handover implements registry.HandoverTx.
func (t *tx) Handover(id string) (registry.Handover, error) {
	return one(t, noHandover(id), scanHandover, `SELECT `+handoverColumns+` FROM handovers WHERE id = $1`, id)
}

// Handovers implements registry.HandoverTx. Ids begin with those of jobs, which begin with a time.
func (t *tx) Handovers(f registry.HandoverFilter) ([]registry.Handover, error) {
	var q conditions
	q.equal("target", f.Target)
	q.equal("state", string(f.State))
	q.equal("job", f.Job)
	if f.Before != "" {
		q.add(`id < %s`, f.Before)
	}
	return all(t, scanHandover, `SELECT `+handoverColumns+` FROM handovers`+q.where()+` ORDER BY id DESC LIMIT `+q.arg(atMost(f.Limit)), q.args...)
}

// DueHandovers implements registry.HandoverTx.
func (t *tx) DueHandovers(target string, now time.Time, limit int) ([]registry.Handover, error) {
	return all(t, scanHandover, `SELECT `+handoverColumns+` FROM handovers h
		WHERE h.target = $1 AND h.state = 'pending' AND h.due_at <= $2 AND h.lease_until <= $2 AND NOT EXISTS (
			SELECT 1 FROM handovers e WHERE h.event = '`+string(registry.EventCancelled)+`' AND e.job = h.job AND e.target = h.target AND e.id <> h.id
			AND (e.state = 'pending' OR e.lease_until > $2))
		ORDER BY h.due_at, h.id LIMIT $3`, target, micros(now), atMost(limit))
}

// UpdateHandover implements registry.HandoverTx.
func (t *tx) UpdateHandover(h registry.Handover) error {
	return t.change(noHandover(h.ID),
		`UPDATE handovers SET state = $2, tries = $3, due_at = $4, holder = $5, lease_until = $6, last_error = $7, ended_at = $8, since = $9 WHERE id = $1`,
		h.ID, string(h.State), h.Tries, micros(h.DueAt), h.Holder, micros(h.LeaseUntil), printable(h.LastError), micros(h.EndedAt), micros(h.Since))
}

// HandoverCounts implements registry.HandoverTx.
func (t *tx) HandoverCounts() ([]registry.HandoverCount, error) {
	return all(t, func(r row) (c registry.HandoverCount, err error) {
		err = r.Scan(&c.Target, &c.State, &c.Count, timeColumn{&c.Oldest})
		return c, err
	}, `SELECT target, state, COUNT(*), MIN(created_at) FROM handovers WHERE state IN ('pending', 'dead') GROUP BY target, state ORDER BY target, state`)
}

// ReleaseHandovers implements registry.HandoverTx.
func (t *tx) ReleaseHandovers(target string) (int, error) {
	n, err := t.exec(`UPDATE handovers SET holder = '', lease_until = 0 WHERE target = $1 AND holder <> ''`, target)
	return int(n), err
}
