// Package httpbody guards the bodies of requests. A body that stands still ends its request, and whatever goes wrong with one
// is an error of the client, with the code of the route, and none of the server or its stores.
package httpbody

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// Bound puts a body under a read deadline before anybody reads it, for what a handler leaves unread: the server reads that
// before it answers. Without a body the server watches the connection already, and no deadline must end that.
func Bound(w http.ResponseWriter, r *http.Request, idle time.Duration) {
	if r.ContentLength != 0 {
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(idle))
	}
}

// Body is the body of a request that Bound was called for. It fails when no byte comes for the idle time; its errors have the
// code that it was made with.
type Body struct {
	io.ReadCloser
	control *http.ResponseController
	code    registry.Code
	idle    time.Duration
	armed   time.Time // when the deadline was set last
}

// New guards the body of r, which w answers.
func New(w http.ResponseWriter, r *http.Request, code registry.Code, idle time.Duration) *Body {
	return &Body{ReadCloser: r.Body, control: http.NewResponseController(w), code: code, idle: idle}
}

func (b *Body) Read(p []byte) (int, error) {
	if now := time.Now(); now.Sub(b.armed) > b.idle/4 {
		b.armed = now
		b.control.SetReadDeadline(now.Add(b.idle)) // a writer that knows no deadlines has none
	}
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		// From here on the server watches the connection while the handler works: the deadline must not end that. What a
		// handler leaves unread the server reads before it answers, and there the deadline must stay.
		b.control.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = registry.Errorf(b.code, "request body: no byte came for %v", b.idle)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = registry.Errorf(b.code, "request body: it ended before its Content-Length")
	default:
		err = registry.Errorf(b.code, "request body: %w", err)
	}
	return n, err
}
