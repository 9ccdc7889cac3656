package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// ListRubrics serves GET /api/rubrics.
func (a *API) ListRubrics(c *gin.Context) error {
	rows, err := a.suiteRows(c, suite.Rubric)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, wire.RubricList{Rubrics: rows})
	return nil
}

// PutRubric serves PUT /api/rubrics/{o}/{n}?version=V[&visibility=public]: the body is the text.
func (a *API) PutRubric(c *gin.Context) error {
	visibility := c.Query("visibility")
	if visibility != "" && visibility != "public" && visibility != "private" {
		return registry.Errorf(registry.Invalid, "visibility: %.40q is neither public nor private", visibility)
	}
	if c.Query("version") == "" {
		return registry.Errorf(registry.Invalid, "version: required in the query, for example ?version=1")
	}
	text, err := readBody(c, limit.RubricText)
	if err != nil {
		return err
	}
	v, err := a.svc.PutRubric(c.Request.Context(), caller(c), suiteID(c, suite.Rubric), c.Query("version"), visibility == "public", text)
	if err != nil {
		return err
	}
	c.JSON(http.StatusCreated, gin.H{
		"id": v.ID().String(), "version": v.Version, "digest": v.Tree, "manifest_digest": v.Manifest, "reference": v.Repository + ":" + v.Version,
	})
	return nil
}

// GetRubric serves GET /api/rubrics/{o}/{n}[?version=V]: a version with its text.
func (a *API) GetRubric(c *gin.Context) error {
	u, text, err := a.svc.Rubric(c.Request.Context(), caller(c), suiteID(c, suite.Rubric), c.Query("version"))
	if err != nil {
		return err
	}
	out := suiteOf(u, nil)
	out.Text = text
	c.JSON(http.StatusOK, out)
	return nil
}
