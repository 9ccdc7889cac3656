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

// ValidRequestID reports whether a client's own id may be kept: letters, digits and - _ . and at most 64 of them, so that it
// stands in a log and in a header as it is.
func ValidRequestID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// WithRequestID puts a request's id into its context.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID is the id of the request, "" when the context has none.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}
