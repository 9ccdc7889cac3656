package api

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// ListPlugins serves GET /api/plugins.
func (a *API) ListPlugins(c *gin.Context) error {
	versions, err := a.svc.Plugins(c.Request.Context(), caller(c))
	if err != nil {
		return err
	}
	rows := make([]wire.PluginRow, len(versions))
	for i, v := range versions {
		kind := pack.Kind(v.Kind)
		rows[i] = wire.PluginRow{
			ID: v.ID(), Kind: v.Kind, LatestVersion: v.Version, Enabled: v.Enabled, Summary: v.Summary,
			Capability: kind.Capability(), Execution: kind.Execution(), Dialect: v.Dialect, Digest: v.Content.String(),
		}
	}
	c.JSON(http.StatusOK, wire.PluginList{Plugins: rows})
	return nil
}

func infoOf(v registry.Version) wire.Plugin {
	kind := pack.Kind(v.Kind)
	recipe, alias := v.RecipeID()
	return wire.Plugin{
		ID: v.ID(), Version: v.Version, Kind: v.Kind, Digest: v.Content.String(), Enabled: v.Enabled,
		CreatedBy: v.CreatedBy, CreatedAt: stamp(v.CreatedAt), Summary: v.Summary, Versions: []wire.VersionRow{},
		Manifest: v.Document, ManifestSchema: v.Dialect.Names().PluginSchema,
		Capability: kind.Capability(), Execution: kind.Execution(), Dialect: v.Dialect,
		TreeDigest: v.Tree.String(), ManifestDigest: v.Manifest.String(), Reference: v.Repository + ":" + v.Version,
		Reason: v.Reason, RevokedAt: maybeStamp(v.RevokedAt), SizeBytes: v.Layer.Size, Files: v.Files, Warnings: []string{}, Recipe: recipe, RecipeAlias: alias,
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// GetPlugin serves GET /api/plugins/{owner}/{name}[?version=V].
func (a *API) GetPlugin(c *gin.Context) error {
	p, err := a.svc.Plugin(c.Request.Context(), caller(c), c.Param("owner"), c.Param("name"), c.Query("version"))
	if err != nil {
		return err
	}
	info := infoOf(p.Version)
	for _, v := range p.Versions {
		info.Versions = append(info.Versions, wire.VersionRow{Version: v.Version, Enabled: v.Enabled, CreatedAt: stamp(v.CreatedAt), Digest: v.Content.String(), Reason: v.Reason, RevokedAt: maybeStamp(v.RevokedAt)})
	}
	c.JSON(http.StatusOK, info)
	return nil
}

// PublishPlugin serves POST /api/plugins/publish[?owner=O]: a gzip tar of the pack and nothing else (wire.md 4.3).
func (a *API) PublishPlugin(c *gin.Context) error {
	v, warnings, err := a.svc.PublishArchive(c.Request.Context(), caller(c), c.Query("owner"), c.Request.Body)
	if err != nil {
		return err
	}
	info := infoOf(v)
	info.Warnings = append(info.Warnings, warnings...)
	c.JSON(http.StatusOK, info)
	return nil
}

// GetPackage serves GET /api/plugins/{owner}/{name}/package[?version=V]. It never redirects: the real clients would
// send their token along (wire.md 0).
func (a *API) GetPackage(c *gin.Context) error {
	blob, v, err := a.svc.OpenPackage(c.Request.Context(), caller(c), c.Param("owner"), c.Param("name"), c.Query("version"))
	if err != nil {
		return err
	}
	defer blob.Close()
	h := c.Writer.Header()
	h.Set("Content-Type", "application/gzip")
	h.Set("ETag", strconv.Quote(v.Layer.Digest.String()))
	h.Set("X-Content-Digest", v.Content.String())
	// It is given whole: no client of this route asks for a part, and net/http answers a range or a precondition that does
	// not hold in a form that they can't show.
	for _, name := range []string{"Range", "If-Match", "If-Unmodified-Since"} {
		c.Request.Header.Del(name)
	}
	http.ServeContent(c.Writer, c.Request, "", time.Time{}, blob)
	return nil
}

// PatchPlugin serves PATCH /api/plugins/{owner}/{name}: enable or disable a version, or all (wire.md 4.5).
func (a *API) PatchPlugin(c *gin.Context) error {
	var in wire.EnableRequest
	if err := decode(c, &in); err != nil {
		return err
	}
	if in.Enabled == nil {
		return registry.Errorf(registry.Invalid, "enabled: required field is missing (true or false)")
	}
	owner, name := c.Param("owner"), c.Param("name")
	answer := wire.Enabled{ID: owner + "/" + name, Enabled: *in.Enabled}
	var err error
	if *in.Enabled {
		answer.Affected, err = a.svc.SetEnabled(c.Request.Context(), caller(c), owner, name, in.Version, true)
	} else {
		var use registry.PackUse
		answer.Affected, use, err = a.svc.DisableVersion(c.Request.Context(), caller(c), owner, name, in.Version, in.Reason)
		answer.Use = new(useOf(use))
	}
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, answer)
	return nil
}

// ListExtensions serves GET /api/extensions: what the client syncs to its user's disk (wire.md 5.2).
func (a *API) ListExtensions(c *gin.Context) error {
	shelf, err := a.svc.Extensions(c.Request.Context(), caller(c))
	if err != nil {
		return err
	}
	list := wire.ExtensionList{Extensions: make([]wire.ExtensionRow, len(shelf))}
	for i, v := range shelf {
		list.Extensions[i] = wire.ExtensionRow{ID: v.ID(), Kind: v.Kind, Version: v.Version, Digest: v.Content, Enabled: true, TreeDigest: v.Tree}
	}
	c.JSON(http.StatusOK, list)
	return nil
}

// GetActivation serves GET /api/plugin-activations/{kind} (wire.md 4.6).
func (a *API) GetActivation(c *gin.Context) error {
	act, err := a.svc.Activation(c.Request.Context(), caller(c), c.Param("kind"))
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, gin.H{"kind": act.Kind, "generation": act.Generation, "reference": act.Reference})
	return nil
}

// PutActivation serves PUT /api/plugin-activations/{kind}: compare-and-set on the generation.
func (a *API) PutActivation(c *gin.Context) error {
	var in struct {
		Expected  *int64                  `json:"expected_generation"`
		Reference *registry.PackReference `json:"reference"`
	}
	if err := decode(c, &in); err != nil {
		return err
	}
	if in.Expected == nil {
		return registry.Errorf(registry.Invalid, "expected_generation: required field is missing")
	}
	act, err := a.svc.Activate(c.Request.Context(), caller(c), c.Param("kind"), in.Reference, *in.Expected)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, gin.H{"applied": true, "kind": act.Kind, "generation": act.Generation, "reference": act.Reference})
	return nil
}
