package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// tracing sends spans to a collector. nil sends none and costs nothing.
type tracing struct {
	tracer trace.Tracer
	close  func(context.Context) error
}

// openTracing reads the standard OTEL_… variables. Without an OTLP endpoint among them there is no tracing.
func openTracing(ctx context.Context, env func(string) string, version string, log *slog.Logger) (*tracing, error) {
	endpoint := env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") + env("OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint == "" || env("OTEL_SDK_DISABLED") == "true" || env("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT: %w", err)
	}
	res, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "gatehouse"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	// The exporter's failures have no other way out. They are no fault of a request.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are lost", "err", err) }))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	return &tracing{tracer: provider.Tracer("gatehouse"), close: provider.Shutdown}, nil
}

// methods are those that the registry knows.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

var nowhere = trace.SpanFromContext(context.Background())

// endTimeout is how long the last spans may take to reach the collector.
const endTimeout = 5 * time.Second

// end sends what is left. Spans that are lost stop nobody.
func (t *tracing) end(log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := t.close(ctx); err != nil {
		log.Warn("traces are lost", "err", err)
	}
	return nil
}

// request begins the span of a request, below that of the caller when it names one.
func (t *tracing) request(ctx context.Context, r *http.Request, c class) (context.Context, trace.Span) {
	if t == nil {
		return ctx, nowhere
	}
	method := r.Method
	if !slices.Contains(methods, method) {
		method = "OTHER" // a name that a client made up is no name of a span
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	return t.tracer.Start(ctx, method+" "+string(c), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", method), attribute.String("http.route", string(c)), attribute.String("url.path", r.URL.Path)))
}

// child begins the span of a step within a request that is traced.
func (t *tracing) child(ctx context.Context, name string) (context.Context, trace.Span) {
	if t == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, nowhere
	}
	return t.tracer.Start(ctx, name)
}

// answered ends the span of a request.
func answered(span trace.Span, status int) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(status))
	}
	span.End()
}

// ended ends the span of a step.
func ended(span trace.Span, err error) {
	if !span.IsRecording() {
		return
	}
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
