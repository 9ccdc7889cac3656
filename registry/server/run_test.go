package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// runGatehouse runs a server that the test stops itself.
func runGatehouse(t *testing.T, with ...func(*setup)) (g *gatehouse, stop func(), ended chan error) {
	t.Helper()
	g = openGatehouse(t, with...)
	ctx, stop := context.WithCancel(context.Background())
	ended = make(chan error, 1)
	go func() { ended <- g.server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		g.http.CloseIdleConnections()
		if err := g.server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return g, stop, ended
}

// A server that is told to stop is not ready at once, and takes what was on its way.
func TestUploadFinishesWhileTheServerStops(t *testing.T) {
	g, stop, ended := runGatehouse(t, func(s *setup) { s.config.DrainDelay, s.config.DrainTimeout = 5*time.Second, time.Minute })
	content, first, path := blobOf("alice/x", "slow")
	u := g.startSlow("alice", path, first)
	g.serving("transfer", 1)
	g.get("", "/readyz").want(t, http.StatusOK)
	stop()
	eventually(t, func() error {
		r := g.get("", "/readyz")
		var state struct {
			Detail string `json:"detail"`
		}
		r.into(t, &state)
		if r.status != http.StatusServiceUnavailable || !strings.Contains(state.Detail, "stopping") {
			return fmt.Errorf("readyz answers %d %s", r.status, r.body)
		}
		return nil
	})
	select {
	case err := <-ended:
		t.Fatalf("the server ended in the middle of an upload: %v", err)
	default:
	}
	g.http.CloseIdleConnections()
	if _, err := u.body.Write(content[len(first):]); err != nil {
		t.Fatal(err)
	}
	u.body.Close()
	if r, ok := <-u.done; !ok || r.status != http.StatusCreated {
		t.Fatalf("the upload: %+v", r)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if _, err := g.server.Service().StatBlob(t.Context(), auth.Principal{Account: "alice", Role: auth.Operator}, "alice/x", digest.FromBytes(content)); err != nil {
		t.Errorf("what was acknowledged: %v", err)
	}
}

// What takes longer than the drain timeout is cut off, and the server ends.
func TestDrainTimeoutEnds(t *testing.T) {
	g, stop, ended := runGatehouse(t, func(s *setup) { s.config.DrainTimeout = time.Millisecond })
	_, first, path := blobOf("alice/x", "endless")
	u := g.startSlow("alice", path, first)
	g.serving("transfer", 1)
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	u.body.CloseWithError(io.ErrUnexpectedEOF) // the client's transport waits for the end of the body, whatever became of its connection
	if r, ok := <-u.done; ok && r.status < 400 {
		t.Errorf("an upload that was cut off answered %d", r.status)
	}
}

// A client that sends nothing any more loses its request.
func TestIdleBodyEnds(t *testing.T) {
	g := startGatehouse(t, func(s *setup) { s.config.Limits.IdleTimeout = 100 * time.Millisecond })
	_, first, path := blobOf("alice/x", "stuck")
	u := g.startSlow("alice", path, first)
	r, ok := <-u.done
	if !ok || r.status != http.StatusBadRequest {
		t.Fatalf("got %+v, %v", r, ok)
	}
	if got := r.refused(t, path, http.StatusBadRequest); !strings.Contains(got.Detail, "no byte came") {
		t.Errorf("refusal %+v", got)
	}
}

// readyState is the body of /readyz.
type readyState struct {
	Detail string
	Checks map[string]struct {
		OK    bool
		Error string
	}
}

func (r reply) readiness(t *testing.T) (s readyState) {
	t.Helper()
	if err := json.Unmarshal(r.body, &s); err != nil {
		t.Fatalf("readyz: %v: %s", err, r.body)
	}
	return s
}
