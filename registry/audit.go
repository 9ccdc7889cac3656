package registry

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// auditPage is how many rows Audit gives at a time.
const auditPage = 1000

// Audit lists the rows of the audit log after a sequence number, at most a page. Errors: Denied.
func (s *Service) Audit(ctx context.Context, p auth.Principal, after int64) ([]AuditRow, error) {
	if err := s.authorize(ctx, p, auth.ReadAudit, "", "the audit log"); err != nil {
		return nil, err
	}
	rows := []AuditRow{}
	err := s.meta.View(ctx, func(tx Tx) error {
		page, err := tx.Audit(after, auditPage)
		rows = append(rows[:0], page...)
		return err
	})
	return rows, err
}

// audit adds a row to the log inside the transaction that makes the change.
func (s *Service) audit(tx Tx, p auth.Principal, action, subject, detail string) error {
	return tx.InsertAudit(s.auditRow(p, action, subject, "ok", detail))
}

func (s *Service) auditRow(p auth.Principal, action, subject, outcome, detail string) AuditRow {
	return AuditRow{At: s.now(), Account: p.Account, Action: action, Subject: Shown(subject), Outcome: outcome, Detail: auditText(detail),
		Remote: p.Remote, Request: p.Request}
}

// auditRefusal records a refusal, which changed nothing and so has no transaction of its own. A store that can't take the
// row must not hide the refusal itself, so its error is only logged. Who is refused again and again fills no disk: see
// refusals.
func (s *Service) auditRefusal(ctx context.Context, p auth.Principal, action, subject string, cause error) {
	rows := s.refusals.take(s.auditRow(p, action, subject, string(CodeOf(cause)), cause.Error()))
	s.writeRefusals(ctx, rows)
}

func (s *Service) writeRefusals(ctx context.Context, rows []AuditRow) {
	if len(rows) == 0 {
		return
	}
	err := s.always.Update(context.WithoutCancel(ctx), func(tx Tx) error { // also while the registry is read-only
		for _, row := range rows {
			if err := tx.InsertAudit(row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.log.ErrorContext(ctx, "audit rows lost", "count", len(rows), "action", rows[0].Action, "subject", rows[0].Subject, "err", err)
	}
}

// SettleRefusals writes the counts of refusals that stand for rows of their own and whose minute is over; all says to
// write those of the running minute too. The server calls it once a minute, and when it stops.
func (s *Service) SettleRefusals(ctx context.Context, all bool) {
	s.writeRefusals(ctx, s.refusals.settle(s.now(), all))
}

// What a flood of refusals may write: of each source so many rows a minute and one that counts the others, of so many
// sources.
const (
	refusalWindow  = time.Minute
	refusalRows    = 20
	refusalSources = 1024
)

// refusals counts refusals by who is refused, so that a flood of them leaves a few rows in the log.
type refusals struct {
	mu      sync.Mutex
	sources map[refusalSource]*refusalCount
}

// refusalSource is an account, or the network of nobody in particular.
type refusalSource struct{ account, network string }

// refusalCount is what one source did since a moment.
type refusalCount struct {
	since  time.Time
	rows   int
	unseen int      // refusals without a row
	last   AuditRow // of those
}

// take gives the rows that a refusal writes: its own, and the count of a minute that is over.
func (r *refusals) take(row AuditRow) []AuditRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	source := refusalSource{row.Account, ""}
	if row.Account == "" {
		source.network = networkOf(row.Remote)
	}
	if r.sources == nil {
		r.sources = map[refusalSource]*refusalCount{}
	}
	if _, known := r.sources[source]; !known && len(r.sources) >= refusalSources {
		source = refusalSource{"", "others"}
	}
	var out []AuditRow
	count := r.sources[source]
	if count != nil && row.At.Sub(count.since) >= refusalWindow {
		out, count = count.settle(out, row.At), nil
	}
	if count == nil {
		count = &refusalCount{since: row.At}
		r.sources[source] = count
	}
	if count.rows >= refusalRows {
		count.unseen++
		count.last = row
		return out
	}
	count.rows++
	return append(out, row)
}

// settle ends the minutes that are over, or all, and gives what they leave to write.
func (r *refusals) settle(now time.Time, all bool) []AuditRow {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []AuditRow
	for source, count := range r.sources {
		if all || now.Sub(count.since) >= refusalWindow {
			out = count.settle(out, now)
			delete(r.sources, source)
		}
	}
	return out
}

func (c *refusalCount) settle(out []AuditRow, now time.Time) []AuditRow {
	if c.unseen == 0 {
		return out
	}
	row := c.last
	row.At, row.Detail = now, fmt.Sprintf("and %d more since %s, the last: %s", c.unseen, c.since.UTC().Format(time.RFC3339), row.Detail)
	return append(out, row)
}

// networkOf is the network that an address belongs to as limits count it: /24 of IPv4, /64 of IPv6. An address that is
// none is a network of its own kind.
func networkOf(remote string) string {
	addr, err := netip.ParseAddr(remote)
	if err != nil {
		return "unknown"
	}
	addr = addr.Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 24
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return "unknown"
	}
	return network.String()
}
