package httperr

import (
	"context"
	"crypto/rand"
)

// RequestIDHeader carries a request's id in every answer.
const RequestIDHeader = "X-Request-Id"

type requestIDKey struct{}

// NewRequestID makes an id that no other request has.
func NewRequestID() string { return rand.Text() }

// WithRequestID puts a request's id into its context.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID is the id of the request, "" when the context has none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
