package server

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/web"
)

// route is a line of the one route list. needs is what a caller's role must allow before anything of the request is read;
// what a namespace or an owner allows beyond that, the use case asks. The routes of open need nothing.
type route struct {
	method, path string
	needs        auth.Action
	handler      api.Handler
}

// routes lists everything below /api and /cli. What the real clients may ask for beyond it stands in package api as Outside.
func routes(a *api.API, p *web.Pages) []route {
	return []route{
		{http.MethodGet, "/cli/device", "", p.Device},
		{http.MethodPost, "/cli/device", "", p.PostDevice},
		{http.MethodGet, "/cli/authorize", "", p.Authorize},
		{http.MethodPost, "/cli/authorize", "", p.PostAuthorize},
		{http.MethodGet, "/cli/success", "", p.Success},
		{http.MethodGet, "/cli/style.css", "", p.Style},
		{http.MethodGet, "/cli/icon.svg", "", p.Icon},

		{http.MethodPost, "/api/cli/device/code", "", a.StartDevice},
		{http.MethodPost, "/api/cli/device/token", "", a.PollDevice},
		{http.MethodPost, "/api/cli/token", "", a.RedeemCode},
		{http.MethodPost, "/api/auth/refresh", "", a.Refresh},
		{http.MethodPost, "/api/auth/logout", "", a.Logout},
		{http.MethodPost, "/api/admin/device/approve", auth.ManageAccounts, a.ApproveDevice},
		{http.MethodGet, "/api/sessions", auth.OwnTokens, a.ListSessions},
		{http.MethodDelete, "/api/sessions/:id", auth.OwnTokens, a.RevokeSession},
		{http.MethodPost, "/api/password", auth.OwnTokens, a.ChangePassword},

		{http.MethodGet, "/api/version", "", a.Version},
		{http.MethodGet, "/api/whoami", auth.ReadContent, a.Whoami},
		{http.MethodGet, "/api/admin/users", auth.ManageAccounts, a.ListUsers},
		{http.MethodPost, "/api/admin/users", auth.ManageAccounts, a.CreateUser},
		{http.MethodPatch, "/api/admin/users/:name/role", auth.ManageAccounts, a.SetRole},
		{http.MethodPatch, "/api/admin/users/:name/disabled", auth.ManageAccounts, a.SetDisabled},
		{http.MethodPost, "/api/admin/quotas", auth.ManageAccounts, a.SetQuota},
		{http.MethodPut, "/api/admin/catalog/:client", auth.ImportCatalog, a.PutCatalogue},
		{http.MethodGet, "/api/admin/catalog/:client", auth.ReadCatalogue, a.ExportCatalogue},
		{http.MethodGet, "/api/admin/catalog", auth.ReadCatalogue, a.ListCatalogues},
		{http.MethodGet, "/api/tokens", auth.OwnTokens, a.ListTokens},
		{http.MethodPost, "/api/tokens", auth.OwnTokens, a.CreateToken},
		{http.MethodDelete, "/api/tokens/:id", auth.OwnTokens, a.RevokeToken},
		{http.MethodGet, "/api/audit", auth.ReadAudit, a.ListAudit},
		{http.MethodGet, "/api/robots", auth.ManageAccess, a.ListRobots},
		{http.MethodPost, "/api/robots", auth.ManageAccess, a.CreateRobot},
		{http.MethodDelete, "/api/robots/:name", auth.ManageAccess, a.DeleteRobot},
		{http.MethodGet, "/api/repositories/*name", auth.ManageAccess, a.GetRepository},
		{http.MethodPatch, "/api/repositories/*name", auth.ManageAccess, a.PatchRepository},
		{http.MethodGet, "/api/admin/namespaces", auth.ManageAccounts, a.ListNamespaces},
		{http.MethodPut, "/api/admin/namespaces", auth.ManageAccounts, a.PutNamespace},
		{http.MethodDelete, "/api/admin/namespaces", auth.ManageAccounts, a.DeleteNamespace},
		{http.MethodPost, "/api/gc", auth.CollectContent, a.Collect},
		{http.MethodPost, "/api/admin/fsck", auth.CheckContent, a.Fsck},
		{http.MethodGet, "/api/admin/scrub", auth.CheckContent, a.GetScrub},
		{http.MethodGet, "/api/admin/owners", auth.ManageQuotas, a.ListOwners},
		{http.MethodGet, "/api/admin/owners/:owner/quota", auth.ManageQuotas, a.GetOwnerQuota},
		{http.MethodPut, "/api/admin/owners/:owner/quota", auth.ManageQuotas, a.PutOwnerQuota},
		{http.MethodDelete, "/api/admin/owners/:owner/quota", auth.ManageQuotas, a.DeleteOwnerQuota},
		{http.MethodGet, "/api/admin/handover", auth.ReadAllJobs, a.ListHandovers},
		{http.MethodGet, "/api/admin/handover/:id", auth.ReadAllJobs, a.GetHandover},
		{http.MethodPost, "/api/admin/handover", auth.ManageJobs, a.RetryHandovers},
		{http.MethodGet, "/api/admin/read-only", auth.ManageAccounts, a.GetReadOnly},
		{http.MethodPut, "/api/admin/read-only", auth.ManageAccounts, a.PutReadOnly},

		{http.MethodGet, "/api/plugins", auth.ReadContent, a.ListPlugins},
		{http.MethodPost, "/api/plugins/publish", auth.WriteContent, a.PublishPlugin},
		{http.MethodGet, "/api/plugins/:owner/:name", auth.ReadContent, a.GetPlugin},
		{http.MethodPatch, "/api/plugins/:owner/:name", auth.ManagePacks, a.PatchPlugin},
		{http.MethodPost, "/api/plugins/:owner/:name/revoke", auth.RevokePacks, a.RevokePlugin},
		{http.MethodGet, "/api/plugins/:owner/:name/package", auth.ReadContent, a.GetPackage},
		{http.MethodGet, "/api/extensions", auth.ReadCatalogue, a.ListExtensions},
		{http.MethodGet, "/api/plugin-activations/:kind", auth.ReadCatalogue, a.GetActivation},
		{http.MethodPut, "/api/plugin-activations/:kind", auth.ManagePacks, a.PutActivation},

		{http.MethodGet, "/api/environments", auth.ReadContent, a.ListEnvironments},
		{http.MethodPost, "/api/environments/upload-url", auth.WriteContent, a.EnvironmentUpload},
		{http.MethodGet, "/api/environments/:owner/:name", auth.ReadContent, a.GetEnvironment},
		{http.MethodGet, "/api/environments/:owner/:name/manifest", auth.ReadContent, a.GetEnvironmentManifest},
		{http.MethodGet, "/api/environments/:owner/:name/runners", auth.ReadContent, a.ListRunners},
		{http.MethodPost, "/api/environments/:owner/:name/runners", auth.WriteContent, a.AddRunner},
		{http.MethodPost, "/api/env-runners/:id/heartbeat", "", a.BeatRunner},
		{http.MethodDelete, "/api/env-runners/:id", auth.WriteContent, a.DeleteRunner},
		{http.MethodGet, "/api/tasksets", auth.ReadContent, a.ListTasksets},
		{http.MethodPost, "/api/tasksets/upload-url", auth.WriteContent, a.TasksetUpload},
		{http.MethodGet, "/api/tasksets/:owner/:name", auth.ReadContent, a.GetTaskset},
		{http.MethodPut, api.SuiteUploads, "", a.PutSuiteFile},
		{http.MethodGet, "/api/rubrics", auth.ReadContent, a.ListRubrics},
		{http.MethodGet, "/api/rubrics/:owner/:name", auth.ReadContent, a.GetRubric},
		{http.MethodPut, "/api/rubrics/:owner/:name", auth.WriteContent, a.PutRubric},

		{http.MethodGet, "/api/recipes", auth.ReadCatalogue, a.GetCatalogue},
		{http.MethodGet, "/api/cluster/status", auth.ReadCatalogue, a.ClusterStatus},
		{http.MethodGet, "/api/usage/mine", auth.ReadOwnJobs, a.Usage},
		{http.MethodPost, "/api/admission", auth.SubmitJobs, a.DryRun},
		{http.MethodPost, "/api/jobs", auth.SubmitJobs, a.SubmitJob},
		{http.MethodGet, "/api/jobs", auth.ReadOwnJobs, a.FindJobs},
		{http.MethodGet, "/api/jobs/mine", auth.ReadOwnJobs, a.ListJobs},
		{http.MethodGet, "/api/jobs/:id", auth.ReadOwnJobs, a.GetJob},
		{http.MethodGet, "/api/jobs/:id/spec", auth.ReadJobFiles, a.GetSpec},
		{http.MethodGet, "/api/jobs/:id/decision", auth.ReadOwnJobs, a.GetDecision},
		{http.MethodGet, "/api/jobs/:id/receipt", auth.ReadJobFiles, a.GetReceipt},
		{http.MethodGet, "/api/jobs/:id/package", auth.ReadJobFiles, a.GetPackageOf},
		{http.MethodGet, "/api/job", auth.ReadOwnJobs, a.GetJob},
		{http.MethodPost, "/api/jobs/:id/state", auth.ReportJobs, a.ReportJob},
		{http.MethodPost, "/api/job/stop", auth.SubmitJobs, a.StopJob},
		{http.MethodPost, "/api/submissions/uploads", auth.SubmitJobs, a.StartPackage},
		{http.MethodPut, "/api/submissions/uploads/:id", auth.SubmitJobs, a.PutPackage},
		{http.MethodPatch, "/api/submissions/uploads/:id", auth.SubmitJobs, a.AppendPackage},
		{http.MethodHead, "/api/submissions/uploads/:id", auth.SubmitJobs, a.PackageOffset},
		{http.MethodPost, "/api/submissions/previews", auth.SubmitJobs, a.Preview},
		{http.MethodPost, "/api/submissions/commits", auth.SubmitJobs, a.Commit},
		{http.MethodGet, "/api/trust", auth.ReadTrust, a.GetTrust},

		{http.MethodGet, "/api/denylist", auth.ReadTrust, a.GetDenyList},
		{http.MethodPost, "/api/runs", auth.WriteRuns, a.RecordRun},
		{http.MethodGet, "/api/runs", auth.ReadOwnJobs, a.ListRuns},
		{http.MethodGet, "/api/runs/:id", auth.ReadOwnJobs, a.GetRun},
		{http.MethodGet, "/api/nodes", auth.ManageNodes, a.ListNodes},
		{http.MethodPost, "/api/nodes", auth.ManageNodes, a.CreateNode},
		{http.MethodPost, "/api/nodes/:name/token", auth.ManageNodes, a.RotateNode},
		{http.MethodDelete, "/api/nodes/:name", auth.ManageNodes, a.DeleteNode},
		{http.MethodPut, "/api/node/key", auth.ActAsNode, a.PutNodeKey},
		{http.MethodPost, "/api/node/grants", auth.ActAsNode, a.GrantLaunch},
	}
}

// install mounts the routes; wrap turns a handler's error into its answer.
func install(engine *gin.Engine, svc *registry.Service, list []route, wrap func(api.Handler) gin.HandlerFunc) {
	for _, r := range list {
		engine.Handle(r.method, r.path, wrap(func(c *gin.Context) error {
			if r.needs != "" {
				ctx := c.Request.Context()
				if err := svc.Require(ctx, auth.PrincipalOf(ctx), r.needs, r.method+" "+r.path); err != nil {
					return err
				}
			}
			return r.handler(c)
		}))
	}
}
