package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/catalogue"
	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// TestBenchmarksOfAJob: those of the client release are known by name, published ones by <owner>.<name>; what nobody offers
// is refused, unless it may be a task of the runner.
func TestBenchmarksOfAJob(t *testing.T) {
	g := startGatehouse(t)
	for _, d := range dialect.All {
		g.published("alice", benchmarkPack(d, "bench-"+string(d)))
	}
	evalkit := func(suites string) string {
		c, _ := catalogue.Builtin(dialect.Forge, catalogue.DefaultRelease(dialect.Forge))
		e, _ := c.Lookup("evalkit/benchmark")
		return strings.Replace(jobOf(dialect.Forge, e, "bench"), `"resources"`, fmt.Sprintf(`"hyperparams":{"suites":%q,"runner":"lm-eval"},"model":{"base":"m"},"resources"`, suites), 1)
	}
	for _, c := range []struct {
		d      dialect.Dialect
		suites string // of spec.evaluation
		says   string // "" is admitted
	}{
		{dialect.Forge, `"gsm8k"`, ""},
		{dialect.TunePlane, `"gsm8k","ceval"`, ""},
		{dialect.Forge, `"alice.bench-forge"`, ""},
		{dialect.TunePlane, `"alice.bench-tuneplane"`, ""},
		{dialect.TunePlane, `"alice.bench-forge"`, "no pack here offers one"},
		{dialect.Forge, `"gsmk8"`, "did you mean gsm8k?"},
		{dialect.Forge, `"alice.Bench-Forge"`, "no pack here offers one"},
		{dialect.Forge, `"hendrycks_math"`, "no pack here offers one"},
	} {
		r := g.submit("alice", withRefs(t, c.d, `"evaluation":{"suites":[`+c.suites+`]}`))
		if c.says == "" {
			if r.want(t, 200); strings.Contains(string(r.body), "job.reference.unchecked") {
				t.Errorf("%s, %s: unchecked: %s", c.d, c.suites, r.body)
			}
			continue
		}
		if got := r.refused(t, "/api/", 422); !slices.Equal(got.Decision.rules(), []string{"job.evaluation.suites.exists"}) || !strings.Contains(string(r.body), c.says) {
			t.Errorf("%s, %s: %s", c.d, c.suites, r.body)
		}
	}
	for suites, unchecked := range map[string]bool{"gsm8k,hendrycks_math": false, "gsm8k,mmlu_pro": true} {
		if r := g.submit("alice", evalkit(suites)).want(t, 200); strings.Contains(string(r.body), `benchmark \"mmlu_pro\"`) != unchecked || strings.Contains(string(r.body), "hendrycks") {
			t.Errorf("%s: %s", suites, r.body)
		}
	}
	g.send("admin", http.MethodPatch, "/api/plugins/alice/bench-forge", map[string]any{"enabled": false}).want(t, 200)
	g.submit("alice", withRefs(t, dialect.Forge, `"evaluation":{"suites":["alice.bench-forge"]}`)).refused(t, "/api/", 422)
}

// benchmarkPack is a pack of one suite.
func benchmarkPack(d dialect.Dialect, name string) map[string]string {
	kind := "kind: benchmark"
	if d == dialect.TunePlane {
		kind = "capability: benchmark"
	}
	return map[string]string{
		"plugin.yaml":    fmt.Sprintf("schema: %s/plugin/v1\nname: %s\nversion: 1.0.0\n%s\nsummary: s\nlicense: MIT\n", d, name, kind),
		"benchmark.yaml": fmt.Sprintf("schema: %s/benchmark/v1\nname: %s\ntitle: T\nsummary: s\nrunner: lm-eval\ncategory: math\nsuites: [one]\nmetrics: [{key: acc, label: A, direction: higher, primary: true}]\n", d, name),
	}
}
