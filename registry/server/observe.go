package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/httperr"
)

// entry is what is known of a request that is being served.
type entry struct {
	class    class
	transfer bool
	remote   netip.Addr // of the client, behind trusted proxies
	address  string     // the same as text
	account  string     // "" until somebody has signed in
}

type entryKey struct{}

// entryOf is the entry of a request, nil for work of the server's own.
func entryOf(ctx context.Context) *entry {
	e, _ := ctx.Value(entryKey{}).(*entry)
	return e
}

// observer is the outermost handler: it gives a request its id, its class and its client's address, and when it is over
// writes its line in the log, counts it and ends its span.
type observer struct {
	chain   http.Handler // what a connection is given to: this, behind what comes before it
	next    http.Handler
	log     *slog.Logger
	metrics *metrics
	tracing *tracing
	proxies proxies
	idle    time.Duration

	inFlight atomic.Int64
	begun    atomic.Int64 // requests since the start
}

func (o *observer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	e := &entry{remote: o.proxies.remote(r)}
	e.address = remoteText(e.remote)
	e.class, e.transfer = classOf(r.Method, r.URL.Path)
	id := r.Header.Get(httperr.RequestIDHeader)
	if !httperr.ValidRequestID(id) {
		id = httperr.NewRequestID()
	}
	w.Header().Set(httperr.RequestIDHeader, id)
	ctx := context.WithValue(httperr.WithRequestID(r.Context(), id), entryKey{}, e)
	ctx = auth.WithPrincipal(ctx, auth.Principal{Remote: e.address, Request: id})
	ctx, span := o.tracing.request(ctx, r, e.class)
	r = r.WithContext(ctx)
	body := &countedBody{ReadCloser: r.Body}
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = body
	}
	rec := newRecorder(w, o.idle)
	kind := "request"
	if e.transfer {
		kind = "transfer"
	}
	running := o.metrics.inFlight.WithLabelValues(kind)
	running.Inc()
	o.inFlight.Add(1)
	o.begun.Add(1)
	defer func() { // also when the connection is dropped on purpose
		rec.finish()
		running.Dec()
		o.inFlight.Add(-1)
		took := time.Since(start)
		o.metrics.answered(e.class, rec.status(), body.n, rec.bytes, took)
		answered(span, rec.status())
		o.line(ctx, r, e, rec, body.n, took)
	}()
	if isExtra(ctx) && e.class != classHealth {
		o.metrics.limited.WithLabelValues(limitConnections).Inc()
		rec.Header().Set("Connection", "close")
		httperr.Write(rec, r, o.log, formOf(r.URL.Path), registry.Errorf(registry.TooManyRequests, "the registry has as many connections as it takes: try again in a moment"))
		return
	}
	o.next.ServeHTTP(rec, r)
}

// line writes the one line of a request. Health checks are for who debugs.
func (o *observer) line(ctx context.Context, r *http.Request, e *entry, rec *statusRecorder, received int64, took time.Duration) {
	level := slog.LevelInfo
	if e.class == classHealth || e.class == classScrape {
		level = slog.LevelDebug
	}
	if !o.log.Enabled(ctx, level) {
		return
	}
	o.log.LogAttrs(ctx, level, "request", slog.String("method", r.Method), slog.String("path", r.URL.EscapedPath()), slog.String("route", string(e.class)),
		slog.String("account", e.account), slog.Int("status", rec.status()), slog.Int64("received", received), slog.Int64("bytes", rec.bytes),
		slog.Int64("ms", took.Milliseconds()), slog.String("remote", e.address))
}

func remoteText(ip netip.Addr) string {
	if !ip.IsValid() {
		return ""
	}
	return ip.String()
}

// countedBody counts what is read of a body.
type countedBody struct {
	io.ReadCloser
	n int64
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += int64(n)
	return n, err
}
