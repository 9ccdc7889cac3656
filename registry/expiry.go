package registry

import (
	"context"
	"errors"
	"fmt"
)

// Expire ends what has had its time: upload sessions, previews and package uploads. Sessions of the blob store that no
// row names, left by a server that was killed, go once nobody has written to them for Settings.UploadTTL. It returns how
// many sessions ended.
func (s *Service) Expire(ctx context.Context) (int, error) {
	var expired []Upload
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		expired, err = tx.ExpiredUploads(s.now())
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, u := range expired {
		if err := s.dropUpload(ctx, u.ID); err != nil {
			return 0, fmt.Errorf("expire upload %s: %w", u.ID, err)
		}
	}
	stray, err := s.expireStray(ctx)
	if err != nil {
		return len(expired), err
	}
	return len(expired) + stray, s.meta.Update(ctx, func(tx Tx) error { return tx.DeleteExpired(s.now()) })
}

// expireStray aborts sessions that are older than any session lives and that no row names: the store's clock is not ours.
func (s *Service) expireStray(ctx context.Context) (int, error) {
	n := 0
	for session, err := range s.blobs.Uploads(ctx) {
		if err != nil {
			return n, err
		}
		if s.now().Sub(session.TouchedAt) <= s.set.UploadTTL {
			continue
		}
		err := s.meta.View(ctx, func(tx Tx) error {
			_, err := tx.Upload(session.ID)
			return err
		})
		if err == nil {
			continue // it ends with its row
		}
		if !errors.Is(err, ErrUploadUnknown) {
			return n, err
		}
		if err := s.dropUpload(ctx, session.ID); err != nil {
			return n, fmt.Errorf("expire upload %s: %w", session.ID, err)
		}
		n++
	}
	return n, nil
}
