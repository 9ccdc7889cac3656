package server

import (
	"fmt"
	"log/slog"
	"net/http"
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
	engine.Use(recoverPanics(answer), authenticate(svc, answer))
	install(engine, routes(a), wrap)
	protocol := oci.New(oci.Options{Service: svc, Log: log, Principal: func(r *http.Request) (auth.Principal, error) {
		return auth.PrincipalOf(r.Context()), nil
	}})
	engine.Any("/v2/*rest", gin.WrapH(protocol))
	engine.GET("/v2", gin.WrapH(http.RedirectHandler("/v2/", http.StatusMovedPermanently)))
	engine.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	engine.GET("/readyz", wrap(a.Ready))
	engine.NoRoute(wrap(a.NoRoute))
	return withRequestID(logRequests(log, withoutBase(engine)))
}

// answerFunc answers a request with an error and ends its handling.
type answerFunc func(httperr.Form, *gin.Context, error)

// formOf is the form of a route's errors.
func formOf(path string) httperr.Form {
	if strings.HasPrefix(path, "/v2/") {
		return httperr.OCI
	}
	return httperr.API
}

// open lists the routes below /api that need no sign-in.
var open = map[string]bool{"/api/version": true}

// authenticate puts the principal into the request's context. A credential that is not valid is refused at once;
// below /api having none is refused too, so that no handler can forget to ask.
func authenticate(svc *registry.Service, answer answerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		path := c.Request.URL.Path
		if open[path] {
			return
		}
		p, err := principal(c.Request.Context(), svc, c.Request)
		if err == nil && p.Anonymous() && strings.HasPrefix(path, "/api/") {
			err = registry.Errorf(registry.Unauthorized, "not signed in: send a token (sf login)")
		}
		if err != nil {
			answer(formOf(path), c, err)
			return
		}
		c.Request = c.Request.WithContext(auth.WithPrincipal(c.Request.Context(), p))
	}
}

// recoverPanics answers a panic as an internal error in the form of the route; httperr logs its stack.
func recoverPanics(answer answerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		defer func() {
			v := recover()
			if v == http.ErrAbortHandler {
				panic(v) // net/http's own way to drop a connection
			}
			if v != nil && !c.Writer.Written() {
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
