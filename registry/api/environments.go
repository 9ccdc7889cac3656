package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// SuiteUploads is the route that takes the bytes of environments and tasksets. Its query is the ticket, and no credential
// is looked at: the real clients send none (wire.md 7).
const SuiteUploads = "/api/suite-uploads"

// uploadType is what the clients are told to send.
const uploadType = "application/octet-stream"

func visibilityOf(private bool) string {
	if private {
		return "private"
	}
	return "public"
}

// suiteRows are the suites of a kind as lists show them.
func (a *API) suiteRows(c *gin.Context, kind suite.Kind) ([]wire.SuiteRow, error) {
	list, err := a.svc.Suites(c.Request.Context(), caller(c), kind)
	rows := make([]wire.SuiteRow, len(list))
	for i, u := range list {
		rows[i] = wire.SuiteRow{ID: u.ID().String(), Visibility: visibilityOf(u.Private), Versions: versionsOf(u), Dialect: u.Dialect, Digest: u.Tree.String()}
	}
	return rows, err
}

func versionsOf(u registry.Suite) []string {
	versions := make([]string, len(u.Versions))
	for i, v := range u.Versions {
		versions[i] = v.Version
	}
	return versions
}

// ListEnvironments serves GET /api/environments.
func (a *API) ListEnvironments(c *gin.Context) error {
	rows, err := a.suiteRows(c, suite.Environment)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, wire.EnvironmentList{Environments: rows})
	return nil
}

// ListTasksets serves GET /api/tasksets.
func (a *API) ListTasksets(c *gin.Context) error {
	rows, err := a.suiteRows(c, suite.Taskset)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, wire.TasksetList{Tasksets: rows})
	return nil
}

func suiteID(c *gin.Context, kind suite.Kind) registry.SuiteID {
	return registry.SuiteID{Kind: kind, Owner: c.Param("owner"), Name: c.Param("name")}
}

// GetEnvironmentManifest serves GET /api/environments/{o}/{n}/manifest[?version=V]: the manifest itself, as the dialect's
// client writes it.
func (a *API) GetEnvironmentManifest(c *gin.Context) error {
	u, err := a.svc.Suite(c.Request.Context(), caller(c), suiteID(c, suite.Environment), c.Query("version"))
	if err != nil {
		return err
	}
	c.Data(http.StatusOK, "application/json; charset=utf-8", u.Document)
	return nil
}

// GetEnvironment serves GET /api/environments/{o}/{n}[?version=V]: a version with its files.
func (a *API) GetEnvironment(c *gin.Context) error { return a.getSuite(c, suite.Environment) }

// GetTaskset serves GET /api/tasksets/{o}/{n}[?version=V]: a version with its files.
func (a *API) GetTaskset(c *gin.Context) error { return a.getSuite(c, suite.Taskset) }

func (a *API) getSuite(c *gin.Context, kind suite.Kind) error {
	u, index, err := a.svc.SuiteFilesOf(c.Request.Context(), caller(c), suiteID(c, kind), c.Query("version"))
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, suiteOf(u, index))
	return nil
}

func suiteOf(u registry.Suite, index suite.Index) wire.Suite {
	out := wire.Suite{
		ID: u.ID().String(), Kind: string(u.Kind), Version: u.Version, Versions: versionsOf(u), Visibility: visibilityOf(u.Private), Dialect: u.Dialect,
		Document: u.Document, Digest: u.Tree.String(), ManifestDigest: u.Manifest.String(), Reference: u.Repository + ":" + u.Version,
		CreatedBy: u.CreatedBy, CreatedAt: stamp(u.CreatedAt), Files: make([]wire.SuiteFile, len(index)),
	}
	for i, f := range index {
		out.Files[i] = wire.SuiteFile{Name: f.Name, Size: f.Size, SHA256: f.Digest.Hex()}
	}
	return out
}

// EnvironmentUpload serves POST /api/environments/upload-url.
func (a *API) EnvironmentUpload(c *gin.Context) error { return a.suiteUpload(c, suite.Environment) }

// TasksetUpload serves POST /api/tasksets/upload-url.
func (a *API) TasksetUpload(c *gin.Context) error { return a.suiteUpload(c, suite.Taskset) }

// suiteUpload answers with the address of one PUT, which is this server's own: where the bytes lie is nobody's business.
func (a *API) suiteUpload(c *gin.Context, kind suite.Kind) error {
	var in wire.UploadRequest
	if err := decode(c, &in); err != nil {
		return err
	}
	u := registry.SuiteUpload{Kind: kind, Name: in.Environment, Version: in.Version, File: in.Filename, Public: in.Visibility == "public"}
	if kind == suite.Taskset {
		u.Name = in.Taskset
	}
	if in.Visibility != "" && in.Visibility != "public" && in.Visibility != "private" {
		return registry.Errorf(registry.Invalid, "visibility: %.40q is neither public nor private", in.Visibility)
	}
	address := a.address(SuiteUploads)
	if address == "" {
		return registry.Errorf(registry.Unavailable, "this server does not know the address under which clients reach it: its administrator has to set public_url")
	}
	t, text, err := a.svc.TicketFor(c.Request.Context(), caller(c), u)
	if err != nil {
		return err
	}
	out := wire.UploadAddress{
		URL: address + "?ticket=" + text, Headers: map[string]string{"Content-Type": uploadType},
		ExpiresAt: stamp(time.Unix(t.Expires, 0)),
	}
	if kind == suite.Taskset {
		out.Taskset = t.ID().String()
	} else {
		out.Environment = t.ID().String()
	}
	noStore(c)
	c.JSON(http.StatusOK, out)
	return nil
}

// PutSuiteFile serves PUT /api/suite-uploads?ticket=T: the bytes of one file. index.json seals the version.
func (a *API) PutSuiteFile(c *gin.Context) error {
	t, sealed, err := a.svc.PutSuiteFile(c.Request.Context(), c.Query("ticket"), c.Request.ContentLength, c.Request.Body)
	if err != nil {
		return err
	}
	out := gin.H{"id": t.ID().String(), "version": t.Version, "filename": t.File, "sealed": sealed != nil}
	if sealed != nil {
		out["digest"], out["manifest_digest"] = sealed.Tree, sealed.Manifest
	}
	c.JSON(http.StatusOK, out)
	return nil
}

// AddRunner serves POST /api/environments/{o}/{n}/runners.
func (a *API) AddRunner(c *gin.Context) error {
	var in wire.NewRunner
	if err := decode(c, &in); err != nil {
		return err
	}
	r, credential, err := a.svc.AddRunner(c.Request.Context(), caller(c), suiteID(c, suite.Environment),
		registry.NewRunner{Address: in.Address, Version: in.Version, RunnerVersion: in.RunnerVersion})
	if err != nil {
		return err
	}
	noStore(c)
	c.JSON(http.StatusCreated, wire.RegisteredRunner{ID: r.ID, Credential: credential})
	return nil
}

func runnerOf(r registry.Runner) wire.Runner {
	row := wire.Runner{ID: r.ID, Address: r.Address, Version: r.Version, State: "silent", Fresh: r.Fresh(time.Now()), RunnerVersion: r.RunnerVersion, CreatedBy: r.CreatedBy, LastBeat: stamp(r.BeatAt)}
	if row.Fresh {
		row.State = "ready"
	}
	return row
}

// ListRunners serves GET /api/environments/{o}/{n}/runners.
func (a *API) ListRunners(c *gin.Context) error {
	list, err := a.svc.Runners(c.Request.Context(), caller(c), suiteID(c, suite.Environment))
	if err != nil {
		return err
	}
	rows := make([]wire.Runner, len(list))
	for i, r := range list {
		rows[i] = runnerOf(r)
	}
	c.JSON(http.StatusOK, wire.RunnerList{Runners: rows})
	return nil
}

// BeatRunner serves POST /api/env-runners/{id}/heartbeat, with the runner's own credential.
func (a *API) BeatRunner(c *gin.Context) error {
	var in wire.NewRunner
	if err := decode(c, &in); err != nil {
		return err
	}
	scheme, credential, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return registry.Errorf(registry.Unauthorized, "a runner sends the credential that it was registered with")
	}
	r, err := a.svc.BeatRunner(c.Request.Context(), c.Param("id"), strings.TrimSpace(credential), in.Address, in.RunnerVersion)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, runnerOf(r))
	return nil
}

// DeleteRunner serves DELETE /api/env-runners/{id}.
func (a *API) DeleteRunner(c *gin.Context) error {
	if err := a.svc.DeleteRunner(c.Request.Context(), caller(c), c.Param("id")); err != nil {
		return err
	}
	c.JSON(http.StatusOK, gin.H{"id": c.Param("id")})
	return nil
}
