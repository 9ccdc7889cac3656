package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// The race for one version: how many publishers at how many replicas, and how often; GATEHOUSE_RACE_ROUNDS sets another
// number of rounds.
const (
	racePublishers  = 64
	raceReplicas    = 3
	raceRounds      = 5
	raceRoundsShort = 2
)

// Of 64 publishers that publish other bytes each under one version, over both routes, at three replicas on one PostgreSQL
// and one S3 store, exactly one wins; all others are told of the conflict, and all replicas serve what the winner published.
func TestOneWinner(t *testing.T) {
	usual := raceRounds
	if testing.Short() {
		usual = raceRoundsShort
	}
	clients, token := replicas(t)
	for round := range countFrom(t, "GATEHOUSE_RACE_ROUNDS", usual) {
		attempts := make([]*attempt, racePublishers)
		for i := range attempts {
			noise := make([]byte, 1+rand.IntN(64<<10)) // some fit beside their row, some do not
			for j := range noise {
				noise[j] = byte(rand.Uint32())
			}
			attempts[i] = makeAttempt(t, "race", fmt.Sprintf("1.%d", round), noise)
			attempts[i].rest = i%2 == 1
		}
		winner := race(t, clients, token, attempts)
		for _, c := range clients {
			serves(t, c, winner)
		}
	}
}

// replicas starts servers that share their stores, and gives a client of each.
func replicas(t *testing.T) (clients []*client.Client, token string) {
	t.Helper()
	database, bucket := testservice.Postgres(t), testservice.S3(t)
	for n := range raceReplicas {
		p := startProcess(t, filepath.Join(t.TempDir(), fmt.Sprintf("replica-%d", n)), bucket.Environment(), "--db", database, "--blobs", bucket.Address())
		t.Cleanup(p.kill)
		if n == 0 { // the first start of the registry
			token = p.adminToken(t)
		}
		clients = append(clients, p.connect(t, token))
	}
	return clients, token
}

// race publishes all attempts at once and gives the one that won.
func race(t *testing.T, clients []*client.Client, token string, attempts []*attempt) *attempt {
	t.Helper()
	errs := make([]error, len(attempts))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, a := range attempts {
		wg.Go(func() {
			<-start
			errs[i] = publishPatiently(clients[i%len(clients)], token, a)
		})
	}
	close(start)
	wg.Wait()
	var winner *attempt
	for i, err := range errs {
		switch {
		case err == nil && winner != nil:
			t.Errorf("%s was published twice", attempts[i].ref())
		case err == nil:
			winner = attempts[i]
		case registry.CodeOf(err).Meaning().Exit != exitConflict:
			t.Errorf("publisher %d of %s was told %v, not of a conflict", i, attempts[i].ref(), err)
		}
	}
	if winner == nil {
		t.Fatalf("nobody published %s", attempts[0].ref())
	}
	return winner
}

// publishPatiently tries again as long as the server says that it is busy, which real clients do too.
func publishPatiently(c *client.Client, token string, a *attempt) error {
	const most = 20
	var err error
	for range most {
		err = publishAttempt(c, token, a)
		if code := registry.CodeOf(err); code != registry.Unavailable && code != registry.TooManyRequests {
			return err
		}
		time.Sleep(time.Duration(50+rand.IntN(200)) * time.Millisecond)
	}
	return err
}

// serves checks that a replica has the winner's version, and only it.
func serves(t *testing.T, c *client.Client, winner *attempt) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), publishSeconds*time.Second)
	defer cancel()
	p, err := find(ctx, c, winner.ref())
	if err != nil {
		t.Fatalf("a replica lacks %s: %v", winner.ref(), err)
	}
	if err := p.same("publish", winner.art.pack.Content(), winner.art.pack.Tree()); err != nil {
		t.Errorf("a replica serves another than the winner: %v", err)
	}
	body, err := c.Blob(ctx, p.repository, winner.art.Layer)
	if err != nil {
		t.Fatalf("a replica lacks the winner's archive: %v", err)
	}
	_, err = io.Copy(io.Discard, body)
	if err := errors.Join(err, body.Close()); err != nil {
		t.Errorf("the winner's archive: %v", err)
	}
}
