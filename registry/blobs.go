package registry

import (
	"context"
	"errors"
	"io"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// StatBlob says how large a blob of the repository is. A client that hears of a blob does not push it again, so one whose
// bytes were set aside as damaged is not there. Errors: Unauthorized, Denied, BlobUnknown, RevokedVersion.
func (s *Service) StatBlob(ctx context.Context, p auth.Principal, repository string, d digest.Digest) (digest.Descriptor, error) {
	if err := s.mayReadBlob(ctx, p, repository, d); err != nil {
		return digest.Descriptor{}, err
	}
	desc, err := s.readableBlob(ctx, p, repository, d)
	if err != nil {
		return desc, err
	}
	if err := s.hasContent(ctx, desc); err != nil {
		return desc, err
	}
	return desc, s.keepYoung(ctx, repository, d)
}

// OpenBlob opens a blob of the repository; the caller closes it. Errors as StatBlob.
func (s *Service) OpenBlob(ctx context.Context, p auth.Principal, repository string, d digest.Digest) (Blob, digest.Descriptor, error) {
	if err := s.mayReadBlob(ctx, p, repository, d); err != nil {
		return nil, digest.Descriptor{}, err
	}
	desc, err := s.readableBlob(ctx, p, repository, d)
	if err != nil {
		return nil, desc, err
	}
	b, err := s.openContent(ctx, desc)
	return b, desc, err
}

// readableBlob finds what the repository has under a digest, for whoever may read the repository. Errors: BlobUnknown;
// RevokedVersion for the archive of a version that was revoked, unless the caller may read everything.
func (s *Service) readableBlob(ctx context.Context, p auth.Principal, repository string, d digest.Digest) (digest.Descriptor, error) {
	held, err := cached(ctx, s, rowKey{blobRow, repository, d.String()}, heldSize, func(tx Tx) (HeldBlob, error) {
		return tx.HeldBlob(repository, d)
	})
	if err == nil && held.Revoked != "" && !p.Can(auth.ReadPrivate) {
		err = revokedContent(held.Revoked, held.Reason)
	}
	return held.Descriptor, err
}

// heldSize is about what a blob's row takes in memory.
func heldSize(b HeldBlob) int { return 192 + len(b.MediaType) + len(b.Revoked) + len(b.Reason) }

// DeleteBlob takes a blob out of the repository. Blobs that a manifest of the repository names stay: what was
// answered 2xx must remain pullable. Errors: BlobUnknown, Unsupported.
func (s *Service) DeleteBlob(ctx context.Context, p auth.Principal, repository string, d digest.Digest) error {
	if err := s.mayDelete(ctx, p, repository); err != nil {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error {
		if _, err := tx.LinkedBlob(repository, d); err != nil {
			return err
		}
		n, err := tx.BlobReferences(repository, d)
		if err != nil {
			return err
		}
		if n > 0 {
			return Errorf(Unsupported, "blob %s is named by %d manifests of %s, or files of versions that are not sealed yet; delete these first, or wait until the files expire", d, n, repository)
		}
		if err := tx.UnlinkBlob(repository, d); err != nil {
			return err
		}
		return s.audit(tx, p, "blob.delete", repository+"@"+d.String(), "")
	})
}

// MountBlob links a blob that another repository holds. from may be empty: then any repository that the caller may
// read will do. ok is false when there is nothing to mount, and the caller starts an upload instead.
func (s *Service) MountBlob(ctx context.Context, p auth.Principal, repository, from string, d digest.Digest) (ok bool, err error) {
	if err := s.mayWrite(ctx, p, repository); err != nil {
		return false, err
	}
	// Whether there is anything to mount is told before the bytes are looked for: what only others hold takes as long as what
	// nobody does.
	err = s.meta.View(ctx, func(tx Tx) error {
		source, err := s.mountSource(tx, p, from, d)
		ok = !source.Digest.IsZero()
		return err
	})
	if err != nil || !ok {
		return false, err
	}
	if there, err := s.stored(ctx, d); err != nil || !there {
		return false, err
	}
	err = s.meta.Update(ctx, s.charged(repository, func(tx Tx) error {
		ok = false
		source, err := s.mountSource(tx, p, from, d)
		if err != nil || source.Digest.IsZero() {
			return err
		}
		if err := s.ensureRepository(tx, repository); err != nil {
			return err
		}
		if err := tx.LinkBlob(repository, source, s.now()); err != nil {
			return err
		}
		ok = true
		return s.audit(tx, p, "blob.mount", repository+"@"+d.String(), from)
	}))
	return ok, err
}

// mountSource finds the blob in from, or anywhere; a zero descriptor means it is nowhere the caller may read.
func (s *Service) mountSource(tx Tx, p auth.Principal, from string, d digest.Digest) (digest.Descriptor, error) {
	if from == "" {
		return s.mountAnywhere(tx, p, d)
	}
	if ok, err := s.canMountFrom(tx, p, from); !ok || err != nil {
		return digest.Descriptor{}, err
	}
	return mountable(tx, p, from, d)
}

// mountable is a blob of a repository that the caller may read, zero when it is not there or withheld.
func mountable(tx Tx, p auth.Principal, repository string, d digest.Digest) (digest.Descriptor, error) {
	held, err := tx.HeldBlob(repository, d)
	if errors.Is(err, ErrBlobUnknown) || err == nil && held.Revoked != "" && !p.Can(auth.ReadPrivate) {
		return digest.Descriptor{}, nil
	}
	return held.Descriptor, err
}

// mountAnywhere finds the blob in the first repository that the caller may read.
func (s *Service) mountAnywhere(tx Tx, p auth.Principal, d digest.Digest) (digest.Descriptor, error) {
	names, err := tx.BlobRepositories(d)
	if err != nil {
		return digest.Descriptor{}, err
	}
	for _, name := range names {
		if ok, err := s.canMountFrom(tx, p, name); err != nil {
			return digest.Descriptor{}, err
		} else if ok {
			if desc, err := mountable(tx, p, name, d); err != nil || !desc.Digest.IsZero() {
				return desc, err
			}
		}
	}
	return digest.Descriptor{}, nil
}

// StartUpload begins an upload that lives for Settings.UploadTTL. It costs nothing until bytes come.
func (s *Service) StartUpload(ctx context.Context, p auth.Principal, repository string) (Upload, error) {
	if err := s.mayWrite(ctx, p, repository); err != nil {
		return Upload{}, err
	}
	if _, err := s.checkRoom(ctx, repository, digest.Digest{}, -1); err != nil {
		return Upload{}, err
	}
	return s.newUpload(repository, p.Account), nil
}

// UploadStatus is how many bytes an upload holds. Errors: BlobUploadUnknown.
func (s *Service) UploadStatus(ctx context.Context, p auth.Principal, repository, id string) (int64, error) {
	u, err := s.findUpload(ctx, p, repository, id)
	if err != nil {
		return 0, err
	}
	size, _, err := s.uploadSize(ctx, u)
	return size, err
}

// Chunk is a piece of an upload.
type Chunk struct {
	Offset int64     // the place of its first byte; negative: behind what the session holds
	Size   int64     // in bytes; negative when the sender did not say
	Body   io.Reader // ends with io.EOF after Size bytes
}

// AppendUpload adds a chunk and gives the new size. When the body fails, what came of it stays.
// Errors: BlobUploadUnknown, RangeInvalid, TooLarge.
func (s *Service) AppendUpload(ctx context.Context, p auth.Principal, repository, id string, c Chunk) (int64, error) {
	u, err := s.findUpload(ctx, p, repository, id)
	if err != nil {
		return 0, err
	}
	held, began, err := s.uploadSize(ctx, u)
	if err != nil {
		return 0, err
	}
	if c.Offset < 0 {
		c.Offset = held
	}
	room, err := s.checkRoom(ctx, repository, digest.Digest{}, held+max(c.Size, 1))
	if err != nil {
		return held, err
	}
	return s.appendUpload(ctx, u, c, began, room)
}

// FinishUpload adds the last chunk, which may be empty, and turns the upload into a blob of the repository. The 2xx that
// follows means that the bytes are on disk and the row committed. A body that brings the whole blob never makes a session,
// so that a client whose connection broke may send it again. Errors: as AppendUpload, and DigestInvalid.
func (s *Service) FinishUpload(ctx context.Context, p auth.Principal, repository, id string, c Chunk, d digest.Digest) (digest.Descriptor, error) {
	find, later := s.findUpload, c.Size > 0 && c.Size <= smallContent
	if later {
		find = s.ownUpload // linkBlob asks whether it is open, and keeps nothing else
	}
	u, err := find(ctx, p, repository, id)
	if err != nil {
		return digest.Descriptor{}, err
	}
	held, began, err := s.uploadSize(ctx, u)
	if err != nil {
		return digest.Descriptor{}, err
	}
	room, err := s.checkRoom(ctx, repository, d, held+max(c.Size, 0))
	if err != nil {
		return digest.Descriptor{}, err
	}
	whole := held == 0 && c.Offset <= 0 && c.Size >= 0
	if later && !whole {
		if err := s.meta.View(ctx, func(tx Tx) error { return stillOpen(tx, u) }); err != nil {
			return digest.Descriptor{}, err
		}
	}
	if !began && (c.Size == 0 || c.Offset > 0) {
		switch got, err := s.storedBefore(ctx, u, d); {
		case err != nil:
			return got, err
		case !got.Digest.IsZero():
			return got, s.linkStored(ctx, p, repository, got, u)
		}
	}
	var got content
	if whole {
		got, err = s.takeBlob(ctx, digest.Descriptor{Digest: d, Size: c.Size}, c.Body)
	} else {
		if c.Offset < 0 {
			c.Offset = held
		}
		got, err = s.commitUpload(ctx, u, c, began, room, d)
	}
	if err != nil {
		return got.Descriptor, err
	}
	err = s.linkBlob(ctx, p, repository, got, &u)
	switch {
	case err == nil && whole && began:
		s.abandon(ctx, u.received())
	case err != nil && !whole && CodeOf(err) != Denied:
		s.rememberStored(ctx, u, d)
	}
	return got.Descriptor, err
}

// commitUpload adds the last chunk to a session and makes a blob of it.
func (s *Service) commitUpload(ctx context.Context, u Upload, c Chunk, began bool, room int64, d digest.Digest) (content, error) {
	if _, err := s.appendUpload(ctx, u, c, began, room); err != nil {
		return content{}, err
	}
	desc, err := s.blobs.CommitUpload(ctx, u.session(), d)
	desc.MediaType = blobMediaType
	return content{Descriptor: desc}, uploadMismatch(err)
}

// PutBlob stores a whole blob at once. Errors: TooLarge, DigestInvalid.
func (s *Service) PutBlob(ctx context.Context, p auth.Principal, repository string, d digest.Digest, c Chunk) (digest.Descriptor, error) {
	if c.Size < 0 {
		u, err := s.StartUpload(ctx, p, repository)
		if err != nil {
			return digest.Descriptor{}, err
		}
		desc, err := s.FinishUpload(ctx, p, repository, u.ID, c, d)
		if err != nil {
			s.abandon(ctx, u.received())
			s.forgetStored(ctx, u, d)
		}
		return desc, err
	}
	if err := s.mayWrite(ctx, p, repository); err != nil {
		return digest.Descriptor{}, err
	}
	if _, err := s.checkRoom(ctx, repository, d, c.Size); err != nil {
		return digest.Descriptor{}, err
	}
	got, err := s.takeBlob(ctx, digest.Descriptor{Digest: d, Size: c.Size}, c.Body)
	if err != nil {
		return got.Descriptor, err
	}
	return got.Descriptor, s.linkBlob(ctx, p, repository, got, nil)
}

// blobMediaType is what a blob is known as; only manifests say what theirs are.
const blobMediaType = "application/octet-stream"

// takeBlob takes bytes whose digest and size the sender said beforehand.
func (s *Service) takeBlob(ctx context.Context, want digest.Descriptor, r io.Reader) (content, error) {
	if want.Size > s.set.MaxBlob {
		return content{}, Errorf(TooLarge, "the blob has %d bytes, at most %d are allowed", want.Size, s.set.MaxBlob)
	}
	want.MediaType = blobMediaType
	got, err := s.take(ctx, want, r)
	return got, uploadMismatch(err)
}

// linkBlob makes a blob one of the repository and closes the upload it came by, if any.
func (s *Service) linkBlob(ctx context.Context, p auth.Principal, repository string, blob content, u *Upload) error {
	return s.commitContent(ctx, []content{blob}, s.charged(repository, func(tx Tx) error {
		if u != nil {
			if err := stillOpen(tx, *u); err != nil {
				return err
			}
		}
		if err := s.ensureRepository(tx, repository); err != nil {
			return err
		}
		if err := tx.LinkBlob(repository, blob.Descriptor, s.now()); err != nil {
			return err
		}
		if err := s.audit(tx, p, "blob.push", repository+"@"+blob.Digest.String(), ""); err != nil || u == nil {
			return err
		}
		return tx.CloseUpload(u.session(), u.ExpiresAt)
	}))
}

// uploadMismatch is the client's error when the bytes are not those of the digest.
func uploadMismatch(err error) error {
	if mismatch, ok := errors.AsType[*digest.MismatchError](err); ok {
		return Errorf(DigestInvalid, "uploaded content: %w", mismatch)
	}
	return err
}

// CancelUpload ends an upload. Errors: BlobUploadUnknown.
func (s *Service) CancelUpload(ctx context.Context, p auth.Principal, repository, id string) error {
	u, err := s.findUpload(ctx, p, repository, id)
	if err != nil {
		return err
	}
	return s.closeUpload(ctx, u, func(tx Tx) error { return s.audit(tx, p, "upload.cancel", repository, u.session()) })
}

func (s *Service) ensureRepository(tx Tx, repository string) error {
	if _, err := tx.Repository(repository); !errors.Is(err, ErrNameUnknown) {
		return err // it is there
	}
	owner, err := ownerOf(tx, repository)
	if err != nil {
		return err
	}
	return tx.EnsureRepository(Repository{Name: repository, Owner: owner, CreatedAt: s.now()})
}
