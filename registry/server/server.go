package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
	"github.com/gatehouse-registry/gatehouse/registry/trust"
)

// Timeouts. There is none for writing: a large blob over a slow line is no fault.
const (
	headerTimeout  = 10 * time.Second // for a request's headers
	idleTimeout    = 2 * time.Minute  // for a kept-alive connection
	drainTimeout   = 30 * time.Second // for requests in flight when the server stops
	expiryInterval = 10 * time.Minute // between sweeps of expired upload sessions
)

// Server is an opened registry. Open one, Run it once, Close it.
type Server struct {
	svc      *registry.Service
	handler  http.Handler
	listener net.Listener
	log      *slog.Logger
	closers  []func() error
	config   Config
	created  bool
}

// Open takes the data directory, opens or creates the stores in it, and listens. On the first start it makes the
// administrator's account and writes its token to AdminTokenFile. version is what the server calls itself.
func Open(ctx context.Context, c Config, version string, log *slog.Logger) (*Server, error) {
	return openWith(ctx, c, version, log, func(*registry.Deps) {})
}

// openWith is Open over the stores and the clock that change makes of the real ones.
func openWith(ctx context.Context, c Config, version string, log *slog.Logger, change func(*registry.Deps)) (s *Server, err error) {
	set, err := c.settings()
	if err != nil {
		return nil, err
	}
	s = &Server{log: log, config: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if err := s.openStores(ctx, set, change); err != nil {
		return s, err
	}
	if s.created, err = s.svc.Bootstrap(ctx, func(secret string) (string, error) {
		return saveSecret(c.path(AdminTokenFile), secret)
	}); err != nil {
		return s, fmt.Errorf("first account: %w", err)
	}
	s.handler = newHandler(s.svc, version, log)
	if s.listener, err = net.Listen("tcp", c.listen()); err != nil {
		return s, err
	}
	s.closers = append(s.closers, func() error { return os.Remove(c.path(AddressFile)) })
	return s, durable.Replace(c.path(AddressFile), []byte(s.URL()+"\n"), 0o600)
}

// openStores opens everything below the data directory, in the order in which it depends on each other.
func (s *Server) openStores(ctx context.Context, set registry.Settings, change func(*registry.Deps)) error {
	release, err := lockData(s.config.Data)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, release)
	blobs, err := fs.Open(s.config.Data)
	if err != nil {
		return fmt.Errorf("blob store: %w", err)
	}
	s.closers = append(s.closers, blobs.Close)
	meta, err := metastore.OpenSQLite(ctx, s.config.path(databaseFile))
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	s.closers = append(s.closers, meta.Close)
	ledger, err := metastore.OpenLedger(s.config.path(ledgerFile))
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	s.closers = append(s.closers, ledger.Close)
	keys, err := trust.Open(s.config.path(keyFolder))
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	set.SpoolDir = s.config.path(spoolFolder)
	if set.RegistryID, err = registry.Identity(ctx, meta); err != nil {
		return err
	}
	deps := registry.Deps{Blobs: blobs, Meta: meta, Ledger: ledger, Signer: keys, Log: s.log}
	change(&deps)
	s.svc, err = registry.New(ctx, deps, set)
	return err
}

// URL is the address at which the server answers: the configured public one, else where it listens.
func (s *Server) URL() string {
	if s.config.PublicURL != "" {
		return s.config.PublicURL
	}
	return "http://" + s.listener.Addr().String()
}

// Created reports whether this start made the registry; then AdminTokenFile holds the administrator's token.
func (s *Server) Created() bool { return s.created }

// Run serves until ctx ends, then lets requests in flight finish, for at most half a minute.
func (s *Server) Run(ctx context.Context) error {
	srv := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: limit.Header,
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(s.listener) }()
	expiry := time.NewTicker(expiryInterval)
	defer expiry.Stop()
	for {
		select {
		case err := <-failed:
			return err
		case <-expiry.C:
			if n, err := s.svc.Expire(ctx); err != nil {
				s.log.ErrorContext(ctx, "expired uploads stay", "err", err)
			} else if n > 0 {
				s.log.InfoContext(ctx, "expired uploads removed", "count", n)
			}
		case <-ctx.Done():
			drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
			defer cancel()
			return srv.Shutdown(drain)
		}
	}
}

// Close releases the data directory. It is safe after a failed Open.
func (s *Server) Close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}
