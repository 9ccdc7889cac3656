package server

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/httperr"
	"github.com/gatehouse-registry/gatehouse/registry/oci"
	"github.com/gatehouse-registry/gatehouse/web"
)

// newHandler builds the whole HTTP surface: the OCI protocol as a plain handler mounted under gin, the API, and the
// health checks.
func (s *Server) newHandler() (*observer, error) {
	trusted, err := newProxies(s.config.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("trusted_proxies: %w", err)
	}
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash, engine.RedirectFixedPath = false, false
	engine.HandleMethodNotAllowed = false
	engine.UseRawPath, engine.UnescapePathValues = true, true
	if err := engine.SetTrustedProxies(nil); err != nil { // package server does that itself, for net/http handlers too
		return nil, err
	}
	pages, err := web.New(s.svc, s.config.PublicURL, s.overTLS())
	if err != nil {
		return nil, fmt.Errorf("public_url: %w", err)
	}
	a := api.New(s.svc, s.version, s.address, s.log)
	answer := func(form httperr.Form, c *gin.Context, err error) {
		httperr.Write(c.Writer, c.Request, s.log, form, err)
		c.Abort()
	}
	wrap := func(h api.Handler) gin.HandlerFunc {
		return func(c *gin.Context) {
			if err := h(c); err != nil {
				answer(formOf(c.Request.URL.Path), c, err)
			}
		}
	}
	idle := s.config.Limits.IdleTimeout
	engine.Use(recoverPanics(answer, s.log), guardPages(pages, answer), s.challenge, authenticate(s.svc, &failedSignIns{}, answer), fair(newLimiter(s.config.Limits), s.metrics, answer), checkQuery(answer), guardBody(idle))
	install(engine, s.svc, routes(a, pages), wrap)
	protocol := oci.New(oci.Options{Service: s.svc, Log: s.log, IdleTimeout: idle, Principal: func(r *http.Request) (auth.Principal, error) {
		return auth.PrincipalOf(r.Context()), nil
	}})
	tokens := oci.NewToken(s.svc, s.log)
	engine.Any(protocolRoute, func(c *gin.Context) {
		if isToken(c) {
			tokens.ServeHTTP(c.Writer, c.Request)
			return
		}
		protocol.ServeHTTP(c.Writer, c.Request)
	})
	engine.GET("/v2", gin.WrapH(http.RedirectHandler("/v2/", http.StatusMovedPermanently)))
	engine.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	engine.GET("/readyz", func(c *gin.Context) { s.ready.answer(c.Writer, c.Request, s.mayWatch(c.Request)) })
	engine.GET("/metrics", wrap(s.showMetrics))
	engine.NoRoute(func(c *gin.Context) { answer(formOf(c.Request.URL.Path), c, a.NoRoute(c)) })
	o := &observer{next: engine, log: s.log, metrics: s.metrics, tracing: s.tracing, proxies: trusted, idle: idle}
	o.chain = withoutBase(o)
	return o, nil
}

// showMetrics answers who may see everything.
func (s *Server) showMetrics(c *gin.Context) error {
	ctx := c.Request.Context()
	if err := s.svc.Require(ctx, auth.PrincipalOf(ctx), auth.ReadAudit, "the metrics"); err != nil {
		return err
	}
	s.metrics.handler().ServeHTTP(c.Writer, c.Request)
	return nil
}

// mayWatch reports whether a request comes from somebody who may read the causes of failures. /readyz needs no sign-in, so
// a token that is not valid is one of nobody.
func (s *Server) mayWatch(r *http.Request) bool {
	if r.Header.Get("Authorization") == "" {
		return false
	}
	p, err := principal(r.Context(), s.svc, r)
	return err == nil && p.Can(auth.ReadAudit)
}

// metricsHandler is what answers at the address of its own: whoever reaches it sees everything.
func (s *Server) metricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { s.ready.answer(w, r, true) })
	return mux
}

// answerFunc answers a request with an error and ends its handling.
type answerFunc func(httperr.Form, *gin.Context, error)

// isOCI reports whether a path belongs to the distribution protocol.
func isOCI(path string) bool { return path == "/v2" || strings.HasPrefix(path, "/v2/") }

// formOf is the form of a route's errors.
func formOf(path string) httperr.Form {
	switch {
	case isOCI(path):
		return httperr.OCI
	case web.Is(path):
		return httperr.Page
	}
	return httperr.API
}

// guardPages lets package web see to the headers of its pages and the origin of their forms.
func guardPages(pages *web.Pages, answer answerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if !web.Is(c.Request.URL.Path) {
			return
		}
		if err := pages.Guard(c); err != nil {
			answer(httperr.Page, c, err)
		}
	}
}

// open lists the routes that need no sign-in and look at no credentials, beside the pages, which have cookies.
var open = map[string]bool{
	"/api/version": true, "/healthz": true, "/readyz": true,
	"/api/cli/device/code": true, "/api/cli/device/token": true, "/api/cli/token": true, "/api/auth/refresh": true, "/api/auth/logout": true,
	api.SuiteUploads: true, "/api/env-runners/:id/heartbeat": true, // a ticket, or a runner's own credential, is all that they look at
}

// launchRoutes lists where the token of a node's grant is taken, beside /v2: for the files of its job.
var launchRoutes = map[string]bool{"/api/jobs/:id/spec": true, "/api/jobs/:id/receipt": true, "/api/jobs/:id/package": true}

// checkGrant answers why the token of a grant is not taken at a route. That of a node's is a good credential at the wrong place:
// another one would do no better.
func checkGrant(p auth.Principal, route string) error {
	switch {
	case p.Launching() == nil:
		return registry.Errorf(registry.Unauthorized, "a bearer token of the token endpoint is for /v2 only: send a token (sf login)")
	case !launchRoutes[route]:
		return registry.Errorf(registry.Denied, "a grant is for what the receipt of job %s names, on /v2 and among the files of the job", p.Launching().Job)
	}
	return nil
}

// authenticate puts the principal into the request's context. A credential that is not valid is refused at once. Having
// none is refused too, on every route that open does not list, so that no handler can forget to ask. What counts is the
// route that serves the request, not how its path is spelled.
func authenticate(svc *registry.Service, failed *failedSignIns, answer answerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		path, route := c.Request.URL.Path, c.FullPath()
		if open[route] || web.Is(path) || isToken(c) {
			return
		}
		p, err := principal(c.Request.Context(), svc, c.Request)
		if err == nil && p.Grant != nil && route != protocolRoute {
			err = checkGrant(p, route)
		}
		if err != nil {
			err = failed.refuseSignIn(svc, c.Request, err)
		}
		if err == nil && p.Anonymous() && !mayBeAnonymous(svc, c) && (route != "" || strings.HasPrefix(path, "/api/")) {
			err = registry.Errorf(registry.Unauthorized, "not signed in: send a token (sf login)")
		}
		if err != nil {
			answer(formOf(path), c, err)
			return
		}
		asked := auth.PrincipalOf(c.Request.Context()) // nobody yet, but from somewhere
		p.Remote, p.Request = asked.Remote, asked.Request
		c.Request = c.Request.WithContext(withSession(c.Request.Context(), p.Session))
		if e := entryOf(c.Request.Context()); e != nil {
			e.account = p.Account
		}
		c.Request = c.Request.WithContext(auth.WithPrincipal(c.Request.Context(), p))
	}
}

// checkQuery refuses a query that can't be read whole: net/url leaves out what is malformed, and a request without its
// version means the latest.
func checkQuery(answer answerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.Request.URL.RawQuery == "" {
			return
		}
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
