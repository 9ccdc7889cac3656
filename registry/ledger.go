package registry

import (
	"context"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/admission/name"
)

// ledgerBatch bounds how many rows are copied to the ledger file at a time.
const ledgerBatch = 1000

// openLedger brings the ledger in the store and its exportable file together at the start. A file that knows more than
// the store, because an older backup of the store was restored, is merged into it: no version that was ever published
// can be published again. Then the file gets what it lacks.
func (s *Service) openLedger(ctx context.Context) error {
	ahead, err := s.ledgerAhead(ctx)
	if err != nil {
		return err
	}
	if ahead {
		if err := s.mergeLedger(ctx); err != nil {
			return err
		}
	}
	return s.syncLedger(ctx)
}

// ledgerAhead reports whether the file's last row is not the store's row of that number.
func (s *Service) ledgerAhead(ctx context.Context) (bool, error) {
	last, ok := s.ledger.Last()
	if !ok {
		return false, nil
	}
	var stored []LedgerRow
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		stored, err = tx.Ledger(last.Seq-1, 1)
		return err
	})
	if err != nil || len(stored) == 0 {
		return true, err
	}
	have := stored[0]
	return have.Seq != last.Seq || have.Owner != last.Owner || have.Name != last.Name || have.Version != last.Version || have.Manifest != last.Manifest, nil
}

// mergeLedger gives the store every row of the file that it lacks.
func (s *Service) mergeLedger(ctx context.Context) error {
	merged := 0
	for row, err := range s.ledger.Rows() {
		if err != nil {
			return err
		}
		repository, err := ledgerRepository(row)
		if err != nil {
			return fmt.Errorf("ledger row %d: %w", row.Seq, err)
		}
		version, err := name.ParseVersion(row.Version)
		if err != nil {
			return fmt.Errorf("ledger row %d: %w", row.Seq, err)
		}
		var added bool
		err = s.always.Update(ctx, func(tx Tx) (err error) {
			added, err = tx.MergeLedger(repository, version.Canonical(), row)
			return err
		})
		if err != nil {
			return fmt.Errorf("ledger row %d: %w", row.Seq, err)
		}
		if added {
			merged++
		}
	}
	s.log.WarnContext(ctx, "the ledger file knew versions that the store did not: they stay taken", "merged", merged)
	return nil
}

// syncLedger appends to the ledger file what the store has and the file lacks. It runs at start and after every
// publish: the row in the store is what counts, the file is its exportable copy.
func (s *Service) syncLedger(ctx context.Context) error {
	for {
		var rows []LedgerRow
		err := s.meta.View(ctx, func(tx Tx) (err error) {
			rows, err = tx.Ledger(s.ledger.LastSeq(), ledgerBatch)
			return err
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := s.ledger.Append(rows); err != nil {
			return err
		}
	}
}
