package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/httperr"
)

const (
	readyEvery   = time.Second     // an answer of /readyz is at most so old: more questions cost nothing
	readyTimeout = 3 * time.Second // for what is asked
)

// readiness answers whether the server can do its work, part by part. A part is asked at most once a second, whoever asks.
type readiness struct {
	parts    []readyPart
	draining atomic.Bool

	mu    sync.Mutex
	at    time.Time
	state readyState
}

// readyPart is something that the server needs.
type readyPart struct {
	name string
	ask  func(context.Context) error
}

// readyState is the body of /readyz.
type readyState struct {
	Detail    string               `json:"detail"` // for people
	Parts     map[string]partState `json:"checks"`
	RequestID string               `json:"requestId,omitempty"`
}

type partState struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"` // only for those who may see it
}

// newReadiness asks the database for a row, the store for a blob that nobody has, and the key what it is.
func newReadiness(d registry.Deps, registryID string) *readiness {
	return &readiness{parts: []readyPart{
		{"database", func(ctx context.Context) error {
			return d.Meta.View(ctx, func(tx registry.Tx) error {
				_, err := tx.Setting("readyz")
				return ignore(err, registry.ErrNotFound)
			})
		}},
		{"store", func(ctx context.Context) error {
			_, err := d.Blobs.Stat(ctx, digest.FromBytes([]byte("readyz")))
			return ignore(err, registry.ErrBlobUnknown)
		}},
		{"key", func(context.Context) error {
			_, err := d.Signer.Trust(registryID)
			return err
		}},
	}}
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// look gives the state, at most readyEvery old.
func (r *readiness) look(ctx context.Context) readyState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) < readyEvery {
		return r.state
	}
	// Who asked may go away; the answer is for those who ask next, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	errs := make([]error, len(r.parts))
	var all sync.WaitGroup
	for i, part := range r.parts {
		all.Go(func() { errs[i] = part.ask(ctx) })
	}
	all.Wait()
	state, failing := readyState{Detail: "ready", Parts: map[string]partState{}}, []string{}
	for i, part := range r.parts {
		state.Parts[part.name] = partState{OK: errs[i] == nil}
		if errs[i] != nil {
			state.Parts[part.name] = partState{Error: errs[i].Error()}
			failing = append(failing, part.name)
		}
	}
	if len(failing) > 0 {
		state.Detail = "not ready: " + strings.Join(failing, ", ")
	}
	r.at, r.state = time.Now(), state
	return state
}

// answer writes the state: 200 when all is well, else 503. Why a part fails is for those who may see everything.
func (r *readiness) answer(w http.ResponseWriter, req *http.Request, everything bool) {
	state := r.look(req.Context())
	status := http.StatusOK
	shown := readyState{Detail: state.Detail, Parts: map[string]partState{}, RequestID: httperr.RequestID(req.Context())}
	for name, part := range state.Parts {
		if !part.OK {
			status = http.StatusServiceUnavailable
		}
		if !everything {
			part.Error = ""
		}
		shown.Parts[name] = part
	}
	if r.draining.Load() {
		status, shown.Detail = http.StatusServiceUnavailable, "not ready: the server is stopping"
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(shown) // a client that is gone is no fault of ours
}
