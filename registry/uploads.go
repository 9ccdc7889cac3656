package registry

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// The id of an upload says all about it: when it began, and by its signature for which repository and account. So starting
// one writes nothing, ten thousand open ones cost nothing, and any replica takes the next chunk. The store's session begins
// with the first byte that is appended; an upload that was finished or cancelled is remembered as closed until it would have
// expired.
//
//	8 hex digits of the second in which it began, 24 at random, 32 of the signature
//
// The second comes first so that what is remembered of uploads that ended together lies together.
const (
	uploadStart     = 8
	uploadRandom    = 12 // bytes
	uploadSession   = uploadStart + 2*uploadRandom
	uploadSignature = 16 // bytes of HMAC-SHA256
	uploadID        = uploadSession + 2*uploadSignature
)

// Upload is an upload in progress, as its id tells it.
type Upload struct {
	ID         string
	Repository string
	Account    string
	ExpiresAt  time.Time
}

// session is what the upload is called in the BlobStore and among the closed ones.
func (u Upload) session() string { return u.ID[:uploadSession] }

// received is the upload's session as something that was received.
func (u Upload) received() received { return received{session: u.session()} }

// newSession names a session of the BlobStore that begins now: the unsigned part of an id.
func newSession(now time.Time) string {
	return fmt.Sprintf("%08x", uint32(now.Unix())) + randomHex(uploadRandom)
}

// sessionStart is when a session began, to the second. ok is false for what newSession did not name.
func sessionStart(session string) (start time.Time, ok bool) {
	if len(session) != uploadSession {
		return start, false
	}
	seconds, err := strconv.ParseUint(session[:uploadStart], 16, 32)
	return time.Unix(int64(seconds), 0), err == nil
}

// uploadKeySetting is where the store keeps the key of upload ids, which all replicas share.
const uploadKeySetting = "upload-key"

// newUpload makes an upload that lives for Settings.UploadTTL.
func (s *Service) newUpload(repository, account string) Upload {
	now := s.now()
	id := newSession(now)
	return Upload{ID: id + s.signUpload(id, repository, account), Repository: repository, Account: account, ExpiresAt: now.Add(s.set.UploadTTL)}
}

// signUpload binds the unsigned part of an id to who may use it, and where.
func (s *Service) signUpload(unsigned, repository, account string) string {
	mac := hmac.New(sha256.New, s.uploadKey)
	for _, part := range []string{"upload", unsigned, repository, account} { // none of them holds a NUL
		mac.Write([]byte(part))
		mac.Write([]byte{0})
	}
	return hex.EncodeToString(mac.Sum(nil)[:uploadSignature])
}

// readUpload takes an id apart. ok is false when it was not made for the repository and the account, or has expired.
func (s *Service) readUpload(id, repository, account string) (u Upload, ok bool) {
	if len(id) != uploadID {
		return u, false
	}
	unsigned, signature := id[:uploadSession], id[uploadSession:]
	if !hmac.Equal([]byte(signature), []byte(s.signUpload(unsigned, repository, account))) {
		return u, false
	}
	start, ok := sessionStart(unsigned)
	if !ok {
		return u, false
	}
	u = Upload{ID: id, Repository: repository, Account: account, ExpiresAt: start.Add(s.set.UploadTTL)}
	return u, s.now().Before(u.ExpiresAt)
}

// findUpload answers BlobUploadUnknown unless the upload is the repository's, the caller's, and alive.
func (s *Service) findUpload(ctx context.Context, p auth.Principal, repository, id string) (Upload, error) {
	u, err := s.ownUpload(ctx, p, repository, id)
	if err != nil {
		return u, err
	}
	return u, s.meta.View(ctx, func(tx Tx) error { return stillOpen(tx, u) })
}

// ownUpload is findUpload without the question whether the upload was closed.
func (s *Service) ownUpload(ctx context.Context, p auth.Principal, repository, id string) (Upload, error) {
	if err := s.mayWrite(ctx, p, repository); err != nil {
		return Upload{}, err
	}
	u, ok := s.readUpload(id, repository, p.Account)
	if !ok {
		return u, noUpload(id)
	}
	return u, nil
}

// stillOpen answers BlobUploadUnknown when the upload was closed.
func stillOpen(tx Tx, u Upload) error {
	closed, err := tx.UploadClosed(u.session())
	if err == nil && closed {
		err = noUpload(u.ID)
	}
	return err
}

func noUpload(id string) error {
	return Errorf(BlobUploadUnknown, "there is no upload %.100q here: it was finished, cancelled, has expired, or never was", id)
}

// uploadSize is how many bytes the upload holds: none before its session begins.
func (s *Service) uploadSize(ctx context.Context, u Upload) (size int64, began bool, err error) {
	size, err = s.blobs.UploadSize(ctx, u.session())
	if errors.Is(err, ErrUploadUnknown) {
		return 0, false, nil
	}
	return size, err == nil, err
}

// appendUpload adds a chunk, whose Offset is known, to the session and begins that where it is needed. The session gets no
// larger than room: a sender that does not say how much comes fills no more of the store than its owner may hold.
func (s *Service) appendUpload(ctx context.Context, u Upload, c Chunk, began bool, room int64) (int64, error) {
	if !began {
		if c.Offset > 0 {
			return 0, Errorf(RangeInvalid, "the upload holds no bytes, so the next one has offset 0; found offset %d", c.Offset)
		}
		if err := s.blobs.CreateUpload(ctx, u.session()); err != nil && CodeOf(err) != Conflict {
			return 0, err
		}
	}
	size, err := s.blobs.AppendUpload(ctx, u.session(), c.Offset, c.Body, room)
	if room < s.set.MaxBlob && CodeOf(err) == TooLarge {
		if _, full := s.checkRoom(ctx, u.Repository, digest.Digest{}, room+1); full != nil {
			err = full // the quota is what was in the way
		}
	}
	return size, err
}

// closeUpload ends an upload for good, and has it recorded.
func (s *Service) closeUpload(ctx context.Context, u Upload, record func(Tx) error) error {
	if err := s.blobs.AbortUpload(ctx, u.session()); err != nil {
		return err
	}
	return s.meta.Update(ctx, func(tx Tx) error {
		if err := tx.CloseUpload(u.session(), u.ExpiresAt); err != nil {
			return err
		}
		return record(tx)
	})
}

// A session ends when its bytes become a blob, before the row that names them. When the row then fails, since the database is
// away or the registry read-only, the client repeats its request and brings nothing. So an empty session beside it remembers
// that this very upload brought the blob; nobody else's request may ever make it.

// storedMark names that session. ok is false for a digest that makes no name of a session.
func storedMark(u Upload, d digest.Digest) (mark string, ok bool) {
	return u.session() + "-" + d.Hex(), d.Algorithm() == digest.SHA256
}

func (s *Service) rememberStored(ctx context.Context, u Upload, d digest.Digest) {
	mark, ok := storedMark(u, d)
	if !ok {
		return
	}
	if err := s.blobs.CreateUpload(context.WithoutCancel(ctx), mark); err != nil && CodeOf(err) != Conflict {
		s.log.WarnContext(ctx, "an upload can't be finished again: it has to begin anew", "upload", u.session(), "err", err)
	}
}

// storedBefore is the blob that the upload brought by an earlier request whose row failed; zero when there was none.
func (s *Service) storedBefore(ctx context.Context, u Upload, d digest.Digest) (digest.Descriptor, error) {
	mark, ok := storedMark(u, d)
	if !ok {
		return digest.Descriptor{}, nil
	}
	_, err := s.blobs.UploadSize(ctx, mark)
	if errors.Is(err, ErrUploadUnknown) {
		return digest.Descriptor{}, nil
	}
	if err != nil {
		return digest.Descriptor{}, err
	}
	size, err := s.blobs.Stat(ctx, d)
	if errors.Is(err, ErrBlobUnknown) {
		return digest.Descriptor{}, nil // collected meanwhile
	}
	return digest.Descriptor{Digest: d, Size: size, MediaType: blobMediaType}, err
}

// linkStored does for what storedBefore found what remained to be done.
func (s *Service) linkStored(ctx context.Context, p auth.Principal, repository string, d digest.Descriptor, u Upload) error {
	if err := s.linkBlob(ctx, p, repository, content{Descriptor: d}, &u); err != nil {
		return err
	}
	s.forgetStored(ctx, u, d.Digest)
	return nil
}

func (s *Service) forgetStored(ctx context.Context, u Upload, d digest.Digest) {
	if mark, ok := storedMark(u, d); ok {
		s.abandon(ctx, received{session: mark})
	}
}
