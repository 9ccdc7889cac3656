package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// writePair writes a new certificate for 127.0.0.1 with a serial number, signed by itself, and its key.
func writePair(t *testing.T, certPath, keyPath string, serial int64) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{certPath: {Type: "CERTIFICATE", Bytes: der}, keyPath: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// serial is the number of the certificate that a new connection meets.
func serial(t *testing.T, g *gatehouse) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(g.url, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certPath, keyPath := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := writePair(t, certPath, keyPath, 1)
	roots := x509.NewCertPool()
	roots.AddCert(first)
	var log lockedBuffer
	g := startGatehouse(t, jsonLog(&log, "info"), func(s *setup) { s.config.TLSCert, s.config.TLSKey = certPath, keyPath })
	if !strings.HasPrefix(g.url, "https://127.0.0.1:") {
		t.Fatalf("the server says it answers at %s", g.url)
	}
	g.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true, DisableCompression: true}
	request := func() error {
		res, err := g.http.Get(g.url + "/api/version")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
			return fmt.Errorf("%s over %s", res.Status, res.Proto)
		}
		return nil
	}
	if err := request(); err != nil {
		t.Fatal(err)
	}
	g.published("alice", algorithm("secure", "1.0.0"))
	old := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if conn, err := tls.Dial("tcp", strings.TrimPrefix(g.url, "https://"), old); err == nil {
		conn.Close()
		t.Error("TLS 1.1 was accepted")
	}

	if err := os.WriteFile(keyPath, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if got := serial(t, g); got != 1 {
			return fmt.Errorf("a broken pair serves certificate %d", got)
		}
		if !strings.Contains(log.String(), "the old one stays") {
			return errors.New("the log does not tell of the broken pair")
		}
		return nil
	})
	if !strings.Contains(string(g.get("admin", "/metrics").body), "gatehouse_tls_reload_failures_total 1") {
		t.Error("the broken pair is not counted")
	}
	writePair(t, certPath, keyPath, 2)
	eventually(t, func() error {
		if got := serial(t, g); got != 2 {
			return fmt.Errorf("certificate %d is served after the change", got)
		}
		return nil
	})
	if err := request(); err != nil { // the client trusts the first certificate alone: this is the connection of before
		t.Errorf("a connection that was open: %v", err)
	}
}
