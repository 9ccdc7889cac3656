package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// anchorPause is how long a change waits for a collection that is deleting bytes which it would name, before it looks again.
const anchorPause = 25 * time.Millisecond

// anchorAttempts is how often it looks. Tests in which the collection waits for the change set less.
var anchorAttempts = 40

// errInTheWay says that a collection condemned, or pardoned, a digest while a change that names it was on its way.
var errInTheWay = errors.New("a collection is deleting these bytes")

// anchored is MetaStore.Update for a change whose rows begin to name bytes that lie in the BlobStore. Who makes such a
// change stores the bytes first; a collection may find them in between, named by nothing, and delete them. It says so in
// rows (CollectionTx): "condemn D unless a row names it", then it deletes the bytes, then "pardon D".
//
// No interleaving of anchored and a collection can commit a row that names bytes which the collection deletes: the number
// of pardons is read, then the store is asked for the bytes, then the transaction looks whether one of them is condemned
// and whether the number moved. Transactions run one after another, so a collection that condemned D after this one's
// commit finds the row; one that condemned D before and is not done is seen as condemned; one that got done since the
// number was read has moved it; one that got done earlier had deleted the bytes before the store was asked.
//
// fn may run several times, as for Update. Errors: Unavailable when a collection deleted bytes, or stays in the way: the
// client pushes them again.
func (s *Service) anchored(ctx context.Context, blobs []digest.Descriptor, fn func(Tx) error) error {
	if len(blobs) == 0 {
		return s.meta.Update(ctx, fn)
	}
	for attempt := 0; ; attempt++ {
		err := s.anchor(ctx, blobs, fn)
		if !errors.Is(err, errInTheWay) {
			return err
		}
		if attempt+1 == anchorAttempts {
			return &Error{Code: Unavailable, Message: "unreferenced content is being deleted: try again", Err: err, RetryAfter: time.Second}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(anchorPause):
		}
	}
}

// anchor tries once. Errors: errInTheWay.
func (s *Service) anchor(ctx context.Context, blobs []digest.Descriptor, fn func(Tx) error) error {
	var before int64
	var stored, beside []digest.Digest // in the BlobStore; beside their rows, where they are safe in a transaction
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		stored, beside = nil, nil
		for _, d := range blobs {
			if d.Size <= smallContent {
				if _, err := tx.StatSmall(d.Digest); err == nil {
					beside = append(beside, d.Digest)
					continue
				} else if !errors.Is(err, ErrBlobUnknown) {
					return err
				}
			}
			stored = append(stored, d.Digest)
		}
		before, err = tx.Pardons()
		return err
	})
	if err != nil {
		return err
	}
	for _, d := range stored {
		switch _, err := s.blobs.Stat(ctx, d); {
		case errors.Is(err, ErrBlobUnknown):
			return &Error{Code: Unavailable, Message: fmt.Sprintf("blob %s was deleted while it was pushed: push it again", d), Err: err, RetryAfter: time.Second}
		case err != nil:
			return err
		}
	}
	return s.meta.Update(ctx, func(tx Tx) error {
		if err := checkAnchors(tx, stored, beside, before); err != nil {
			return err
		}
		return fn(tx)
	})
}

// checkAnchors holds, inside the transaction, that no collection touched the bytes since they were looked at.
func checkAnchors(tx Tx, stored, beside []digest.Digest, before int64) error {
	condemned, err := tx.CondemnedAmong(stored)
	if err != nil {
		return err
	}
	now, err := tx.Pardons()
	if err != nil {
		return err
	}
	if len(condemned) > 0 || now != before {
		return errInTheWay
	}
	for _, d := range beside {
		if _, err := tx.StatSmall(d); errors.Is(err, ErrBlobUnknown) {
			return errInTheWay
		} else if err != nil {
			return err
		}
	}
	return nil
}
