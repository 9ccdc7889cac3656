package blobstore

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// maxUploadID is the greatest length of an upload id in bytes.
const maxUploadID = 128

// ValidUploadID reports whether id may name an upload session: 1 to 128 ASCII letters, digits, '-' and '_'. It is then
// a plain file name on every system.
func ValidUploadID(id string) bool {
	for i := range len(id) {
		c := id[i] | 0x20
		if (c < 'a' || c > 'z') && (id[i] < '0' || id[i] > '9') && id[i] != '-' && id[i] != '_' {
			return false
		}
	}
	return id != "" && len(id) <= maxUploadID
}

// CreateUpload implements registry.BlobStore. An id that ValidUploadID refuses is Invalid.
func (s *Store) CreateUpload(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !ValidUploadID(id) {
		return registry.Errorf(registry.Invalid, "upload id %.100q is not 1 to %d letters, digits, '-' or '_'", id, maxUploadID)
	}
	err := s.backend.CreateUpload(ctx, id)
	if errors.Is(err, fs.ErrExist) {
		return registry.Errorf(registry.Conflict, "upload %q exists already", id)
	}
	return err
}

// UploadSize implements registry.BlobStore.
func (s *Store) UploadSize(ctx context.Context, id string) (int64, error) {
	if err := checkUpload(ctx, id); err != nil {
		return 0, err
	}
	state, err := s.backend.StatUpload(ctx, id)
	return state.Size, uploadError(id, err)
}

// OpenUpload implements registry.BlobStore.
func (s *Store) OpenUpload(ctx context.Context, id string) (registry.Blob, int64, error) {
	if err := checkUpload(ctx, id); err != nil {
		return nil, 0, err
	}
	blob, size, err := s.backend.OpenUpload(ctx, id)
	return blob, size, uploadError(id, err)
}

// AppendUpload implements registry.BlobStore. With an error it gives the size that the session has, where that is known.
func (s *Store) AppendUpload(ctx context.Context, id string, offset int64, r io.Reader, max int64) (int64, error) {
	if err := checkUpload(ctx, id); err != nil {
		return 0, err
	}
	session, err := s.sessions.acquire(id)
	if err != nil {
		return 0, err
	}
	defer s.sessions.release(id, session)
	staging, state, err := s.backend.AppendUpload(ctx, id)
	if err != nil {
		return 0, uploadError(id, err)
	}
	size := state.Size
	if offset != size {
		err = wrongOffset(id, size, offset)
	} else {
		size, err = session.append(staging, state, &source{ctx: ctx, r: r}, max)
	}
	if closeErr := staging.Close(); err == nil {
		err = closeErr
	}
	switch {
	case err == nil && s.sessions.ended(session), errors.Is(err, fs.ErrNotExist):
		return 0, uploadError(id, fs.ErrNotExist)
	case errors.Is(err, fs.ErrExist):
		return s.overtaken(ctx, id, offset)
	}
	return size, err
}

// overtaken answers an append that another process was ahead of, with the size that the session has now.
func (s *Store) overtaken(ctx context.Context, id string, offset int64) (int64, error) {
	state, err := s.backend.StatUpload(ctx, id)
	if err != nil {
		return 0, uploadError(id, err)
	}
	return state.Size, wrongOffset(id, state.Size, offset)
}

func wrongOffset(id string, size, offset int64) error {
	return registry.Errorf(registry.RangeInvalid, "upload %q holds %d bytes, so the next one has offset %d; found offset %d", id, size, size, offset)
}

// CommitUpload implements registry.BlobStore. The bytes are read again only when the hash that ran while they came is
// not want's algorithm or does not cover them all (after a restart, or after a failed write).
func (s *Store) CommitUpload(ctx context.Context, id string, want digest.Digest) (digest.Descriptor, error) {
	if err := checkUpload(ctx, id); err != nil {
		return digest.Descriptor{}, err
	}
	if want.IsZero() {
		return digest.Descriptor{}, registry.Errorf(registry.DigestInvalid, "the commit of an upload needs a digest")
	}
	session, err := s.sessions.acquire(id)
	if err != nil {
		return digest.Descriptor{}, err
	}
	defer s.sessions.release(id, session)
	got, mark, err := s.digestOf(ctx, id, session, want.Algorithm())
	if err != nil {
		return digest.Descriptor{}, uploadError(id, err)
	}
	if got.Digest != want {
		return digest.Descriptor{}, &digest.MismatchError{Want: want, Got: got.Digest, WantSize: got.Size, GotSize: got.Size}
	}
	if err := s.backend.StoreUpload(ctx, id, got, mark); err != nil {
		return digest.Descriptor{}, uploadError(id, err)
	}
	s.sessions.end(id)
	return got, nil
}

// digestOf is the digest and size of what the session holds, from its running hash where that covers all of it, and the
// mark of what was hashed.
func (s *Store) digestOf(ctx context.Context, id string, session *session, a digest.Algorithm) (digest.Descriptor, string, error) {
	state, err := s.backend.StatUpload(ctx, id)
	if err != nil {
		return digest.Descriptor{}, "", err
	}
	if d, ok := session.digest(a, state); ok {
		return digest.Descriptor{Digest: d, Size: state.Size}, state.Mark, nil
	}
	blob, _, err := s.backend.OpenUpload(ctx, id)
	if err != nil {
		return digest.Descriptor{}, "", err
	}
	h := a.New()
	n, err := io.Copy(h, &source{ctx: ctx, r: blob})
	if err := errors.Join(err, blob.Close()); err != nil {
		return digest.Descriptor{}, "", err
	}
	return digest.Descriptor{Digest: digest.FromHash(a, h), Size: n}, state.Mark, nil
}

// AbortUpload implements registry.BlobStore. An append that runs meanwhile fails with ErrUploadUnknown.
func (s *Store) AbortUpload(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !ValidUploadID(id) {
		return nil
	}
	s.sessions.end(id)
	return s.backend.RemoveUpload(ctx, id)
}

// Uploads implements registry.BlobStore.
func (s *Store) Uploads(ctx context.Context) iter.Seq2[registry.UploadSession, error] {
	return s.backend.Uploads(ctx)
}

// checkUpload refuses what can name no session.
func checkUpload(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !ValidUploadID(id) {
		return uploadError(id, fs.ErrNotExist)
	}
	return nil
}

// uploadError turns a back-end's "not there" into the domain's.
func uploadError(id string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return registry.Errorf(registry.BlobUploadUnknown, "there is no upload %.100q: it was finished, aborted, has expired, or never was", id)
	}
	return err
}
