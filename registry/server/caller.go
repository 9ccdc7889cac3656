package server

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// principal authenticates a request: a bearer token, or Basic with the account's name and a token as the password,
// as OCI clients send it. A request without credentials is nobody's. Errors: Unauthorized.
func principal(ctx context.Context, s *registry.Service, r *http.Request) (auth.Principal, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return auth.Principal{}, nil
	}
	if account, secret, ok := r.BasicAuth(); ok {
		p, err := s.Authenticate(ctx, secret)
		if err == nil && p.Account != account {
			return auth.Principal{}, registry.Errorf(registry.Unauthorized, "the token is not one of account %.100q", account)
		}
		return p, err
	}
	scheme, secret, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return auth.Principal{}, registry.Errorf(registry.Unauthorized, "unknown authorization scheme %.40q (Bearer and Basic are known)", scheme)
	}
	return s.Authenticate(ctx, strings.TrimSpace(secret))
}

// withoutBase takes the client's base path off a request: `/sf`, `/tp`, either with `@<release>` (design.md 9). What
// it says about the caller goes into the context for callerOf.
func withoutBase(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, stripped, ok := callerFromPath(r)
		if ok {
			r = stripped
		} else {
			c = callerFromAgent(r.UserAgent())
		}
		next.ServeHTTP(w, r.WithContext(registry.WithCaller(r.Context(), c)))
	})
}

// withSession lets the client that signed in say its release, where neither the path nor the User-Agent does.
func withSession(ctx context.Context, session *auth.Session) context.Context {
	c := registry.CallerOf(ctx)
	if session == nil || c.Release != "" || session.Client != c.Dialect.Names().Client {
		return ctx
	}
	c.Release = session.Release
	return registry.WithCaller(ctx, c)
}

// callerFromPath reads the base path and gives the request without it. The path is cut in its escaped form, and both
// forms of what is left are made of that: a slash that is escaped must not be one for some readers and none for others.
func callerFromPath(r *http.Request) (registry.Caller, *http.Request, bool) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	client, release, _ := strings.Cut(first, "@")
	d, err := dialect.Parse(client)
	if err != nil || d.Names().Client != client || strings.Contains(release, "%") {
		return registry.Caller{}, nil, false
	}
	path, err := url.PathUnescape("/" + rest)
	if err != nil {
		return registry.Caller{}, nil, false
	}
	out := r.Clone(r.Context())
	out.URL.Path, out.URL.RawPath = path, "/"+rest
	return registry.Caller{Dialect: d, Release: release}, out, true
}

// callerFromAgent reads the User-Agent: tp names itself and its release, sf sends urllib's (wire.md 0).
func callerFromAgent(agent string) registry.Caller {
	product, _, _ := strings.Cut(agent, " ")
	name, release, _ := strings.Cut(product, "/")
	if name == "tuneplane-cli" {
		return registry.Caller{Dialect: dialect.TunePlane, Release: release}
	}
	return registry.Caller{Dialect: dialect.Forge}
}
