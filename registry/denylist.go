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
// moved, and at half its life.
type denyList struct {
	mu       sync.Mutex
	last     int64 // the revocation that its number is of
	issued   time.Time
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
	if l.envelope == nil || last > l.last || s.now().Sub(l.issued).Abs() >= s.set.DenyListTTL/2 {
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
		l.last, l.issued, l.envelope, l.tag = int64(list.Number)-1, now, signed, denylist.Tag(signed)
		return nil
	})
}

// listRevoked is the list of all revoked versions.
func (s *Service) listRevoked(tx Tx, now time.Time) (denylist.List, error) {
	rows, err := tx.Revocations(0, -1)
	list := denylist.List{
		Audience: s.set.RegistryID, Number: 1, IssuedAt: now.Truncate(time.Second), Expires: now.Truncate(time.Second).Add(s.set.DenyListTTL),
		Revoked: make([]denylist.Entry, len(rows)),
	}
	for i, r := range rows {
		list.Number = uint64(r.Seq) + 1
		list.Revoked[i] = denylist.Entry{ID: r.Pack, Version: r.Version, Content: r.Content, Tree: r.Tree, Manifest: r.Manifest, Reason: r.Reason, At: r.At.UTC()}
	}
	return list, err
}
