package server_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// TestSessionsOverReplicas begins sign-ins at one replica and ends them at the other. A code is good once, whoever is asked at
// the same moment; a refresh token that is exchanged at both gives tokens that work at both; what ends at one has ended.
func TestSessionsOverReplicas(t *testing.T) {
	db, blobs := testservice.Postgres(t), bucket(t)
	var both [2]*gatehouse
	token := ""
	ctx, stop := context.WithCancel(context.Background())
	var ended []chan error
	var opened []*server.Server
	defer func() {
		stop()
		for i, end := range ended {
			if err := errors.Join(<-end, opened[i].Close()); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
	}()
	for i := range both {
		data := t.TempDir()
		c := server.Config{Data: data, Listen: "127.0.0.1:0", DB: db, Blobs: blobs}
		s, err := server.Open(t.Context(), c, "test", server.NewLogger(new(lockedBuffer), c, false))
		if err != nil {
			t.Fatal(err)
		}
		end := make(chan error, 1)
		go func() { end <- s.Run(ctx) }()
		ended, opened = append(ended, end), append(opened, s)
		if secret, err := os.ReadFile(filepath.Join(data, server.AdminTokenFile)); err == nil {
			token = strings.TrimSpace(string(secret))
		}
		both[i] = &gatehouse{t, &running{server: s, url: s.URL(), http: &http.Client{Transport: &http.Transport{}, CheckRedirect: noRedirect}, tokens: map[string]string{"admin": token}}}
		defer both[i].http.CloseIdleConnections()
	}
	one, other := both[0], both[1]
	one.addAccount("alice", "operator")
	other.tokens["alice"] = one.tokens["alice"]

	code := one.startDevice(laptop)
	other.approve(code.UserCode, "alice")
	var granted [12]reply
	var together sync.WaitGroup
	for i := range granted {
		together.Go(func() { granted[i] = both[i%2].poll(code.DeviceCode) })
	}
	together.Wait()
	var in wire.SignedIn
	n := 0
	for _, r := range granted {
		if r.status == http.StatusOK {
			n++
			r.into(t, &in)
		}
	}
	if n != 1 {
		t.Fatalf("a device code was good %d times", n)
	}

	b := newBrowser(t, one)
	auth := b.authorized("alice")
	var redeemed [12]int
	for i := range redeemed {
		together.Go(func() {
			redeemed[i] = both[i%2].redeem(auth, verifier, "http://127.0.0.1:43210/callback").status
		})
	}
	together.Wait()
	n = 0
	for _, status := range redeemed {
		if status == http.StatusOK {
			n++
		}
	}
	if n != 1 {
		t.Errorf("an authorization code was good %d times", n)
	}

	for _, g := range both {
		if got := g.whoami(in.AccessToken); got != http.StatusOK {
			t.Errorf("the access token at %s: %d", g.url, got)
		}
		if fresh := g.refreshed(in.RefreshToken); one.whoami(fresh.AccessToken) != http.StatusOK || other.whoami(fresh.AccessToken) != http.StatusOK {
			t.Errorf("a token that was exchanged at %s does not work at both", g.url)
		}
	}
	other.send("", http.MethodPost, "/api/auth/logout", wire.RefreshToken{RefreshToken: in.RefreshToken}).want(t, http.StatusOK)
	if got := one.whoami(in.AccessToken); got != http.StatusUnauthorized {
		t.Errorf("a session that ended at the other lives on: %d", got)
	}
}
