package server

import (
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/time/rate"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

// Names of limits, as the metric of refusals carries them.
const (
	limitRequests    = "requests"
	limitTransfers   = "transfers"
	limitRate        = "request_rate"
	limitConnections = "connections"
)

// maxCallers is how many callers with a rate are remembered before those that have been quiet are forgotten.
const maxCallers = 10_000

// rateBurst is for how many seconds a caller that was quiet may save its rate up.
const rateBurst = 5

// limiter holds every caller to its share: so many small requests and so many transfers at a time, and so many requests a
// second. A transfer lasts as long as its client's line is slow, so it does not count against the small ones.
type limiter struct {
	requests, transfers int
	perSecond           float64

	mu      sync.Mutex
	callers map[string]*usage
}

type usage struct {
	requests, transfers int
	rate                *rate.Limiter // nil: no such limit
}

func newLimiter(l Limits) *limiter {
	return &limiter{requests: l.Requests, transfers: l.Transfers, perSecond: l.RequestRate, callers: map[string]*usage{}}
}

// enter counts a request in, or says which limit is in the way and when to try again. Who enters must leave.
func (l *limiter) enter(caller string, transfer bool) (limit string, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.callers[caller]
	if u == nil {
		u = &usage{}
		if l.perSecond > 0 {
			l.forget()
			u.rate = rate.NewLimiter(rate.Limit(l.perSecond), max(1, int(l.perSecond*rateBurst)))
		}
		l.callers[caller] = u
	}
	switch {
	case transfer && u.transfers >= l.transfers:
		return limitTransfers, time.Second
	case !transfer && u.requests >= l.requests:
		return limitRequests, time.Second
	}
	if u.rate != nil {
		turn := u.rate.Reserve()
		if wait := turn.Delay(); wait > 0 {
			turn.Cancel()
			return limitRate, wait
		}
	}
	if transfer {
		u.transfers++
	} else {
		u.requests++
	}
	return "", 0
}

// leave counts a request out.
func (l *limiter) leave(caller string, transfer bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.callers[caller]
	if transfer {
		u.transfers--
	} else {
		u.requests--
	}
	if u.idle() && u.rate == nil {
		delete(l.callers, caller)
	}
}

func (u *usage) idle() bool { return u.requests == 0 && u.transfers == 0 }

// forget drops callers that have been quiet for long enough to have their whole rate again.
func (l *limiter) forget() {
	if len(l.callers) < maxCallers {
		return
	}
	for name, u := range l.callers {
		if u.idle() && u.rate.Tokens() >= float64(u.rate.Burst()) {
			delete(l.callers, name)
		}
	}
}

// fair answers TooManyRequests to a caller that has its share already. It stands behind authenticate, so that an account is
// one caller wherever it asks from, together with its robots, of which it may have any number; who did not sign in is known by
// the network.
func fair(l *limiter, m *metrics, answer answerFunc) gin.HandlerFunc {
	return func(c *gin.Context) {
		e := entryOf(c.Request.Context())
		if e == nil || e.class == classHealth || e.class == classScrape {
			return
		}
		caller := auth.PrincipalOf(c.Request.Context()).Namespace()
		if caller == "" {
			caller = "@" + callerNetwork(e.remote).String() // no account's name has an @
		}
		if limit, wait := l.enter(caller, e.transfer); limit != "" {
			m.limited.WithLabelValues(limit).Inc()
			err := registry.Errorf(registry.TooManyRequests, "%s", l.refusal(limit))
			err.RetryAfter = wait
			answer(formOf(c.Request.URL.Path), c, err)
			return
		}
		defer l.leave(caller, e.transfer)
		c.Next()
	}
}

func (l *limiter) refusal(limit string) string {
	switch limit {
	case limitTransfers:
		return "too many transfers at a time: wait until some of yours have ended, or make fewer at once"
	case limitRequests:
		return "too many requests at a time: wait until some of yours have ended, or make fewer at once"
	}
	return "too many requests a second: try again more slowly"
}
