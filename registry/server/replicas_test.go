package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// bucket is the address of an empty bucket, whose credentials the environment holds.
func bucket(t *testing.T) string {
	t.Helper()
	b := testservice.S3(t)
	for _, kv := range b.Environment() {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	return b.Address()
}

// Replicas that start on an empty database at once make one account, whose token one of them has; they share the key, and
// each serves what another took.
func TestReplicasStartAtOnce(t *testing.T) {
	const replicas = 4
	db, blobs := testservice.Postgres(t), bucket(t)
	all := make([]*server.Server, replicas)
	data := make([]string, replicas)
	errs := make([]error, replicas)
	var log lockedBuffer
	var together sync.WaitGroup
	for i := range replicas {
		data[i] = t.TempDir()
		together.Go(func() {
			c := server.Config{Data: data[i], Listen: "127.0.0.1:0", DB: db, Blobs: blobs}
			all[i], errs[i] = server.Open(t.Context(), c, "test", server.NewLogger(&log, c, false))
		})
	}
	together.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, replicas)
	for _, s := range all {
		go func() { ended <- s.Run(ctx) }()
	}
	defer func() {
		stop()
		for range all {
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		}
		for _, s := range all {
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
	}()
	token := ""
	for i, s := range all {
		secret, err := os.ReadFile(filepath.Join(data[i], server.AdminTokenFile))
		if s.Created() != (err == nil) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("replica %d: created %v, token file: %v", i, s.Created(), err)
		}
		if s.Created() && token != "" {
			t.Error("two replicas made the first account")
		}
		token += strings.TrimSpace(string(secret))
		if left, _ := filepath.Glob(filepath.Join(data[i], server.AdminTokenFile+".*")); len(left) > 0 {
			t.Errorf("replica %d leaves %v", i, left)
		}
	}
	if token == "" {
		t.Fatal("no replica has the administrator's token")
	}
	content := bytes.Repeat([]byte("shared"), 50_000)
	address := "/v2/admin/x/blobs/" + digest.FromBytes(content).String()
	key := ""
	for i, s := range all {
		g := &gatehouse{t, &running{url: s.URL(), http: http.DefaultClient, tokens: map[string]string{"admin": token}}}
		if i == 0 {
			g.pushBlob("admin", "admin/x", content)
		}
		if got := g.get("admin", address).want(t, http.StatusOK); !bytes.Equal(got.body, content) {
			t.Errorf("replica %d gives %d other bytes", i, len(got.body))
		}
		trust := string(g.get("admin", "/api/trust").want(t, http.StatusOK).body)
		if key != "" && trust != key {
			t.Errorf("replica %d has another key", i)
		}
		key = trust
		g.get("", "/readyz").want(t, http.StatusOK)
	}
	http.DefaultClient.CloseIdleConnections()
}

// A folder of bytes is for one server alone, whatever it shares its database with.
func TestFolderIsForOneServer(t *testing.T) {
	db, blobs := testservice.Postgres(t), t.TempDir()
	open := func(blobs string) (*server.Server, error) {
		c := server.Config{Data: t.TempDir(), Listen: "127.0.0.1:0", DB: db, Blobs: blobs}
		return server.Open(t.Context(), c, "test", server.NewLogger(new(lockedBuffer), c, false))
	}
	first, err := open(blobs)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := open(blobs); err == nil || !strings.Contains(err.Error(), "one server alone") {
		t.Errorf("a second server in the same folder: %v, %v", s, err)
	}
	if s, err := open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "another folder") {
		t.Errorf("a second server with a folder of its own: %v, %v", s, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := open(blobs)
	if err != nil {
		t.Fatalf("the same folder after a restart: %v", err)
	}
	if again.Created() {
		t.Error("the second start made the first account again")
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// A database that goes away makes requests fail as something that passes, by name on /readyz, and once it is back the
// server goes on by itself.
func TestDatabaseGoesAway(t *testing.T) {
	postgres := testservice.OwnPostgres(t)
	db := postgres.Database(t, "")
	g := startGatehouse(t, func(s *setup) {
		s.config.DB, s.config.Blobs, s.config.Limits.Database = db, t.TempDir(), 2*time.Second
	})
	content := bytes.Repeat([]byte("kept"), 50_000)
	g.pushBlob("alice", "alice/x", content)
	address := "/v2/alice/x/blobs/" + digest.FromBytes(content).String()
	if err := postgres.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{address, "/v2/alice/x/tags/list", "/api/whoami", "/api/plugins"} {
		r := g.get("alice", path)
		if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
			t.Errorf("%s: status %d, Retry-After %q: %.200s", path, r.status, r.header.Get("Retry-After"), r.body)
		}
	}
	push := "/v2/alice/y/blobs/uploads/?digest=" + digest.FromBytes([]byte("new")).String()
	if r := g.do(call{as: "alice", method: http.MethodPost, path: push, body: []byte("new")}); r.status != http.StatusServiceUnavailable {
		t.Errorf("a push: status %d: %.200s", r.status, r.body)
	}
	eventually(t, func() error {
		if r := g.get("", "/readyz"); r.status != http.StatusServiceUnavailable || r.readiness(t).Detail != "not ready: database" {
			return fmt.Errorf("readyz: %d %s", r.status, r.body)
		}
		return nil
	})
	g.get("", "/healthz").want(t, http.StatusOK)
	if err := postgres.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if r := g.get("alice", address); r.status != http.StatusOK || !bytes.Equal(r.body, content) {
			return fmt.Errorf("after the database came back: status %d", r.status)
		}
		if r := g.get("", "/readyz"); r.status != http.StatusOK {
			return fmt.Errorf("readyz: %d", r.status)
		}
		return nil
	})
	g.do(call{as: "alice", method: http.MethodPost, path: push, body: []byte("new")}).want(t, http.StatusCreated)
	if len(g.faults.take()) == 0 {
		t.Error("the log does not tell that the database was away")
	}
}
