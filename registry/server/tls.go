package server

import (
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateCheck is how often a handshake looks whether the files have changed.
const certificateCheck = time.Second

// certificate is the pair of files that TLS is served with. A change is noticed at the next handshake; connections that
// are open stay. A pair that can't be used changes nothing: the old one goes on, and the log and a metric tell.
type certificate struct {
	certPath, keyPath string
	log               *slog.Logger
	failed            func() // counts a pair that can't be used

	mu      sync.Mutex
	pair    *tls.Certificate
	seen    [2]fs.FileInfo // of the files that were looked at last
	checked time.Time
}

// loadCertificate reads the pair; without one that can be used there is no start.
func loadCertificate(certPath, keyPath string, log *slog.Logger, failed func()) (*certificate, error) {
	c := &certificate{certPath: certPath, keyPath: keyPath, log: log, failed: failed}
	c.seen, _ = c.stat()
	var err error
	if c.pair, err = c.load(); err != nil {
		return nil, fmt.Errorf("tls_cert, tls_key: %w", err)
	}
	c.checked = time.Now()
	return c, nil
}

func (c *certificate) load() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.certPath, c.keyPath)
	if err != nil {
		return nil, err
	}
	return &pair, nil
}

func (c *certificate) stat() (both [2]fs.FileInfo, err error) {
	for i, path := range []string{c.certPath, c.keyPath} {
		if both[i], err = os.Stat(path); err != nil {
			return both, err
		}
	}
	return both, nil
}

// config is how TLS is served: 1.2 and later, HTTP/2 beside HTTP/1.1.
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return c.current(time.Now()), nil
	}}
}

// current is the pair to use; it is read again when a file has changed.
func (c *certificate) current(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.checked) < certificateCheck {
		return c.pair
	}
	c.checked = now
	both, err := c.stat()
	if sameFile(both[0], c.seen[0]) && sameFile(both[1], c.seen[1]) {
		return c.pair
	}
	c.seen = both
	var fresh *tls.Certificate
	if err == nil {
		fresh, err = c.load()
	}
	if err != nil {
		c.failed()
		c.log.Warn("the changed TLS certificate can't be used: the old one stays", "cert", c.certPath, "err", err)
		return c.pair
	}
	c.pair = fresh
	c.log.Info("the TLS certificate was read again", "cert", c.certPath)
	return c.pair
}

// sameFile reports whether a file is as it was; one that is missing is nil.
func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
