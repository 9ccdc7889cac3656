package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/httperr"
	"github.com/gatehouse-registry/gatehouse/registry/oci"
)

// newHandler builds the whole HTTP surface: the OCI protocol as a plain handler mounted under gin, the API, and the
// health checks.
func newHandler(svc *registry.Service, version string, log *slog.Logger) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash, engine.RedirectFixedPath = false, false
	engine.HandleMethodNotAllowed = false
	engine.UseRawPath, engine.UnescapePathValues = true, true
	if err := engine.SetTrustedProxies(nil); err != nil {
		panic(err) // nil is always accepted
	}
	a := api.New(svc, version)
	answer := func(form httperr.Form, c *gin.Context, err error) {
		httperr.Write(c.Writer, c.Request, log, form, err)
		c.Abort()
	}
	wrap := func(h api.Handler) gin.HandlerFunc {
		return func(c *gin.Context) {
			if err := h(c); err != nil {
				answer(httperr.API, c, err)
			}
		}
	}
	engine.Use(recoverPanics(answer, log), authenticate(svc, answer), checkQuery(answer), guardBody)
	install(engine, svc, routes(a), wrap)
	protocol := oci.New(oci.Options{Service: svc, Log: log, Principal: func(r *http.Request) (auth.Principal, error) {
		return auth.PrincipalOf(r.Context()), nil
	}})
	engine.Any("/v2/*rest", gin.WrapH(protocol))
	engine.GET("/v2", gin.WrapH(http.RedirectHandler("/v2/", http.StatusMovedPermanently)))
	engine.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	engine.GET("/readyz", wrap(a.Ready))
	engine.NoRoute(func(c *gin.Context) { answer(formOf(c.Request.URL.Path), c, a.NoRoute(c)) })
	return withRequestID(logRequests(log, withoutBase(engine)))
}

// answerFunc answers a request with an error and ends its handling.
type answerFunc func(httperr.Form, *gin.Context, error)

// isOCI reports whether a path belongs to the distribution protocol.
func isOCI(path string) bool { return path == "/v2" || strings.HasPrefix(path, "/v2/") }

// formOf is the form of a route's errors.
func formOf(path string) httperr.Form {
	if isOCI(path) {
		return httperr.OCI
	}
	return httperr.API
}

// open lists the routes that need no sign-in and look at no credentials.
var open = map[string]bool{"/api/version": true, "/healthz": true, "/readyz": true}

// authenticate puts the principal into the request's context. A credential that is not valid is refused at once. Having
// none is refused too, on every route that open does not list, so that no handler can forget to ask. What counts is the
// route that serves the request, not how its path is spelled.
func authenticate(svc *registry.Service, answer answerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		path, route := c.Request.URL.Path, c.FullPath()
		if open[route] {
			return
		}
		p, err := principal(c.Request.Context(), svc, c.Request)
		if err == nil && p.Anonymous() && (route != "" || strings.HasPrefix(path, "/api/")) {
			err = registry.Errorf(registry.Unauthorized, "not signed in: send a token (sf login)")
		}
		if err != nil {
			answer(formOf(path), c, err)
			return
		}
		c.Request = c.Request.WithContext(auth.WithPrincipal(c.Request.Context(), p))
	}
}

// checkQuery refuses a query that can't be read whole: net/url leaves out what is malformed, and a request without its
// version means the latest.
func checkQuery(answer answerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if _, err := url.ParseQuery(c.Request.URL.RawQuery); err != nil {
			answer(formOf(c.Request.URL.Path), c, registry.Errorf(registry.Invalid, "query: %w", err))
		}
	}
}

// recoverPanics answers a panic as an internal error in the form of the route; httperr logs its stack. When a part of an
// answer is out, the connection is dropped: the client must not take that part for the whole.
func recoverPanics(answer answerFunc, log *slog.Logger) gin.HandlerFunc {
	return func(c *gin.Context) {
		defer func() {
			switch v := recover(); {
			case v == nil:
			case v == http.ErrAbortHandler:
				panic(v) // net/http's own way to drop a connection
			case c.Writer.Written():
				log.ErrorContext(c.Request.Context(), "panic in the middle of an answer", "panic", v, "stack", string(debug.Stack()))
				panic(http.ErrAbortHandler)
			default:
				answer(formOf(c.Request.URL.Path), c, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
			}
		}()
		c.Next()
	}
}

// logRequests writes one line a request.
func logRequests(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &statusRecorder{ResponseWriter: w}
		next.ServeHTTP(rec, r)
		log.InfoContext(r.Context(), "request", "id", httperr.RequestID(r.Context()), "method", r.Method, "path", r.URL.EscapedPath(),
			"status", rec.status(), "bytes", rec.bytes, "ms", time.Since(start).Milliseconds(), "remote", r.RemoteAddr)
	})
}
