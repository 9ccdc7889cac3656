package server

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

const (
	idleTimeout    = 2 * time.Minute  // for a kept-alive connection
	expiryInterval = 10 * time.Minute // between sweeps of expired upload sessions
	restInterval   = 5 * time.Second  // between looks at whether there is nothing to do
	// leaveTimeout is how long handlers may take to notice that their connections are closed.
	leaveTimeout = 5 * time.Second
)

// Run serves until ctx ends. Then /readyz fails at once; after the drain delay nothing new is accepted, and requests in
// flight may finish for the drain timeout before their connections are closed. Run returns nil when it stopped because it
// was told to.
func (s *Server) Run(ctx context.Context) error {
	// What is in flight outlives ctx; it ends with requests, which ends last.
	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	background, endBackground := context.WithCancel(ctx)
	work := s.startTasks(background)
	defer work.Wait()
	defer endBackground()

	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: s.config.Limits.HeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: limit.Header,
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // what clients do to their connections is no fault of ours
		BaseContext: func(net.Listener) context.Context { return requests },
		ConnContext: markExtra,
	}
	if s.certificate != nil {
		srv.TLSConfig = s.certificate.config()
	}
	failed := make(chan error, 2) // one of each address, so that none waits for ever
	go func() {
		if s.certificate == nil {
			failed <- srv.Serve(s.listener)
			return
		}
		failed <- srv.ServeTLS(s.listener, "", "")
	}()
	if s.metricsListener != nil {
		side := &http.Server{Handler: s.metricsHandler(), ReadHeaderTimeout: s.config.Limits.HeaderTimeout, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
			IdleTimeout: idleTimeout, ErrorLog: srv.ErrorLog}
		defer side.Close()
		go func() { failed <- side.Serve(s.metricsListener) }()
	}
	select {
	case err := <-failed:
		return errors.Join(closed(err), srv.Close())
	case <-ctx.Done():
	}
	s.ready.draining.Store(true)
	s.log.InfoContext(ctx, "stopping: requests in flight may finish", "count", s.handler.inFlight.Load(), "drain_timeout", s.config.DrainTimeout.String())
	select {
	case err := <-failed:
		return errors.Join(closed(err), srv.Close())
	case <-time.After(s.config.DrainDelay):
	}
	return s.drain(srv, endRequests)
}

// closed names the error of a listener that Close has closed.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return http.ErrServerClosed
	}
	return err
}

// drain lets requests in flight finish, and ends those that take too long.
func (s *Server) drain(srv *http.Server, endRequests func()) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.DrainTimeout)
	defer cancel()
	err := srv.Shutdown(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.log.Warn("the drain timeout is over: requests are cut off", "count", s.handler.inFlight.Load())
	err = srv.Close()
	endRequests()
	// The stores must not be closed below a handler that still works.
	for end := time.Now().Add(leaveTimeout); s.handler.inFlight.Load() > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// task is work that is done again and again while the server runs.
type task struct {
	name  string
	every time.Duration
	run   func(context.Context) error
}

// tasks lists the work in the background. Every replica does it: each use case bears that others do it too.
func (s *Server) tasks() []task {
	return []task{
		{"expire", expiryInterval, func(ctx context.Context) error {
			n, err := s.svc.Expire(ctx)
			if n > 0 {
				s.log.InfoContext(ctx, "expired uploads removed", "count", n)
			}
			return err
		}},
		{"collect", time.Minute, s.svc.CollectWhenDue},
		{"scrub", time.Minute, s.svc.ScrubWhenDue},
		{"rest", restInterval, s.rest},
		{"audit", time.Minute, func(ctx context.Context) error {
			s.svc.SettleRefusals(ctx, false)
			return nil
		}},
	}
}

// rest gives the memory of a burst of work back to the system once there was none for a while: the collector alone keeps what
// it took for minutes, and caches keep what nobody asks for. It costs a collection of a heap that is small then.
func (s *Server) rest(ctx context.Context) error {
	begun := s.handler.begun.Load()
	quiet := begun == s.seen && s.handler.inFlight.Load() == 0
	s.seen = begun
	if !quiet || begun == s.rested {
		return nil
	}
	s.rested = begun
	s.svc.Rest()
	err := s.restMeta(ctx)
	debug.FreeOSMemory()
	return err
}

// startTasks starts the work; it ends with ctx.
func (s *Server) startTasks(ctx context.Context) *sync.WaitGroup {
	var all sync.WaitGroup
	all.Go(func() { s.svc.HandOver(ctx) })
	for _, t := range s.tasks() {
		all.Go(func() {
			for sleep(ctx, jitter(t.every)) {
				err := t.run(ctx)
				outcome := "ok"
				switch {
				case ctx.Err() != nil:
					return
				case err != nil:
					outcome = "failed"
					s.log.ErrorContext(ctx, "work in the background failed", "task", t.name, "err", err)
				}
				s.metrics.tasks.WithLabelValues(t.name, outcome).Inc()
			}
		})
	}
	return &all
}

// jitter keeps replicas that were started together from working at the same moment for ever.
func jitter(d time.Duration) time.Duration { return d - d/10 + rand.N(d/5+1) }

// sleep waits and reports whether ctx still lives.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
