package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// manyPlugins is a JobSpec with as many plugins as the largest valid one of the vectors.
func (g *gatehouse) manyPlugins() string {
	g.tb.Helper()
	plugins := make([]string, 20)
	for i := range plugins {
		plugins[i] = pinned(g.published("alice", algorithm(fmt.Sprintf("many-%d", i), "1.0.0")))
	}
	return jobSpec(g.tb, dialect.Forge, "many", plugins...)
}

func benchmarkSpec(b *testing.B, path string) {
	g := startGatehouse(b)
	spec := g.manyPlugins()
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(spec))
		r.Header.Set("Authorization", "Bearer "+g.tokens["alice"])
		w := httptest.NewRecorder()
		g.server.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("status %d: %s", w.Code, w.Body)
		}
	}
}

func BenchmarkDryRun(b *testing.B) { benchmarkSpec(b, "/api/admission") }
func BenchmarkSubmit(b *testing.B) { benchmarkSpec(b, "/api/jobs") }
