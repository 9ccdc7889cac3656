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
	if err := s.authorize(ctx, p, auth.ReadContent, Owner(repository), repository); err != nil {
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
	if err := s.authorize(ctx, p, auth.DeleteContent, Owner(repository), repository); err != nil {
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
	if err := s.authorizePush(ctx, p, repository); err != nil {
		return false, err
	}
	err = s.meta.Update(ctx, func(tx Tx) error {
		ok = false
		source, err := mountSource(tx, p, from, d)
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
func mountSource(tx Tx, p auth.Principal, from string, d digest.Digest) (digest.Descriptor, error) {
	if from == "" {
		names, err := tx.BlobRepositories(d)
		if err != nil || len(names) == 0 {
			return digest.Descriptor{}, err
		}
		from = names[0]
	}
	if !p.CanIn(auth.ReadContent, Owner(from)) {
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
	if err := s.authorizePush(ctx, p, repository); err != nil {
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

// AppendUpload adds bytes at offset, or at the end when offset is negative, and gives the new size.
// Errors: BlobUploadUnknown, RangeInvalid, TooLarge.
func (s *Service) AppendUpload(ctx context.Context, p auth.Principal, repository, id string, offset int64, r io.Reader) (int64, error) {
	if err := s.findUpload(ctx, p, repository, id); err != nil {
		return 0, err
	}
	if offset < 0 {
		size, err := s.blobs.UploadSize(ctx, id)
		if err != nil {
			return 0, err
		}
		offset = size
	}
	return s.blobs.AppendUpload(ctx, id, offset, r, s.set.MaxBlob)
}

// FinishUpload adds what r still brings and turns the session into a blob of the repository. The 2xx that follows
// means that the bytes are on disk and the row committed. Errors: as AppendUpload, and DigestInvalid.
func (s *Service) FinishUpload(ctx context.Context, p auth.Principal, repository, id string, offset int64, r io.Reader, d digest.Digest) (digest.Descriptor, error) {
	if _, err := s.AppendUpload(ctx, p, repository, id, offset, r); err != nil {
		return digest.Descriptor{}, err
	}
	desc, err := s.blobs.CommitUpload(ctx, id, d)
	if err != nil {
		if mismatch, ok := errors.AsType[*digest.MismatchError](err); ok {
			return desc, Errorf(DigestInvalid, "uploaded content: %w", mismatch)
		}
		return desc, err
	}
	desc.MediaType = "application/octet-stream"
	err = s.meta.Update(ctx, func(tx Tx) error {
		if err := s.ensureRepository(tx, repository); err != nil {
			return err
		}
		if err := tx.LinkBlob(repository, desc, s.now()); err != nil {
			return err
		}
		return tx.DeleteUpload(id)
	})
	return desc, err
}

// CancelUpload ends a session. Errors: BlobUploadUnknown.
func (s *Service) CancelUpload(ctx context.Context, p auth.Principal, repository, id string) error {
	if err := s.findUpload(ctx, p, repository, id); err != nil {
		return err
	}
	return s.dropUpload(ctx, id)
}

// ExpireUploads ends the sessions whose time has passed and frees their bytes. It returns how many there were.
func (s *Service) ExpireUploads(ctx context.Context) (int, error) {
	var expired []Upload
	err := s.meta.View(ctx, func(tx Tx) (err error) {
		expired, err = tx.ExpiredUploads(s.now())
		return err
	})
	for _, u := range expired {
		if err := s.dropUpload(ctx, u.ID); err != nil {
			return 0, err
		}
	}
	return len(expired), err
}

func (s *Service) dropUpload(ctx context.Context, id string) error {
	if err := s.blobs.AbortUpload(ctx, id); err != nil {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error { return tx.DeleteUpload(id) })
}

// findUpload answers BlobUploadUnknown unless the session is the repository's, the caller's, and alive.
func (s *Service) findUpload(ctx context.Context, p auth.Principal, repository, id string) error {
	if err := s.authorizePush(ctx, p, repository); err != nil {
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

// authorizePush checks the name and the right to write there.
func (s *Service) authorizePush(ctx context.Context, p auth.Principal, repository string) error {
	if err := CheckRepositoryName(repository); err != nil {
		return err
	}
	return s.authorize(ctx, p, auth.WriteContent, Owner(repository), repository)
}

func (s *Service) ensureRepository(tx Tx, repository string) error {
	return tx.EnsureRepository(Repository{Name: repository, Owner: Owner(repository), CreatedAt: s.now()})
}
