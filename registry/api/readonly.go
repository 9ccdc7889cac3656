package api

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// GetReadOnly serves GET /api/admin/read-only.
func (a *API) GetReadOnly(c *gin.Context) error {
	reason, err := a.svc.ReadOnly(c.Request.Context(), caller(c))
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, wire.ReadOnly{ReadOnly: reason != "", Reason: reason})
	return nil
}

// PutReadOnly serves PUT /api/admin/read-only {read_only, reason}.
func (a *API) PutReadOnly(c *gin.Context) error {
	var in wire.ReadOnly
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	switch {
	case !in.ReadOnly:
		in.Reason = ""
	case in.Reason == "":
		in.Reason = wire.DefaultReadOnlyReason
	}
	if err := a.svc.SetReadOnly(c.Request.Context(), caller(c), in.Reason); err != nil {
		return err
	}
	c.JSON(http.StatusOK, in)
	return nil
}
