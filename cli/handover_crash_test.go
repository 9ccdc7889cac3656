package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client"
	"github.com/gatehouse-registry/gatehouse/registry/handover"
)

// How often the server is killed while jobs are submitted and handed over; GATEHOUSE_CRASH_HANDOVERS sets another number.
const (
	crashHandovers      = 40
	crashHandoversShort = 12
	submitsTogether     = 4
)

// plainSpec is a JobSpec of a recipe that ships and asks for nothing.
func plainSpec(t *testing.T, exp string) []byte {
	t.Helper()
	c, ok := catalogue.Builtin(dialect.Forge, catalogue.DefaultRelease(dialect.Forge))
	if !ok {
		t.Fatal("no catalogue")
	}
	for _, e := range c.Entries() {
		needs := e.Framework == "custom" || len(e.Plugins) > 0 || len(e.Versions) == 0 || len(e.Roles) == 0
		if e.Params != nil {
			for _, p := range e.Params.All() {
				needs = needs || p.Required
			}
		}
		if needs {
			continue
		}
		v, roles := e.Versions[0], make([]string, len(e.Roles))
		for i, r := range e.Roles {
			roles[i] = fmt.Sprintf(`%q:"all"`, r)
		}
		return fmt.Appendf(nil, `{"apiVersion":"forge/v2","kind":"TrainingJob","metadata":{"name":%q},"spec":{"recipe":{"name":%q,"version":%q,"digest":%q},`+
			`"source":{"exp":"experiments/%s"},"framework":{"kind":%q,"version":%q,"runtime_id":%q},`+
			`"resources":{"pools":[{"name":"all","series":"h200","nodes":1,"gpus_per_node":8}],"roles":{%s}}},"provenance":{"core_version":%q}}`,
			exp, e.Name, e.Version, e.Digest, exp, e.Framework, v.Version, v.RuntimeID, strings.Join(roles, ","), catalogue.DefaultRelease(dialect.Forge))
	}
	t.Fatal("no recipe asks for nothing")
	return nil
}

// The server is killed with SIGKILL at random moments while jobs are submitted and handed over, into a folder and by a
// command. Every job that was acknowledged gets to both, whole and as it was stored; nothing else does.
func TestKilledHandover(t *testing.T) {
	kills := crashHandovers
	if testing.Short() {
		kills = crashHandoversShort
	}
	kills = countFrom(t, "GATEHOUSE_CRASH_HANDOVERS", kills)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	drop, runs, data := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "data")
	program := filepath.Join(t.TempDir(), "enqueue")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nset -e\ncp jobspec.json \"$1/.$GATEHOUSE_EVENT_ID.$$\"\nmv \"$1/.$GATEHOUSE_EVENT_ID.$$\" \"$1/$GATEHOUSE_JOB\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{fmt.Sprintf("GATEHOUSE_HANDOVER=[{name: drop, directory: %s}, {name: queue, command: [%s, %s], parallel: 2}]", drop, program, runs)}
	acked := map[string]bool{}
	var token string
	for i := range kills {
		p := startProcess(t, data, env)
		token = p.adminToken(t)
		c := p.connect(t, token)
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		var all sync.WaitGroup
		for j := range submitsTogether {
			all.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					job, err := c.Submit(ctx, plainSpec(t, fmt.Sprintf("e%d-%d-%d", i, j, n)))
					if err != nil {
						return
					}
					mu.Lock()
					acked[job.RunID] = true
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Duration(random.Int64N(int64(150 * time.Millisecond)))) // the moment is random, nothing hangs on it
		p.kill()
		stop()
		all.Wait()
	}
	p := startProcess(t, data, env)
	defer p.kill()
	c := p.connect(t, token)
	until(t, "the outbox is empty", func() bool {
		rows, err := c.Handovers(t.Context(), registry.HandoverFilter{State: registry.HandoverPending, Limit: 1})
		return err == nil && len(rows) == 0
	})
	stored := handedOver(t, c, drop, runs)
	for id := range acked {
		if !stored[id] {
			t.Errorf("job %s was acknowledged and is gone", id)
		}
	}
	t.Logf("%d kills, %d jobs acknowledged, %d stored", kills, len(acked), len(stored))
	if len(acked) == 0 {
		t.Error("the kills came too early to mean anything")
	}
}

// handedOver compares every stored job with what lies in the folder and what the command was given, and gives the jobs.
func handedOver(t *testing.T, c *client.Client, drop, runs string) map[string]bool {
	t.Helper()
	stored, before := map[string]bool{}, ""
	for {
		page, err := c.JobPage(t.Context(), registry.JobFilter{Before: before, Limit: 200}, true)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, j := range page {
			stored[j.RunID], before = true, j.RunID
			spec, err := c.JobSpec(t.Context(), j.RunID)
			dropped, err2 := os.ReadFile(filepath.Join(drop, j.RunID, handover.SpecFile))
			_, err3 := os.Stat(filepath.Join(drop, j.RunID, handover.DocumentFile))
			queued, err4 := os.ReadFile(filepath.Join(runs, j.RunID))
			if err := errors.Join(err, err2, err3, err4); err != nil || !bytes.Equal(spec, dropped) || !bytes.Equal(spec, queued) {
				t.Errorf("job %s: dropped %q, queued %q, stored %q: %v", j.RunID, dropped, queued, spec, err)
			}
		}
	}
	for _, dir := range []string{drop, runs} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") && !stored[e.Name()] {
				t.Errorf("%s was handed over and is no job", e.Name())
			}
		}
	}
	return stored
}
