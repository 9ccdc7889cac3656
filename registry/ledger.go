package registry

import "context"

// ledgerBatch bounds how many rows are copied to the ledger file at a time.
const ledgerBatch = 1000

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
