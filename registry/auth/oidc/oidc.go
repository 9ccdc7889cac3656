// Package oidc verifies the identity documents of programs: JWTs that an OpenID issuer signs, such as those of CI systems,
// Kubernetes service accounts and clouds. It is the registry's WorkloadVerifier. What is trusted is configured: an issuer,
// the audience that its documents must name, and no algorithm with a shared secret.
//
// An issuer's keys are fetched when they are first needed and kept; a document with an unknown key has them fetched again,
// but not more often than once in a few seconds. An issuer that can't be reached fails the documents that name it, and
// nothing else.
package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// Issuer is who signs documents.
type Issuer struct {
	URL      string // exactly as in the documents' iss
	Audience string // what their aud must hold
	CAFile   string // certificates in PEM that its TLS is checked against; "" takes the system's
}

const (
	maxDocument  = 16 << 10         // bytes of a document that is looked at
	maxAnswer    = 1 << 20          // bytes of an issuer's answer
	issuerTime   = 5 * time.Second  // for an issuer to answer
	answerAge    = 10 * time.Second // for which one answer of an issuer, a failure too, stands for the next ones
	skew         = time.Minute      // by which the issuer's clock and ours may differ
	maxRedirects = 3
)

// algorithms are those that are accepted: all of them have a public key.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// Verifier implements registry.WorkloadVerifier.
type Verifier struct {
	issuers map[string]*issuer
	now     func() time.Time
}

// New makes a verifier. It reads the files of certificates and asks nobody. now is time.Now in a server.
func New(issuers []Issuer, now func() time.Time) (*Verifier, error) {
	v := &Verifier{issuers: map[string]*issuer{}, now: now}
	for _, config := range issuers {
		if err := config.Check(); err != nil {
			return nil, err
		}
		if _, twice := v.issuers[config.URL]; twice {
			return nil, fmt.Errorf("issuer %s is named twice", config.URL)
		}
		client, err := newClient(config.CAFile, now)
		if err != nil {
			return nil, fmt.Errorf("issuer %s: %w", config.URL, err)
		}
		v.issuers[config.URL] = &issuer{Issuer: config, client: client, now: now}
	}
	return v, nil
}

// Check refuses an issuer whose word could be anybody's.
func (i Issuer) Check() error {
	u, err := url.Parse(i.URL)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("issuer: %q is no address", i.URL)
	case u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())):
		return fmt.Errorf("issuer: %q is not https", i.URL)
	case i.Audience == "":
		return fmt.Errorf("issuer %s: audience: required field is missing", i.URL)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Verify implements registry.WorkloadVerifier.
func (v *Verifier) Verify(ctx context.Context, document string) (registry.Workload, error) {
	name, err := issuerOf(document)
	if err != nil {
		return registry.Workload{}, invalid("it is no JWT: %w", err)
	}
	i, known := v.issuers[name]
	if !known {
		return registry.Workload{}, invalid("its issuer %.200q is not one that this registry trusts", name)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*issuerTime)
	defer cancel()
	keys, err := i.keySet(ctx)
	if err != nil {
		return registry.Workload{}, unavailable(name, err)
	}
	watched := &watchedKeys{keys: keys}
	token, err := oidc.NewVerifier(name, watched, &oidc.Config{
		ClientID: i.Audience, SupportedSigningAlgs: algorithms, Now: func() time.Time { return v.now().Add(-skew) },
	}).Verify(ctx, document)
	if watched.unreachable != nil {
		return registry.Workload{}, unavailable(name, watched.unreachable)
	}
	if err != nil {
		return registry.Workload{}, invalid("%w", err)
	}
	w := registry.Workload{Issuer: name}
	if err := token.Claims(&w.Claims); err != nil {
		return registry.Workload{}, invalid("%w", err)
	}
	if err := v.checkNotBefore(w.Claims); err != nil {
		return registry.Workload{}, err
	}
	return w, nil
}

// checkNotBefore holds nbf to our own skew: the library's is wider.
func (v *Verifier) checkNotBefore(claims map[string]any) error {
	value, has := claims["nbf"]
	if !has {
		return nil
	}
	seconds, ok := value.(float64)
	if !ok || time.Unix(int64(seconds), 0).After(v.now().Add(skew)) {
		return invalid("it is not valid yet (nbf)")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return registry.Errorf(registry.Unauthorized, "the identity document is not valid: "+format, args...)
}

func unavailable(issuer string, err error) error {
	return &registry.Error{Code: registry.Unavailable, Message: fmt.Sprintf("issuer %s can't be asked for its keys", issuer), Err: err}
}

// issuerOf reads whom a document says to be from, before anything of it is trusted.
func issuerOf(document string) (string, error) {
	if len(document) > maxDocument {
		return "", fmt.Errorf("%d bytes, at most %d are allowed", len(document), maxDocument)
	}
	parts := strings.Split(document, ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("it has %d parts, not 3", len(parts))
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", err
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return "", err
	}
	return claims.Issuer, nil
}

// issuer is an Issuer with what was learned of it.
type issuer struct {
	Issuer
	client *http.Client
	now    func() time.Time

	mu   sync.Mutex
	keys oidc.KeySet // nil until its configuration was read
}

// keySet is the issuer's keys; the first who asks reads the issuer's configuration.
func (i *issuer) keySet(ctx context.Context) (oidc.KeySet, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys != nil {
		return i.keys, nil
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.URL)
	if err != nil {
		return nil, err
	}
	var config struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&config); err != nil {
		return nil, err
	}
	if err := (Issuer{URL: config.Keys, Audience: i.Audience}).Check(); err != nil {
		return nil, fmt.Errorf("jwks_uri: %w", err)
	}
	// Keys are fetched for whoever comes later too: not with the context of this one.
	i.keys = oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), i.client), config.Keys)
	return i.keys, nil
}

// watchedKeys tells an issuer that does not answer from a signature that is wrong: the library gives one error for both.
type watchedKeys struct {
	keys        oidc.KeySet
	unreachable error
}

func (w *watchedKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := w.keys.VerifySignature(ctx, jwt)
	if _, ok := errors.AsType[*unreachableError](err); ok {
		w.unreachable = err
	}
	return payload, err
}

// newClient makes the client that asks an issuer.
func newClient(caFile string, now func() time.Time) (*http.Client, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: issuerTime,
		ResponseHeaderTimeout: issuerTime, MaxIdleConns: 2, IdleConnTimeout: time.Minute}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !transport.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ca_file: %s holds no certificate", caFile)
		}
	}
	return &http.Client{
		Transport: &patient{next: transport, now: now, answers: map[string]remembered{}}, Timeout: issuerTime,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return errors.New("too many redirects")
			}
			return nil
		},
	}, nil
}
