package registry

import (
	"context"
	"errors"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// redirectTTL is how long an address of the store is good. A download that began in time may take as long as it will.
const redirectTTL = 10 * time.Minute

// RedirectBlob gives an address at which the store of bytes itself serves the blob to who may read it here; "" when the
// blob comes from us: redirects are off, it is no larger than Settings.RedirectOver, or the store gives out no addresses.
// Errors as StatBlob.
func (s *Service) RedirectBlob(ctx context.Context, p auth.Principal, repository string, d digest.Digest) (string, error) {
	store, able := s.blobs.(Presigner)
	if !able || s.set.RedirectOver <= 0 {
		return "", nil
	}
	if err := s.mayReadBlob(ctx, p, repository, d); err != nil {
		return "", err
	}
	desc, err := s.readableBlob(ctx, p, repository, d)
	if err != nil || desc.Size <= s.set.RedirectOver {
		return "", err
	}
	// What does not lie in the store lies beside its row, or is missing or damaged: OpenBlob knows.
	size, err := s.blobs.Stat(ctx, d)
	if errors.Is(err, ErrBlobUnknown) || err == nil && size != desc.Size {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return store.Presign(ctx, d, redirectTTL)
}
