package api

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// defaultHandovers is the number of rows in a list when the client names none.
const defaultHandovers = 50

func handoverOf(h registry.Handover) wire.Handover {
	row := wire.Handover{
		ID: h.ID, Job: h.Job, Target: h.Target, Event: string(h.Event), State: string(h.State), Tries: h.Tries,
		CreatedAt: stamp(h.CreatedAt), LastError: h.LastError,
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return stamp(t)
	}
	row.EndedAt = at(h.EndedAt)
	if h.State == registry.HandoverPending {
		row.DueAt, row.HeldUntil = at(h.DueAt), at(h.LeaseUntil)
	}
	return row
}

// ListHandovers serves GET /api/admin/handover[?target=T][&state=S][&job=ID][&limit=N][&before=ID].
func (a *API) ListHandovers(c *gin.Context) error {
	n, err := intQuery(c, "limit", defaultHandovers)
	if err != nil {
		return err
	}
	rows, err := a.svc.Handovers(c.Request.Context(), caller(c), registry.HandoverFilter{
		Target: c.Query("target"), State: registry.HandoverState(c.Query("state")), Job: c.Query("job"), Before: c.Query("before"), Limit: max(n, 1),
	})
	if err != nil {
		return err
	}
	list := wire.HandoverList{Handovers: make([]wire.Handover, len(rows))}
	for i, h := range rows {
		list.Handovers[i] = handoverOf(h)
	}
	c.JSON(http.StatusOK, list)
	return nil
}

// GetHandover serves GET /api/admin/handover/{id}.
func (a *API) GetHandover(c *gin.Context) error {
	h, err := a.svc.Handover(c.Request.Context(), caller(c), c.Param("id"))
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, handoverOf(h))
	return nil
}

// RetryHandovers serves POST /api/admin/handover {id} or {target} or {all: true}: what is tried again.
func (a *API) RetryHandovers(c *gin.Context) error {
	var in wire.HandoverRetry
	if err := decodeStrict(c, &in); err != nil {
		return err
	}
	named := 0
	for _, set := range []bool{in.ID != "", in.Target != "", in.All} {
		if set {
			named++
		}
	}
	if named != 1 {
		return registry.Errorf(registry.Invalid, "request body: one of id, target and all is needed")
	}
	n, err := a.svc.RetryHandovers(c.Request.Context(), caller(c), in.ID, in.Target)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, wire.HandoversRetried{Retried: n})
	return nil
}
