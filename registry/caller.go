package registry

import (
	"context"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
)

// Caller is which client is asking: its dialect, and its release where it names one.
type Caller struct {
	Dialect dialect.Dialect
	Release string // "" means the dialect's default release
}

type callerKey struct{}

// WithCaller puts the caller into a request's context.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf is the caller of a request; forge without a release when the context has none.
func CallerOf(ctx context.Context) Caller {
	if c, ok := ctx.Value(callerKey{}).(Caller); ok {
		return c
	}
	return Caller{Dialect: dialect.Forge}
}
