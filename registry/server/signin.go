package server

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/httperr"
	"github.com/gatehouse-registry/gatehouse/registry/oci"
)

// protocolRoute is the route of everything below /v2/.
const protocolRoute = "/v2/*rest"

// isToken reports whether a request is one to the token endpoint, which reads credentials itself.
func isToken(c *gin.Context) bool {
	return c.FullPath() == protocolRoute && c.Request.URL.Path == oci.TokenPath
}

// mayBeAnonymous reports whether a request without credentials goes on to its handler: only reading is ever open to
// everybody, and only by a setting.
func mayBeAnonymous(svc *registry.Service, c *gin.Context) bool {
	reads := c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
	return c.FullPath() == protocolRoute && reads && len(svc.Settings().AnonymousRead) > 0
}

// overTLS reports whether clients reach this server by https.
func (s *Server) overTLS() bool {
	return strings.HasPrefix(s.config.PublicURL, "https://") || s.config.PublicURL == "" && s.config.TLSCert != ""
}

// address is that of a path, "" when nobody can tell under which name clients reach this server. The Host header never tells.
func (s *Server) address(path string) string {
	if s.config.PublicURL == "" {
		at, err := netip.ParseAddrPort(s.listener.Addr().String())
		if err != nil || at.Addr().IsUnspecified() {
			return ""
		}
	}
	return strings.TrimRight(s.URL(), "/") + path
}

// challenge notes what a client must ask the token endpoint for, should it turn out not to be signed in.
func (s *Server) challenge(c *gin.Context) {
	if !isOCI(c.Request.URL.Path) || isToken(c) {
		return
	}
	r := c.Request
	c.Request = r.WithContext(httperr.WithChallenge(r.Context(), func() httperr.Challenge {
		return httperr.Challenge{Realm: s.address(oci.TokenPath), Service: s.svc.Settings().RegistryID, Scope: oci.Scope(r)}
	}))
}

// Failed sign-ins of one network. A valid credential always gets in: nobody locks others out by failing.
const (
	failuresPerSecond = 2
	failuresAtOnce    = 60
	maxFailing        = 4096 // networks that are remembered
)

// failedSignIns slows down networks that send one wrong credential after the other.
type failedSignIns struct {
	mu       sync.Mutex
	networks map[netip.Addr]*rate.Limiter
}

// more counts a failure and reports whether the network has too many.
func (f *failedSignIns) more(network netip.Addr, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.networks[network]
	if l == nil {
		if f.networks == nil || len(f.networks) >= maxFailing {
			f.networks = map[netip.Addr]*rate.Limiter{} // forgetting is kind to all, and bounded
		}
		l = rate.NewLimiter(failuresPerSecond, failuresAtOnce)
		f.networks[network] = l
	}
	return !l.AllowN(now, 1)
}

// refuseSignIn is the answer to a credential that is not valid. The first ones are recorded. A bearer token whose time is over
// does not count: many clients behind one address may find that out at once, and only the 401 has them fetch another.
func (f *failedSignIns) refuseSignIn(svc *registry.Service, r *http.Request, cause error) error {
	if registry.CodeOf(cause) != registry.Unauthorized {
		return cause
	}
	var network netip.Addr
	if e := entryOf(r.Context()); e != nil {
		network = callerNetwork(e.remote)
	}
	if !errors.Is(cause, registry.ErrExpiredToken) && f.more(network, time.Now()) {
		return &registry.Error{Code: registry.TooManyRequests, Message: "too many requests with a credential that is not valid", RetryAfter: time.Second}
	}
	account, _, _ := r.BasicAuth()
	svc.RefusedSignIn(r.Context(), account, cause)
	return cause
}
