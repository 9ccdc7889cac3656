package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// guardBody makes what goes wrong with a request's body the client's error, and not the server's. The distribution
// protocol has a guard of its own (package oci), with its own codes. It ends a request when no byte of its body comes for
// the idle time.
func guardBody(idle time.Duration) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.Request.ContentLength == 0 || isOCI(c.Request.URL.Path) {
			return
		}
		control := http.NewResponseController(c.Writer)
		control.SetReadDeadline(time.Now().Add(idle)) // for what a handler leaves unread, too
		c.Request.Body = &clientBody{ReadCloser: c.Request.Body, control: control, idle: idle}
	}
}

// clientBody is a body whose errors are Invalid.
type clientBody struct {
	io.ReadCloser
	control *http.ResponseController
	idle    time.Duration
	armed   time.Time // when the deadline was set last
}

func (b *clientBody) Read(p []byte) (int, error) {
	if now := time.Now(); now.Sub(b.armed) > b.idle/4 {
		b.armed = now
		b.control.SetReadDeadline(now.Add(b.idle)) // a writer that knows no deadlines has none
	}
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.control.SetReadDeadline(time.Time{}) // from here on the server watches the connection
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = registry.Errorf(registry.Invalid, "request body: no byte came for %v", b.idle)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = registry.Errorf(registry.Invalid, "request body: it ended before its Content-Length")
	default:
		err = registry.Errorf(registry.Invalid, "request body: %w", err)
	}
	return n, err
}
