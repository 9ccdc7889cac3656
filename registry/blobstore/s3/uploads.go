package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
)

// startName ends the key of the object that makes a session be.
const startName = "start"

func (b *bucket) sessionPrefix(id string) string { return b.prefix + "uploads/" + id + "/" }

func (b *bucket) startKey(id string) string { return b.sessionPrefix(id) + startName }

func (b *bucket) appendKey(id string, offset int64) string {
	return fmt.Sprintf("%s%020d", b.sessionPrefix(id), offset)
}

// session is what lies under the prefix of an upload session.
type session struct {
	started bool
	parts   []segment // without a gap from offset 0
	state   blobstore.UploadState
	touched time.Time
}

// add takes the next object of the session's list.
func (s *session) add(name string, info minio.ObjectInfo) {
	if info.LastModified.After(s.touched) {
		s.touched = info.LastModified
	}
	if name == startName {
		s.started = true
		return
	}
	if offset, err := strconv.ParseInt(name, 10, 64); err == nil && offset == s.state.Size && info.Size > 0 {
		part := segment{key: info.Key, etag: info.ETag, size: info.Size}
		s.parts = append(s.parts, part)
		s.state = after(s.state, part.etag, part.size)
	}
}

// after is the state of a session in which an append of size bytes follows state.
func after(state blobstore.UploadState, etag string, size int64) blobstore.UploadState {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s", state.Mark, state.Size, size, strings.Trim(etag, `"`)))
	return blobstore.UploadState{Size: state.Size + size, Mark: hex.EncodeToString(sum[:])}
}

// session reads what a session holds. Errors: one that wraps fs.ErrNotExist.
func (b *bucket) session(ctx context.Context, id string) (*session, error) {
	s, prefix := &session{}, b.sessionPrefix(id)
	for info, err := range b.list(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		s.add(strings.TrimPrefix(info.Key, prefix), info)
	}
	if !s.started {
		return nil, fs.ErrNotExist
	}
	return s, nil
}

// CreateUpload implements blobstore.Backend.
func (b *bucket) CreateUpload(ctx context.Context, id string) error {
	_, err := b.newObject(ctx, b.startKey(id), true, 0).finish()
	return err
}

// StatUpload implements blobstore.Backend.
func (b *bucket) StatUpload(ctx context.Context, id string) (blobstore.UploadState, error) {
	s, err := b.session(ctx, id)
	if err != nil {
		return blobstore.UploadState{}, err
	}
	return s.state, nil
}

// OpenUpload implements blobstore.Backend.
func (b *bucket) OpenUpload(ctx context.Context, id string) (registry.Blob, int64, error) {
	s, err := b.session(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	return b.newReader(ctx, s.parts, false), s.state.Size, nil
}

// AppendUpload implements blobstore.Backend. What a client sent is kept when it goes away, so the writing does not end
// with its request; each request to the store is bounded.
func (b *bucket) AppendUpload(ctx context.Context, id string) (blobstore.Staging, blobstore.UploadState, error) {
	s, err := b.session(ctx, id)
	if err != nil {
		return nil, blobstore.UploadState{}, err
	}
	key := b.appendKey(id, s.state.Size)
	return &staging{bucket: b, id: id, state: s.state, object: b.newObject(context.WithoutCancel(ctx), key, true, 0)}, s.state, nil
}

// staging is one append: an object at the session's end, which two processes can't both make.
type staging struct {
	bucket  *bucket
	id      string
	state   blobstore.UploadState
	object  *object
	written int64
	synced  bool
}

// Write implements io.Writer.
func (s *staging) Write(p []byte) (int, error) {
	n, err := s.object.Write(p)
	s.written += int64(n)
	return n, err
}

// Sync implements blobstore.Staging. Another process may end the session while the object is written, so afterwards it
// is asked whether the session is still there: who ends one removes its start first and then all it finds.
func (s *staging) Sync() (string, error) {
	if s.written == 0 {
		return s.state.Mark, nil
	}
	etag, err := s.object.finish()
	if err != nil {
		return "", err
	}
	s.synced = true
	if _, err := s.bucket.stat(s.object.ctx, s.bucket.startKey(s.id)); err != nil {
		return "", err // the Store calls Truncate
	}
	return after(s.state, etag, s.written).Mark, nil
}

// Truncate implements blobstore.Staging.
func (s *staging) Truncate(int64) error {
	err := s.object.abort()
	if s.synced {
		err = errors.Join(err, s.bucket.remove(s.object.ctx, s.object.key))
	}
	return err
}

// Close implements io.Closer.
func (s *staging) Close() error { return s.object.abort() }

// StoreUpload implements blobstore.Backend. Once the blob is there a client may have its answer: what can't be removed of
// the session is left to expiry.
func (b *bucket) StoreUpload(ctx context.Context, id string, d digest.Descriptor, mark string) error {
	s, err := b.session(ctx, id)
	if err != nil {
		return err
	}
	if s.state.Mark != mark {
		return registry.Errorf(registry.Conflict, "upload %q changed while it was committed: another request wrote to it", id)
	}
	if err := b.storeParts(ctx, b.blobKey(d.Digest), s.parts); err != nil {
		return err
	}
	_ = b.RemoveUpload(context.WithoutCancel(ctx), id)
	return nil
}

func (b *bucket) storeParts(ctx context.Context, key string, parts []segment) error {
	if len(parts) > 0 {
		return b.compose(ctx, key, parts)
	}
	if _, err := b.newObject(ctx, key, false, 0).finish(); err != nil {
		return err
	}
	return b.proveSize(ctx, key, 0)
}

// RemoveUpload implements blobstore.Backend. The start goes first: from then on there is no session.
func (b *bucket) RemoveUpload(ctx context.Context, id string) error {
	if err := b.remove(ctx, b.startKey(id)); err != nil {
		return err
	}
	for info, err := range b.list(ctx, b.sessionPrefix(id)) {
		if err == nil {
			err = b.remove(ctx, info.Key)
		}
		if err != nil {
			return err
		}
	}
	for left, err := range b.unfinished(ctx, b.sessionPrefix(id)) {
		if err == nil {
			err = b.abortUpload(ctx, left.Key, left.UploadID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Uploads implements blobstore.Backend. Listed are also what killed processes left: objects without a start, and ids
// under which only an unfinished multipart upload lies. Unfinished uploads of blobs, which belong to no session, are
// removed here when they are old.
func (b *bucket) Uploads(ctx context.Context) iter.Seq2[registry.UploadSession, error] {
	return func(yield func(registry.UploadSession, error) bool) {
		unfinished := map[string]time.Time{} // when an append of the session last began
		for left, err := range b.unfinished(ctx, b.prefix+"uploads/") {
			if err != nil {
				yield(registry.UploadSession{}, err)
				return
			}
			id, _, ok := b.splitKey(left.Key)
			if ok && left.Initiated.After(unfinished[id]) {
				unfinished[id] = left.Initiated
			}
		}
		if err := b.sweep(ctx); err != nil {
			yield(registry.UploadSession{}, err)
			return
		}
		if b.listSessions(ctx, unfinished, yield) {
			for id, at := range unfinished {
				if !yield(registry.UploadSession{ID: id, TouchedAt: at}, nil) {
					return
				}
			}
		}
	}
}

// listSessions yields the sessions that have objects and takes them out of unfinished. It reports whether to go on.
func (b *bucket) listSessions(ctx context.Context, unfinished map[string]time.Time, yield func(registry.UploadSession, error) bool) bool {
	var id string
	var s *session
	give := func() bool {
		if s == nil {
			return true
		}
		at := s.touched
		if later := unfinished[id]; later.After(at) {
			at = later
		}
		delete(unfinished, id)
		return yield(registry.UploadSession{ID: id, Size: s.state.Size, TouchedAt: at}, nil)
	}
	for info, err := range b.list(ctx, b.prefix+"uploads/") {
		if err != nil {
			yield(registry.UploadSession{}, err)
			return false
		}
		of, name, ok := b.splitKey(info.Key)
		if !ok {
			continue
		}
		if of != id || s == nil {
			if !give() {
				return false
			}
			id, s = of, &session{}
		}
		s.add(name, info)
	}
	return give()
}

// splitKey is the session of a key, and the rest.
func (b *bucket) splitKey(key string) (id, name string, ok bool) {
	rest, _ := strings.CutPrefix(key, b.prefix+"uploads/")
	id, name, ok = strings.Cut(rest, "/")
	return id, name, ok && blobstore.ValidUploadID(id)
}

// unfinished yields the unfinished multipart uploads of keys that begin with prefix. The first error ends it.
func (b *bucket) unfinished(ctx context.Context, prefix string) iter.Seq2[minio.ObjectMultipartInfo, error] {
	return func(yield func(minio.ObjectMultipartInfo, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel() // ends the listing when we leave early
		for left := range b.core.ListIncompleteUploads(ctx, b.name, prefix, true) {
			if !yield(left, classify(left.Err)) || left.Err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(minio.ObjectMultipartInfo{}, err)
		}
	}
}
