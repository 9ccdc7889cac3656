package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// GetCatalogue serves GET /api/recipes[?facts=1] in the caller's dialect and release (wire.md 5.1): with facts also
// everything that is known of each recipe, for our own client.
func (a *API) GetCatalogue(c *gin.Context) error {
	facts := c.Query("facts") == "1"
	all, err := a.svc.Catalogue(c.Request.Context(), caller(c), facts)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, all.Answer(facts))
	return nil
}

// PutCatalogue serves PUT /api/admin/catalog/{sf|tp}[?release=V]: the snapshot of an installed client release.
func (a *API) PutCatalogue(c *gin.Context) error {
	d, err := dialect.Parse(c.Param("client"))
	if err != nil {
		return registry.Errorf(registry.NotFound, "catalogue: %w", err)
	}
	body, err := readBody(c, limit.JSONBody)
	if err != nil {
		return err
	}
	imported, err := a.svc.ImportCatalogue(c.Request.Context(), caller(c), d, c.Query("release"), body)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, imported)
	return nil
}

// ListCatalogues serves GET /api/admin/catalog: the client releases that are known.
func (a *API) ListCatalogues(c *gin.Context) error {
	known, err := a.svc.CatalogueReleases(c.Request.Context(), caller(c))
	if err != nil {
		return err
	}
	out := wire.CatalogueReleases{Releases: make([]wire.CatalogueRelease, len(known))}
	for i, k := range known {
		out.Releases[i] = wire.CatalogueRelease{
			Dialect: k.Dialect, Release: k.Release, Default: k.Default, Recipes: k.Recipes, Bundled: k.Bundled, Benchmarks: k.Benchmarks, ImportedBy: k.ImportedBy,
		}
		if !k.ImportedAt.IsZero() {
			out.Releases[i].ImportedAt = stamp(k.ImportedAt)
		}
	}
	c.JSON(http.StatusOK, out)
	return nil
}

// ExportCatalogue serves GET /api/admin/catalog/{sf|tp}[?release=V]: a snapshot as PutCatalogue takes it.
func (a *API) ExportCatalogue(c *gin.Context) error {
	d, err := dialect.Parse(c.Param("client"))
	if err != nil {
		return registry.Errorf(registry.NotFound, "catalogue: %w", err)
	}
	all, err := a.svc.CatalogueRelease(c.Request.Context(), caller(c), d, c.Query("release"))
	if err != nil {
		return err
	}
	document, err := all.Encode()
	if err != nil {
		return err
	}
	c.Data(http.StatusOK, "application/json; charset=utf-8", document)
	return nil
}

// ClusterStatus serves GET /api/cluster/status. An unknown profile fails on the client, so there is always at least
// one (wire.md 6).
func (a *API) ClusterStatus(c *gin.Context) error {
	c.JSON(http.StatusOK, gin.H{"profiles": a.svc.Settings().Profiles, "gpu": gin.H{}, "active_count": 0})
	return nil
}

// ListAudit serves GET /api/audit[?after=SEQ].
func (a *API) ListAudit(c *gin.Context) error {
	after, err := intQuery(c, "after", 0)
	if err != nil {
		return err
	}
	rows, err := a.svc.Audit(c.Request.Context(), caller(c), int64(after))
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, gin.H{"rows": rows})
	return nil
}
