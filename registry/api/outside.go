package api

import (
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// outside lists the parts of the platforms' API that the real clients may ask for and this product does not do
// (wire.md 2, 8): the first path elements below /api. A longer entry is a single route.
var outside = []string{
	"datasets", "corpora", "volumes", "models", "playground", "annotate", "benchmarks", "samples", "sweeps", "clean",
	"post", "ingest", "judge", "learning", "admin/maintenance", "job", "jobs/cancel-all", "jobs/clean",
}

// logStream alone answers 404: both clients reconnect for ever on anything of the 5xx class (wire.md 0).
const logStream = "job/logs/stream"

// NoRoute answers what no route serves: 501 with a sentence for what belongs to the platforms, else 404.
func (a *API) NoRoute(c *gin.Context) error {
	path := c.Request.URL.Path
	rest, isAPI := strings.CutPrefix(path, "/api/")
	switch {
	case isAPI && rest == logStream:
		return registry.Errorf(registry.NotFound, "this registry keeps no job logs; the platform that runs the job does")
	case isAPI && isOutside(rest):
		return registry.Errorf(registry.Outside, "Gatehouse is a registry of packs with an admission gate: %s %s is not part of it", registry.Shown(c.Request.Method), registry.Shown(path))
	}
	return registry.Errorf(registry.NotFound, "no such address: %s %s", registry.Shown(c.Request.Method), registry.Shown(path))
}

// isOutside matches whole path elements. Artifacts of a job are the platform's too.
func isOutside(rest string) bool {
	if strings.HasPrefix(rest, "jobs/") && strings.HasSuffix(rest, "/artifacts") {
		return true
	}
	return slices.ContainsFunc(outside, func(o string) bool { return rest == o || strings.HasPrefix(rest, o+"/") })
}
