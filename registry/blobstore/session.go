package blobstore

import (
	"errors"
	"hash"
	"io"
	"math"
	"sync"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// runningAlgorithm is what is hashed while an upload comes in. Uploads are committed by sha256 but for rare exceptions,
// which are read once more.
const runningAlgorithm = digest.SHA256

// sessions are the upload sessions that this process works on. A session without a running hash and without work has
// no entry, so ids that name nothing cost nothing.
type sessions struct {
	mu   sync.Mutex
	open map[string]*session
}

// session is what the process knows of an upload session besides its bytes. hash and hashed belong to whoever
// acquired the session; busy and gone are guarded by sessions.mu.
type session struct {
	busy   bool
	gone   bool
	hash   hash.Hash // over the bytes of the state hashed, nil when it was lost
	hashed UploadState
}

// acquire makes the caller the only one who works on the session. Errors: Conflict when somebody does already.
func (t *sessions) acquire(id string) (*session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.open[id]
	if s == nil {
		s = &session{}
		t.open[id] = s
	}
	if s.busy {
		return nil, registry.Errorf(registry.Conflict, "upload %q is being written by another request: wait for its answer", id)
	}
	s.busy = true
	return s, nil
}

// release ends the work on an acquired session and forgets it when there is nothing to remember.
func (t *sessions) release(id string, s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.busy = false
	if s.hash == nil && t.open[id] == s {
		delete(t.open, id)
	}
}

// end forgets the session; who still works on it finds that it has ended.
func (t *sessions) end(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.open[id]; s != nil {
		s.gone = true
		delete(t.open, id)
	}
}

// ended reports whether end was called for the session after it was acquired.
func (t *sessions) ended(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.gone
}

// digest is the digest of the session's bytes when the running hash covers exactly what the session holds.
func (s *session) digest(a digest.Algorithm, state UploadState) (digest.Digest, bool) {
	if a != runningAlgorithm || !s.covers(state) {
		return digest.Digest{}, false
	}
	return digest.FromHash(a, s.hash), true
}

// covers reports whether the running hash has seen what the session holds: another process may have added to it, or
// ended it and started another under its id.
func (s *session) covers(state UploadState) bool {
	return s.hash != nil && s.hashed == state
}

// append writes src behind what the session holds and gives the new size. When src fails, what it gave stays; when it
// gives too much or the writing fails, the session is cut back.
func (s *session) append(staging Staging, state UploadState, src *source, max int64) (int64, error) {
	size := state.Size
	if !s.covers(state) {
		s.hash, s.hashed = nil, UploadState{}
		if size == 0 {
			s.hash = runningAlgorithm.New()
		}
	}
	n, err := s.copy(staging, src, max-size)
	if n > max-size {
		err = registry.Errorf(registry.TooLarge, "the upload holds %d bytes, and more came than its limit of %d bytes allows", size, max)
		return size, s.cutBack(staging, size, err)
	}
	if err != nil && src.failed == nil {
		return size, s.cutBack(staging, size, err)
	}
	mark, err := staging.Sync()
	if err != nil {
		return size, s.cutBack(staging, size, err)
	}
	s.hashed = UploadState{Size: size + n, Mark: mark}
	return size + n, src.failed
}

// copy moves at most room+1 bytes of src to staging and through the hash: one more than may stay shows that there are
// too many.
func (s *session) copy(staging Staging, src *source, room int64) (int64, error) {
	limited := io.LimitReader(src, min(max(room, 0), math.MaxInt64-1)+1)
	if s.hash == nil {
		return io.Copy(staging, limited)
	}
	return digest.Copy(staging, limited, s.hash)
}

// cutBack takes back a failed append. The running hash has seen bytes that are gone, so it is dropped.
func (s *session) cutBack(staging Staging, size int64, cause error) error {
	s.hash, s.hashed = nil, UploadState{}
	if err := staging.Truncate(size); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}
