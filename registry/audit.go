package registry

import (
	"context"

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

// Ready fails when the metadata can't be read.
func (s *Service) Ready(ctx context.Context) error {
	return s.meta.View(ctx, func(tx Tx) error {
		_, err := tx.Repositories("", 1)
		return err
	})
}
