package registry

import (
	"context"
	"sync"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/denylist"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// denyList is the list of revoked versions that was signed last. Its number is one more than the last revocation's, which is
// written in the transaction that revokes: so it grows with every revocation, on whichever replica, and a list that is
// given out holds every revocation that was acknowledged before it was asked for. The list is signed anew when the number
// moved, and at half its life. When that is follows from the clock and the last revocation alone, so that all replicas sign the
// same bytes: a node that has the list of one is sent none by another.
type denyList struct {
	mu       sync.Mutex
	last     int64     // the revocation that its number is of
	begun    time.Time // the half life in which it was signed
	envelope []byte
	tag      string
}

// DenyList is the signed list of revoked versions, with what tells it from any other. The caller must not change it.
// Errors: Unauthorized, Denied.
func (s *Service) DenyList(ctx context.Context, p auth.Principal) (envelope []byte, tag string, err error) {
	if err := s.authorize(ctx, p, auth.ReadTrust, "", "the deny list"); err != nil {
		return nil, "", err
	}
	var last int64
	err = s.meta.View(ctx, func(tx Tx) (err error) {
		last, err = tx.LastRevocation()
		return err
	})
	if err != nil {
		return nil, "", err
	}
	l := &s.denyList
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.envelope == nil || last > l.last || !s.halfLife(s.now()).Equal(l.begun) {
		err = s.signDenyList(ctx, l)
	}
	return l.envelope, l.tag, err
}

// signDenyList makes the list anew, of what is revoked by now.
func (s *Service) signDenyList(ctx context.Context, l *denyList) error {
	return s.meta.View(ctx, func(tx Tx) error {
		now := s.now()
		list, err := s.listRevoked(tx, now)
		if err != nil {
			return err
		}
		signed, err := s.signer.SignDenyList(list)
		if err != nil {
			return err
		}
		l.last, l.begun, l.envelope, l.tag = int64(list.Number)-1, s.halfLife(now), signed, denylist.Tag(signed)
		return nil
	})
}

// halfLife is when the half life of a list began in which a moment lies, the same for all replicas.
func (s *Service) halfLife(now time.Time) time.Time { return now.Truncate(s.set.DenyListTTL / 2) }

// listRevoked is the list of all revoked versions, issued when its half life began or with the last revocation since then.
func (s *Service) listRevoked(tx Tx, now time.Time) (denylist.List, error) {
	rows, err := tx.Revocations(0, -1)
	issued := s.halfLife(now)
	list := denylist.List{Audience: s.set.RegistryID, Number: 1, Revoked: make([]denylist.Entry, len(rows))}
	for i, r := range rows {
		if r.At.After(issued) {
			issued = r.At
		}
		list.Number = uint64(r.Seq) + 1
		list.Revoked[i] = denylist.Entry{ID: r.Pack, Version: r.Version, Content: r.Content, Tree: r.Tree, Manifest: r.Manifest, Reason: r.Reason, At: r.At.UTC()}
	}
	list.IssuedAt = issued.Truncate(time.Second)
	list.Expires = list.IssuedAt.Add(s.set.DenyListTTL)
	return list, err
}
