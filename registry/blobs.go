package registry

import (
	"context"
	"errors"
	"io"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// StatBlob says how large a blob of the repository is. Errors: Unauthorized, Denied, BlobUnknown.
func (s *Service) StatBlob(ctx context.Context, p auth.Principal, repository string, d digest.Digest) (digest.Descriptor, error) {
	if err := s.mayRead(ctx, p, repository); err != nil {
		return digest.Descriptor{}, err
	}
	var desc digest.Descriptor
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		desc, err = tx.LinkedBlob(repository, d)
		return err
	})
	return desc, err
}

// OpenBlob opens a blob of the repository; the caller closes it. Errors as StatBlob.
func (s *Service) OpenBlob(ctx context.Context, p auth.Principal, repository string, d digest.Digest) (Blob, digest.Descriptor, error) {
	desc, err := s.StatBlob(ctx, p, repository, d)
	if err != nil {
		return nil, desc, err
	}
	b, _, err := s.blobs.Open(ctx, d)
	return b, desc, err
}

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
			return Errorf(Unsupported, "blob %s is named by %d manifests of %s; delete these first", d, n, repository)
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
	err = s.meta.Update(ctx, func(tx Tx) error {
		ok = false
		source, err := s.mountSource(tx, p, from, d)
		if err != nil || source.Digest.IsZero() {
			return err
		}
		if err := s.ensureRepository(tx, repository); err != nil {
			return err
		}
		ok = true
		return tx.LinkBlob(repository, source, s.now())
	})
	return ok, err
}

// mountSource finds the blob in from, or anywhere; a zero descriptor means it is nowhere the caller may read.
func (s *Service) mountSource(tx Tx, p auth.Principal, from string, d digest.Digest) (digest.Descriptor, error) {
	if from == "" {
		names, err := tx.BlobRepositories(d)
		if err != nil || len(names) == 0 {
			return digest.Descriptor{}, err
		}
		from = names[0]
	}
	if !s.canRead(p, from) {
		return digest.Descriptor{}, nil
	}
	desc, err := tx.LinkedBlob(from, d)
	if errors.Is(err, ErrBlobUnknown) {
		return digest.Descriptor{}, nil
	}
	return desc, err
}

// StartUpload opens an upload session that lives for Settings.UploadTTL.
func (s *Service) StartUpload(ctx context.Context, p auth.Principal, repository string) (Upload, error) {
	if err := s.mayWrite(ctx, p, repository); err != nil {
		return Upload{}, err
	}
	u := Upload{ID: randomHex(16), Repository: repository, Account: p.Account, StartedAt: s.now(), ExpiresAt: s.now().Add(s.set.UploadTTL)}
	if err := s.blobs.CreateUpload(ctx, u.ID); err != nil {
		return Upload{}, err
	}
	err := s.meta.Update(ctx, func(tx Tx) error { return tx.InsertUpload(u) })
	return u, err
}

// UploadStatus is how many bytes a session holds. Errors: BlobUploadUnknown.
func (s *Service) UploadStatus(ctx context.Context, p auth.Principal, repository, id string) (int64, error) {
	if err := s.findUpload(ctx, p, repository, id); err != nil {
		return 0, err
	}
	return s.blobs.UploadSize(ctx, id)
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
	if err := s.findUpload(ctx, p, repository, id); err != nil {
		return 0, err
	}
	if c.Offset < 0 {
		size, err := s.blobs.UploadSize(ctx, id)
		if err != nil {
			return 0, err
		}
		c.Offset = size
	}
	return s.blobs.AppendUpload(ctx, id, c.Offset, c.Body, s.set.MaxBlob)
}

// FinishUpload adds the last chunk, which may be empty, and turns the session into a blob of the repository. The 2xx
// that follows means that the bytes are on disk and the row committed. A body that brings the whole blob never touches
// the session, so that a client whose connection broke may send it again. Errors: as AppendUpload, and DigestInvalid.
func (s *Service) FinishUpload(ctx context.Context, p auth.Principal, repository, id string, c Chunk, d digest.Digest) (digest.Descriptor, error) {
	if err := s.findUpload(ctx, p, repository, id); err != nil {
		return digest.Descriptor{}, err
	}
	held, err := s.blobs.UploadSize(ctx, id)
	if err != nil {
		return digest.Descriptor{}, err
	}
	if held == 0 && c.Offset <= 0 && c.Size >= 0 {
		desc, err := s.storeBlob(ctx, digest.Descriptor{Digest: d, Size: c.Size}, c.Body)
		if err == nil {
			err = s.linkBlob(ctx, repository, desc, id)
		}
		if err == nil {
			s.abandon(ctx, id)
		}
		return desc, err
	}
	desc, err := s.commitUpload(ctx, id, held, c, d)
	if err != nil {
		return desc, err
	}
	return desc, s.linkBlob(ctx, repository, desc, id)
}

// commitUpload adds the last chunk to a session that holds bytes, and ends it.
func (s *Service) commitUpload(ctx context.Context, id string, held int64, c Chunk, d digest.Digest) (digest.Descriptor, error) {
	if c.Offset < 0 {
		c.Offset = held
	}
	if _, err := s.blobs.AppendUpload(ctx, id, c.Offset, c.Body, s.set.MaxBlob); err != nil {
		return digest.Descriptor{}, err
	}
	desc, err := s.blobs.CommitUpload(ctx, id, d)
	desc.MediaType = blobMediaType
	return desc, uploadMismatch(err)
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
			err = errors.Join(err, s.dropUpload(context.WithoutCancel(ctx), u.ID))
		}
		return desc, err
	}
	if err := s.mayWrite(ctx, p, repository); err != nil {
		return digest.Descriptor{}, err
	}
	desc, err := s.storeBlob(ctx, digest.Descriptor{Digest: d, Size: c.Size}, c.Body)
	if err != nil {
		return desc, err
	}
	return desc, s.linkBlob(ctx, repository, desc, "")
}

// blobMediaType is what a blob is known as; only manifests say what theirs are.
const blobMediaType = "application/octet-stream"

// storeBlob stores bytes whose digest and size the sender said beforehand.
func (s *Service) storeBlob(ctx context.Context, want digest.Descriptor, r io.Reader) (digest.Descriptor, error) {
	if want.Size > s.set.MaxBlob {
		return want, Errorf(TooLarge, "the blob has %d bytes, at most %d are allowed", want.Size, s.set.MaxBlob)
	}
	want.MediaType = blobMediaType
	return want, uploadMismatch(s.blobs.Put(ctx, want, r))
}

// linkBlob makes a stored blob one of the repository and ends the session it came by, if any.
func (s *Service) linkBlob(ctx context.Context, repository string, desc digest.Descriptor, upload string) error {
	return s.meta.Update(ctx, func(tx Tx) error {
		if err := s.ensureRepository(tx, repository); err != nil {
			return err
		}
		if err := tx.LinkBlob(repository, desc, s.now()); err != nil || upload == "" {
			return err
		}
		return tx.DeleteUpload(upload)
	})
}

// uploadMismatch is the client's error when the bytes are not those of the digest.
func uploadMismatch(err error) error {
	if mismatch, ok := errors.AsType[*digest.MismatchError](err); ok {
		return Errorf(DigestInvalid, "uploaded content: %w", mismatch)
	}
	return err
}

// CancelUpload ends a session. Errors: BlobUploadUnknown.
func (s *Service) CancelUpload(ctx context.Context, p auth.Principal, repository, id string) error {
	if err := s.findUpload(ctx, p, repository, id); err != nil {
		return err
	}
	return s.dropUpload(ctx, id)
}

func (s *Service) dropUpload(ctx context.Context, id string) error {
	if err := s.blobs.AbortUpload(ctx, id); err != nil {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error { return tx.DeleteUpload(id) })
}

// findUpload answers BlobUploadUnknown unless the session is the repository's, the caller's, and alive.
func (s *Service) findUpload(ctx context.Context, p auth.Principal, repository, id string) error {
	if err := s.mayWrite(ctx, p, repository); err != nil {
		return err
	}
	return s.meta.View(ctx, func(tx Tx) error {
		u, err := tx.Upload(id)
		if err != nil {
			return err
		}
		if u.Repository != repository || u.Account != p.Account || s.now().After(u.ExpiresAt) {
			return ErrUploadUnknown
		}
		return nil
	})
}

func (s *Service) ensureRepository(tx Tx, repository string) error {
	return tx.EnsureRepository(Repository{Name: repository, Owner: Owner(repository), CreatedAt: s.now()})
}
