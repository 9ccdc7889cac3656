// Package blobstore is the verified blob store. A Store stands above every back-end and is the only place where bytes
// are compared with their digest and size: a Backend moves bytes and never hashes, and nothing else may hand bytes to
// a Backend. So every blob that a Store gives was checked when it was stored.
//
// What a Store promises, whatever the back-end:
//   - Put and CommitUpload are atomic: a blob is wholly there or wholly absent, at any step, for any reader.
//   - What Put, AppendUpload and CommitUpload acknowledged is durable (file and folder are synced).
//   - What fails leaves nothing behind, except that an upload session keeps the bytes that came before its reader failed.
//   - Memory is a few buffers a call, however large the blob; an upload session that is open costs one running hash.
package blobstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Backend keeps blobs and upload sessions by names that the Store has checked: digests are never zero, upload ids
// match ValidUploadID. What is absent is reported with an error that wraps fs.ErrNotExist. A full disk is an
// *registry.Error of Code Unavailable. All methods are safe for concurrent use.
type Backend interface {
	Stat(ctx context.Context, d digest.Digest) (int64, error)
	Open(ctx context.Context, d digest.Digest) (registry.Blob, int64, error)
	// Put stores what r gives under want.Digest, atomically and durably, replacing what is there. r ends with io.EOF
	// only when it gave exactly want's bytes; when it ends in any other way nothing may be left.
	Put(ctx context.Context, want digest.Descriptor, r io.Reader) error
	// Settle makes a blob that is visible durable, as its Put may be on its way or a process may have died in it, and
	// makes it as young as a new one to All.
	Settle(ctx context.Context, d digest.Digest) error
	// Delete and RemoveUpload remove what may be absent.
	Delete(ctx context.Context, d digest.Digest) error
	All(ctx context.Context) iter.Seq2[registry.StoredBlob, error]
	Quarantine(ctx context.Context, d digest.Digest) error

	// CreateUpload fails with an error that wraps fs.ErrExist when the id is taken.
	CreateUpload(ctx context.Context, id string) error
	StatUpload(ctx context.Context, id string) (UploadState, error)
	OpenUpload(ctx context.Context, id string) (registry.Blob, int64, error)
	// AppendUpload opens a session for writing at its end and gives its state. The Store of one process opens one at a
	// time; where several processes share the back-end, Sync decides who was first.
	AppendUpload(ctx context.Context, id string) (Staging, UploadState, error)
	// StoreUpload makes the session's bytes, which the Store has verified, the blob d, atomically and durably, and
	// ends the session. Errors: Conflict when mark is no longer the session's.
	StoreUpload(ctx context.Context, id string, d digest.Descriptor, mark string) error
	RemoveUpload(ctx context.Context, id string) error
	Uploads(ctx context.Context) iter.Seq2[registry.UploadSession, error]

	Close() error
}

// UploadState is what an upload session holds.
type UploadState struct {
	Size int64
	// Mark names the very bytes, where more than one process writes to the back-end: the same mark means the same bytes.
	// It is "" for an empty session, and always in a back-end that one process has for itself.
	Mark string
}

// Staging is an upload session that is open for writing at its end. Errors may come late, at the latest with Sync.
type Staging interface {
	io.WriteCloser
	// Truncate takes back what was written and not synced: size is what the session held when it was opened.
	Truncate(size int64) error
	// Sync makes what was written, and the session itself, durable, and gives the session's new mark. An error that wraps
	// fs.ErrExist says that another process appended at this place first, one that wraps fs.ErrNotExist that another
	// ended the session; nothing of ours then stays. It is called once.
	Sync() (mark string, err error)
}

// Store is a registry.BlobStore over a Backend.
type Store struct {
	backend  Backend
	sessions sessions
}

var _ registry.BlobStore = (*Store)(nil)

// New makes the verified store above b. Close closes b too.
func New(b Backend) *Store {
	return &Store{backend: b, sessions: sessions{open: map[string]*session{}}}
}

// Close closes the back-end. Upload sessions stay for the next process.
func (s *Store) Close() error { return s.backend.Close() }

// Stat implements registry.BlobStore.
func (s *Store) Stat(ctx context.Context, d digest.Digest) (int64, error) {
	if err := checkBlob(ctx, d); err != nil {
		return 0, err
	}
	size, err := s.backend.Stat(ctx, d)
	return size, blobError(d, err)
}

// Open implements registry.BlobStore.
func (s *Store) Open(ctx context.Context, d digest.Digest) (registry.Blob, int64, error) {
	if err := checkBlob(ctx, d); err != nil {
		return nil, 0, err
	}
	blob, size, err := s.backend.Open(ctx, d)
	return blob, size, blobError(d, err)
}

// Unchecked is a Backend on a medium that does not itself notice when bytes change, and where reading costs little. A Put of
// what is there then compares the two: whoever is told that a blob is stored must not get it from bytes that are damaged.
type Unchecked interface {
	Backend
	Unchecked()
}

// Put implements registry.BlobStore. The bytes of a blob that is already there are verified, not written. Where those that are
// there turn out to be damaged they are set aside, and the Put fails with Unavailable: the next one stores good ones.
func (s *Store) Put(ctx context.Context, want digest.Descriptor, r io.Reader) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if want.Digest.IsZero() {
		return registry.Errorf(registry.DigestInvalid, "a blob needs a digest")
	}
	verified := digest.NewReader(&source{ctx: ctx, r: r}, want)
	if size, err := s.backend.Stat(ctx, want.Digest); err == nil && size == want.Size {
		if err := s.putAgain(ctx, want.Digest, verified); err != nil {
			return err
		}
		return removedMeanwhile(want.Digest, s.backend.Settle(ctx, want.Digest))
	}
	return removedMeanwhile(want.Digest, s.backend.Put(ctx, want, verified))
}

// putAgain reads what is put in the place of a blob of the same size.
func (s *Store) putAgain(ctx context.Context, d digest.Digest, verified io.Reader) error {
	if _, unchecked := s.backend.(Unchecked); !unchecked {
		_, err := io.Copy(io.Discard, verified)
		return err
	}
	old, _, err := s.backend.Open(ctx, d)
	if err != nil {
		return removedMeanwhile(d, err)
	}
	same, err := alike(verified, old)
	if err := errors.Join(err, old.Close()); err != nil || same {
		return err
	}
	if err := s.backend.Quarantine(ctx, d); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return &registry.Error{Code: registry.Unavailable, RetryAfter: time.Second,
		Message: fmt.Sprintf("the store held damaged bytes as blob %s, which are set aside now: store it again", d)}
}

// alike reads good to its end and reports whether old gives the same bytes.
func alike(good, old io.Reader) (bool, error) {
	same, ours, theirs := true, make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := good.Read(ours)
		if same && n > 0 {
			_, short := io.ReadFull(old, theirs[:n])
			same = short == nil && bytes.Equal(ours[:n], theirs[:n])
		}
		if err == io.EOF {
			return same, nil
		}
		if err != nil {
			return same, err
		}
	}
}

// Delete implements registry.BlobStore.
func (s *Store) Delete(ctx context.Context, d digest.Digest) error {
	if err := ctx.Err(); err != nil || d.IsZero() {
		return err
	}
	return s.backend.Delete(ctx, d)
}

// All implements registry.BlobStore.
func (s *Store) All(ctx context.Context) iter.Seq2[registry.StoredBlob, error] {
	return s.backend.All(ctx)
}

// Quarantine implements registry.BlobStore.
func (s *Store) Quarantine(ctx context.Context, d digest.Digest) error {
	if err := checkBlob(ctx, d); err != nil {
		return err
	}
	return blobError(d, s.backend.Quarantine(ctx, d))
}

// Verify reads the blob again and compares it with want. Errors: registry.ErrBlobUnknown, *digest.MismatchError.
func Verify(ctx context.Context, store registry.BlobStore, want digest.Descriptor) error {
	blob, _, err := store.Open(ctx, want.Digest)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, digest.NewReader(&source{ctx: ctx, r: blob}, want))
	return errors.Join(err, blob.Close())
}

// source is a reader that ends with its context. An error comes alone, never with bytes, and failed remembers it, so
// that who copies can tell it from an error of the writing side.
type source struct {
	ctx     context.Context
	r       io.Reader
	pending error // came together with bytes: the next Read gives it
	failed  error // what ended the reading, unless it was io.EOF
}

func (s *source) Read(p []byte) (n int, err error) {
	if err = s.pending; err == nil {
		err = s.ctx.Err()
	}
	if err == nil {
		n, err = s.r.Read(p)
	}
	if n > 0 {
		s.pending = err
		return n, nil
	}
	if err != nil && err != io.EOF {
		s.failed = err
	}
	return 0, err
}

// checkBlob refuses what can name no blob.
func checkBlob(ctx context.Context, d digest.Digest) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.IsZero() {
		return registry.Errorf(registry.BlobUnknown, "an empty digest names no blob")
	}
	return nil
}

// removedMeanwhile turns "not there" at the end of a Put into an error that tells the caller to put again: the bytes were
// read once and are gone, and who took them away (Delete, Quarantine) did so while the Put ran.
func removedMeanwhile(d digest.Digest, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &registry.Error{
			Code: registry.Unavailable, Message: fmt.Sprintf("blob %s was removed while it was being stored: store it again", d),
			Err: err, RetryAfter: time.Second,
		}
	}
	return err
}

// blobError turns a back-end's "not there" into the domain's.
func blobError(d digest.Digest, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return registry.Errorf(registry.BlobUnknown, "there is no blob %s", d)
	}
	return err
}
