package registry

import (
	"context"
	"fmt"
	"time"
)

// Expire ends what has had its time: sessions of uploads, previews, package uploads, files of unsealed suites, tokens and
// sessions, codes of sign-ins, and the memory of failed sign-ins and closed uploads. It
// returns how many sessions ended.
func (s *Service) Expire(ctx context.Context) (int, error) {
	n, err := s.expireSessions(ctx)
	if err != nil {
		return n, err
	}
	return n, s.meta.Update(ctx, func(tx Tx) error {
		if err := tx.DeleteExpired(s.now()); err != nil {
			return err
		}
		if err := tx.DeleteExpiredTokens(s.now().Add(-keepExpiredTokens)); err != nil {
			return err
		}
		if err := tx.DeleteSignInFailures(s.now().Add(-forgetFailures)); err != nil {
			return err
		}
		if err := tx.DeleteEndedSessions(s.now().Add(-keepEndedSessions)); err != nil {
			return err
		}
		if err := tx.DeleteExpiredCodes(s.now().Add(-keepExpiredCodes)); err != nil {
			return err
		}
		if err := tx.ForgetSuiteFiles(s.now()); err != nil {
			return err
		}
		return tx.ForgetClosedUploads(s.now())
	})
}

// expired reports whether a session began Settings.UploadTTL ago, by the registry's clock, which its name tells. One that has
// another name has expired when nobody has written to it for so long, by the store's clock.
func (s *Service) expired(session UploadSession) (since time.Time, expired bool) {
	since, ok := sessionStart(session.ID)
	if !ok {
		since = session.TouchedAt
	}
	return since, s.now().Sub(since) > s.set.UploadTTL
}

// expireSessions aborts the sessions that have expired.
func (s *Service) expireSessions(ctx context.Context) (int, error) {
	n := 0
	for session, err := range s.blobs.Uploads(ctx) {
		if err != nil {
			return n, err
		}
		if _, expired := s.expired(session); !expired {
			continue
		}
		if err := s.blobs.AbortUpload(ctx, session.ID); err != nil {
			return n, fmt.Errorf("expire upload %s: %w", session.ID, err)
		}
		n++
	}
	return n, nil
}
