package server

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry/api"
)

// route is a line of the one route list.
type route struct {
	method, path string
	handler      api.Handler
}

// routes lists everything below /api. What the real clients may ask for beyond it stands in package api as Outside.
func routes(a *api.API) []route {
	return []route{
		{http.MethodGet, "/api/version", a.Version},
		{http.MethodGet, "/api/whoami", a.Whoami},
		{http.MethodGet, "/api/admin/users", a.ListUsers},
		{http.MethodPost, "/api/admin/users", a.CreateUser},
		{http.MethodPatch, "/api/admin/users/:name/role", a.SetRole},
		{http.MethodPatch, "/api/admin/users/:name/disabled", a.SetDisabled},
		{http.MethodPost, "/api/admin/quotas", a.SetQuota},
		{http.MethodPut, "/api/admin/catalog/:client", a.PutCatalogue},
		{http.MethodGet, "/api/tokens", a.ListTokens},
		{http.MethodPost, "/api/tokens", a.CreateToken},
		{http.MethodDelete, "/api/tokens/:id", a.RevokeToken},
		{http.MethodGet, "/api/audit", a.ListAudit},

		{http.MethodGet, "/api/plugins", a.ListPlugins},
		{http.MethodPost, "/api/plugins/publish", a.PublishPlugin},
		{http.MethodGet, "/api/plugins/:owner/:name", a.GetPlugin},
		{http.MethodPatch, "/api/plugins/:owner/:name", a.PatchPlugin},
		{http.MethodGet, "/api/plugins/:owner/:name/package", a.GetPackage},
		{http.MethodGet, "/api/extensions", a.ListExtensions},
		{http.MethodGet, "/api/plugin-activations/:kind", a.GetActivation},
		{http.MethodPut, "/api/plugin-activations/:kind", a.PutActivation},

		{http.MethodGet, "/api/recipes", a.GetCatalogue},
		{http.MethodGet, "/api/cluster/status", a.ClusterStatus},
		{http.MethodGet, "/api/usage/mine", a.Usage},
		{http.MethodPost, "/api/admission", a.DryRun},
		{http.MethodPost, "/api/jobs", a.SubmitJob},
		{http.MethodGet, "/api/jobs/mine", a.ListJobs},
		{http.MethodGet, "/api/jobs/:id", a.GetJob},
		{http.MethodGet, "/api/jobs/:id/spec", a.GetSpec},
		{http.MethodGet, "/api/jobs/:id/receipt", a.GetReceipt},
		{http.MethodPost, "/api/job/stop", a.StopJob},
		{http.MethodPost, "/api/submissions/uploads", a.StartPackage},
		{http.MethodPut, "/api/submissions/uploads/:id", a.PutPackage},
		{http.MethodPost, "/api/submissions/previews", a.Preview},
		{http.MethodPost, "/api/submissions/commits", a.Commit},
		{http.MethodGet, "/api/trust", a.GetTrust},
	}
}

// install mounts the routes; wrap turns a handler's error into its answer.
func install(engine *gin.Engine, list []route, wrap func(api.Handler) gin.HandlerFunc) {
	for _, r := range list {
		engine.Handle(r.method, r.path, wrap(r.handler))
	}
}
