package server

import (
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/httpbody"
)

// guardBody guards the bodies of every route but those of the distribution protocol, whose handler gives them codes of its
// own (package oci).
func guardBody(idle time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.Request.ContentLength == 0 || isOCI(c.Request.URL.Path) {
			return
		}
		httpbody.Bound(c.Writer, c.Request, idle)
		c.Request.Body = httpbody.New(c.Writer, c.Request, registry.Invalid, idle)
	}
}
