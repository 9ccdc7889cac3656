package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// TestForgeSubmissionKey sends one submission often: with one key it is one job, whoever is first.
func TestForgeSubmissionKey(t *testing.T) {
	g := startGatehouse(t)
	// A quota for one such job alone: sending it again must not be refused for what it holds itself.
	g.send("admin", "POST", "/api/admin/quotas", map[string]any{"username": "alice", "max_concurrent_gpus": 8, "priority": 3}).want(t, 200)
	submit := func(key string) reply {
		return g.do(call{as: "alice", method: "POST", path: "/api/jobs", body: []byte(jobPackage(t, "a")), header: map[string]string{
			"X-Forge-Meta": `{"exp":"experiments/a","profile":"h200","spec":` + jobSpec(t, dialect.Forge, "a") + `}`, "Idempotency-Key": key,
		}})
	}
	answers := make([]reply, 8)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = submit("one") })
	}
	wg.Wait()
	var first wire.Submitted
	answers[0].want(t, 200).into(t, &first)
	for _, r := range append(answers, submit("one")) {
		var again wire.Submitted
		if r.want(t, 200).into(t, &again); again.RunID != first.RunID {
			t.Errorf("%s and %s", again.RunID, first.RunID)
		}
	}
	if got := len(g.jobs("alice")); got != 1 {
		t.Errorf("%d jobs of one key", got)
	}
	g.send("admin", "POST", "/api/admin/quotas", map[string]any{"username": "alice", "max_concurrent_gpus": 800, "priority": 3}).want(t, 200)
	for i := range 2 {
		submit(fmt.Sprint("other", i)).want(t, 200)
	}
	for range 2 {
		submit("").want(t, 200)
	}
	if got := len(g.jobs("alice")); got != 5 {
		t.Errorf("%d jobs, want 5", got)
	}
	submit(strings.Repeat("k", 1000)).refused(t, "/api/", 422)
}
