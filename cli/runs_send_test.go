package cli

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/runrecord"
	"github.com/gatehouse-registry/gatehouse/launchverify/runspool"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// What the registry says of one statement keeps no other one waiting; what a proxy says while the registry is away is no answer.
func TestOneStatementKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		status int
		body   string
		want   runspool.Sent
	}{
		"a job that is not there":      {404, `{"detail": "job \"run-1\" does not exist, or is not yours", "code": "NOT_FOUND"}`, runspool.Sent{Sent: 1, Rejected: 1}},
		"a key of another node":        {403, `{"detail": "node.name: the record is of node \"a\", its key is one of node b", "code": "DENIED"}`, runspool.Sent{Sent: 1, Rejected: 1}},
		"a statement that is none":     {422, `{"detail": "run record: no", "code": "INVALID"}`, runspool.Sent{Sent: 1, Rejected: 1}},
		"one that a proxy cuts off":    {413, "<html>too large</html>", runspool.Sent{Sent: 1, Rejected: 1}},
		"a proxy without its registry": {404, "404 page not found", runspool.Sent{Left: 2}},
		"a proxy that forbids":         {403, "<html>forbidden</html>", runspool.Sent{Left: 2}},
		"a node that is locked out":    {401, `{"detail": "the token is not valid"}`, runspool.Sent{Left: 2}},
		"a registry that is read-only": {503, `{"detail": "read-only", "code": "UNAVAILABLE"}`, runspool.Sent{Left: 2}},
	} {
		first := strings.Repeat("a", 32)
		registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			if err != nil || string(text) == first {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body) // who hears it is the test
				return
			}
			_, _ = io.WriteString(w, `{"id": "x", "state": "ended", "attested": true}`)
		}))
		spool, err := runspool.Open(filepath.Join(t.TempDir(), "spool"), runspool.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range []string{first, strings.Repeat("b", 32)} {
			if _, _, err := spool.Put(run, runrecord.StateEnded, []byte(run)); err != nil {
				t.Fatal(err)
			}
		}
		as, err := client.New(client.Options{Server: registry.URL, Token: "secret", UserAgent: "test"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := spool.Send(t.Context(), false, func(ctx context.Context, envelope []byte) error { return sendRun(ctx, as, envelope) })
		if got != c.want || errors.Is(err, runspool.ErrRejected) != (c.want.Rejected > 0) {
			t.Errorf("%s: %+v, %v; expected %+v", what, got, err, c.want)
		}
		registry.Close()
	}
}
