package server

import (
	"context"
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/gatehouse-registry/gatehouse/registry/httperr"
)

// NewLogger makes the log of a server as its configuration says. terminal says whether w is one.
func NewLogger(w io.Writer, c Config, terminal bool) *slog.Logger {
	c = c.complete()
	var level slog.Level
	level.UnmarshalText([]byte(c.LogLevel)) // LoadConfig has looked; else it is info
	opt := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "text" || c.LogFormat == "auto" && terminal {
		return slog.New(contextHandler{slog.NewTextHandler(w, opt)})
	}
	return slog.New(contextHandler{slog.NewJSONHandler(w, opt)})
}

// contextHandler adds to every record which request and which trace it belongs to.
type contextHandler struct{ slog.Handler }

func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	if id := httperr.RequestID(ctx); id != "" {
		r.AddAttrs(slog.String("id", id))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace", span.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h contextHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return contextHandler{h.Handler.WithAttrs(attrs)}
}

func (h contextHandler) WithGroup(name string) slog.Handler {
	return contextHandler{h.Handler.WithGroup(name)}
}
