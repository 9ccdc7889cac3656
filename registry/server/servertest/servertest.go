// Package servertest runs whole servers of the embedded form, in this process, for the tests of their clients.
package servertest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// Server is one that runs.
type Server struct {
	URL   string
	Token string // of account admin
}

// Start runs a server, on a free port and in a folder of its own, until the test ends.
func Start(tb testing.TB) Server {
	tb.Helper()
	s, stop, err := Run(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := stop(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Run is Start over a data directory. The caller stops the server; a second stop does nothing more.
func Run(data string) (s Server, stop func() error, err error) {
	return run(server.Config{Data: data, Listen: "127.0.0.1:0"})
}

// RunTLS is Run with TLS. authority is the file of the certificate that clients must trust, as SSL_CERT_FILE does.
func RunTLS(data string) (s Server, authority string, stop func() error, err error) {
	cert, key, err := certificate(data)
	if err != nil {
		return s, "", nil, err
	}
	s, stop, err = run(server.Config{Data: data, Listen: "127.0.0.1:0", TLSCert: cert, TLSKey: key})
	return s, cert, stop, err
}

func run(config server.Config) (s Server, stop func() error, err error) {
	data := config.Data
	ctx, cancel := context.WithCancel(context.Background())
	opened, err := server.Open(ctx, config, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		cancel()
		return s, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- opened.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-ended, opened.Close())
	})
	token, err := os.ReadFile(filepath.Join(data, server.AdminTokenFile))
	if err != nil {
		return s, nil, errors.Join(err, stop())
	}
	return Server{URL: opened.URL(), Token: strings.TrimSpace(string(token))}, stop, nil
}
