package server

import (
	"context"
	"net/http"
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
		first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		client, release, _ := strings.Cut(first, "@")
		var c registry.Caller
		if d, err := dialect.Parse(client); err == nil && d.Names().Client == client {
			c = registry.Caller{Dialect: d, Release: release}
			r = stripPath(r, rest)
		} else {
			c = callerFromAgent(r.UserAgent())
		}
		next.ServeHTTP(w, r.WithContext(registry.WithCaller(r.Context(), c)))
	})
}

// stripPath is the request with its first path element removed, the escaped form too.
func stripPath(r *http.Request, rest string) *http.Request {
	out := r.Clone(r.Context())
	out.URL.Path = "/" + rest
	if raw := r.URL.RawPath; raw != "" {
		_, escaped, _ := strings.Cut(strings.TrimPrefix(raw, "/"), "/")
		out.URL.RawPath = "/" + escaped
	}
	return out
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
