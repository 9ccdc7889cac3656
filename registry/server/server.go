package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Server is an opened registry. Open one, Run it once, Close it.
type Server struct {
	svc      *registry.Service
	handler  *observer
	listener net.Listener
	log      *slog.Logger
	closers  []func() error
	config   Config
	version  string
	created  bool

	metrics         *metrics
	metricsListener net.Listener // nil: there is none
	tracing         *tracing
	certificate     *certificate // nil: plain HTTP
	ready           *readiness

	restMeta     func(context.Context) error // gives back the memory of the metadata's store
	seen, rested int64                       // requests begun when rest looked last, and when it last gave memory back
}

// Open takes the data directory, opens or creates the stores, and listens. On the first start of the registry it makes the
// administrator's account and writes its token to AdminTokenFile; of several replicas that start at once, one does.
// version is what the server calls itself.
func Open(ctx context.Context, c Config, version string, log *slog.Logger) (*Server, error) {
	return openWith(ctx, c, version, log, func(*registry.Deps) {})
}

// openWith is Open over the stores and the clock that change makes of the real ones.
func openWith(ctx context.Context, c Config, version string, log *slog.Logger, change func(*registry.Deps)) (s *Server, err error) {
	set, err := c.settings()
	if err != nil {
		return nil, err
	}
	s = &Server{log: log, config: c.complete(), version: version, metrics: newMetrics(version)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if s.tracing, err = openTracing(ctx, os.Getenv, version, log); err != nil {
		return s, err
	}
	if s.tracing != nil {
		s.closers = append(s.closers, func() error { return s.tracing.end(log) })
	}
	if err := s.openStores(ctx, set, change); err != nil {
		return s, err
	}
	if s.created, err = s.bootstrap(ctx); err != nil {
		return s, fmt.Errorf("first account: %w", err)
	}
	if s.handler, err = s.newHandler(); err != nil {
		return s, err
	}
	return s, s.listen()
}

// listen opens the addresses and notes the first in AddressFile.
func (s *Server) listen() (err error) {
	if s.config.TLSCert != "" {
		if s.certificate, err = loadCertificate(s.config.TLSCert, s.config.TLSKey, s.log, s.metrics.certificate.Inc); err != nil {
			return err
		}
	}
	plain, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return err
	}
	s.listener = newCappedListener(plain, s.config.Limits.Connections)
	s.closers = append(s.closers, func() error { return ignore(s.listener.Close(), net.ErrClosed) })
	if s.config.MetricsListen != "" {
		if s.metricsListener, err = net.Listen("tcp", s.config.MetricsListen); err != nil {
			return err
		}
		s.closers = append(s.closers, func() error { return ignore(s.metricsListener.Close(), net.ErrClosed) })
	}
	s.closers = append(s.closers, func() error { return os.Remove(s.config.path(AddressFile)) })
	return s.tellAddress()
}

// tellAddress writes AddressFile, whole for whoever reads it. It is only true while the server runs, so no disk waits for it.
func (s *Server) tellAddress() error {
	path := s.config.path(AddressFile)
	if err := os.WriteFile(path+".new", []byte(s.URL()+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// bootstrap makes the first account. The token's secret is on disk before the account exists, under a name that nobody takes
// for the real one: another replica may be the one that makes the account, and a crash may come between.
func (s *Server) bootstrap(ctx context.Context) (created bool, err error) {
	path, pending := s.config.path(AdminTokenFile), s.config.path(AdminTokenFile+".new")
	created, err = s.svc.Bootstrap(ctx, func(secret string) (string, error) { return saveSecret(pending, secret) })
	if err != nil && !errors.Is(err, registry.ErrConflict) {
		return false, err
	}
	secret, err := os.ReadFile(pending)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !created { // what an interrupted first start left: is it the account's?
		p, err := s.svc.Authenticate(ctx, strings.TrimSpace(string(secret)))
		switch {
		case registry.CodeOf(err) == registry.Unauthorized, err == nil && p.Account != registry.AdminAccount:
			return false, os.Remove(pending)
		case err != nil:
			return false, err
		}
	}
	return true, errors.Join(os.Rename(pending, path), durable.SyncFolder(s.config.Data))
}

// URL is the address at which the server answers: the configured public one, else where it listens.
func (s *Server) URL() string {
	switch {
	case s.config.PublicURL != "":
		return s.config.PublicURL
	case s.certificate != nil:
		return "https://" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// MetricsURL is where /metrics answers without a sign-in, "" when there is no such address.
func (s *Server) MetricsURL() string {
	if s.metricsListener == nil {
		return ""
	}
	return "http://" + s.metricsListener.Addr().String()
}

// Created reports whether this start made the registry; then AdminTokenFile holds the administrator's token.
func (s *Server) Created() bool { return s.created }

// Close releases everything. It is safe after a failed Open.
func (s *Server) Close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// ServeHTTP answers as the server does when it runs.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.chain.ServeHTTP(w, r) }
