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

// defaultReason is what clients are told when the administrator gave no reason.
const defaultReason = "an administrator made it read-only"

// PutReadOnly serves PUT /api/admin/read-only {read_only, reason}.
func (a *API) PutReadOnly(c *gin.Context) error {
	var in wire.ReadOnly
	if err := decode(c, &in); err != nil {
		return err
	}
	switch {
	case !in.ReadOnly:
		in.Reason = ""
	case in.Reason == "":
		in.Reason = defaultReason
	}
	if err := a.svc.SetReadOnly(c.Request.Context(), caller(c), in.Reason); err != nil {
		return err
	}
	c.JSON(http.StatusOK, in)
	return nil
}
