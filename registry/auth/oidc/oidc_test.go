package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth/oidc"
)

const audience = "https://registry.example"

// issuer is an OpenID issuer that runs over TLS until the test ends.
type issuer struct {
	*httptest.Server
	tb      testing.TB
	keys    atomic.Pointer[jose.JSONWebKeySet]
	down    atomic.Bool
	asked   atomic.Int64 // times that its keys were
	answer  atomic.Pointer[string]
	private *ecdsa.PrivateKey
	kid     string
	ahead   time.Duration // of the verifier's clock
}

func startIssuer(tb testing.TB) *issuer {
	tb.Helper()
	i := &issuer{tb: tb}
	i.rotate("one")
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.serve(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/a", "token_endpoint": i.URL + "/t",
			"id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.asked.Add(1)
		if a := i.answer.Load(); a != nil {
			w.Write([]byte(*a))
			return
		}
		i.serve(w, i.keys.Load())
	})
	i.Server = httptest.NewTLSServer(mux)
	tb.Cleanup(i.Close)
	return i
}

func (i *issuer) serve(w http.ResponseWriter, v any) {
	if i.down.Load() {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

// rotate replaces the issuer's key.
func (i *issuer) rotate(kid string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.tb.Fatal(err)
	}
	i.private, i.kid = key, kid
	i.keys.Store(&jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: kid, Algorithm: "ES256", Use: "sig"}}})
}

// verifier trusts the issuer.
func (i *issuer) verifier() *oidc.Verifier {
	i.tb.Helper()
	file := filepath.Join(i.tb.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		i.tb.Fatal(err)
	}
	v, err := oidc.New([]oidc.Issuer{{URL: i.URL, Audience: audience, CAFile: file}}, func() time.Time { return time.Now().Add(i.ahead) })
	if err != nil {
		i.tb.Fatal(err)
	}
	return v
}

func (i *issuer) claims() map[string]any {
	now := time.Now()
	return map[string]any{"iss": i.URL, "aud": audience, "sub": "repo:team/x:ref:main", "exp": now.Add(time.Minute).Unix(), "iat": now.Unix(), "nbf": now.Unix()}
}

// sign makes a document of claims with the issuer's key.
func (i *issuer) sign(claims map[string]any) string {
	return sign(i.tb, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.private, KeyID: i.kid}}, claims)
}

func sign(tb testing.TB, key jose.SigningKey, claims map[string]any) string {
	tb.Helper()
	s, err := jose.NewSigner(key, nil)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := jwt.Signed(s).Claims(claims).Serialize()
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func TestVerify(t *testing.T) {
	i := startIssuer(t)
	w, err := i.verifier().Verify(t.Context(), i.sign(i.claims()))
	if err != nil || w.Issuer != i.URL || w.Claims["sub"] != "repo:team/x:ref:main" {
		t.Fatalf("%+v, %v", w, err)
	}
}

// TestRefused are documents that say something wrong, each in one place.
func TestRefused(t *testing.T) {
	i := startIssuer(t)
	v := i.verifier()
	with := func(name string, value any) string {
		c := i.claims()
		c[name] = value
		if value == nil {
			delete(c, name)
		}
		return i.sign(c)
	}
	ago, ahead := time.Now().Add(-2*time.Minute).Unix(), time.Now().Add(2*time.Minute).Unix()
	good := i.sign(i.claims())
	head, rest, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	header := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	public, err := x509.MarshalPKIXPublicKey(i.private.Public())
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other := startIssuer(t)
	for what, document := range map[string]string{
		"another audience": with("aud", "https://other.example"), "no audience": with("aud", nil), "expired": with("exp", ago), "no expiry": with("exp", nil),
		"not yet valid": with("nbf", ahead), "nbf is no number": with("nbf", "soon"), "another issuer": with("iss", "https://other.example"), "no issuer": with("iss", nil),
		"an issuer with a slash more": with("iss", i.URL+"/"), "another issuer's key": other.sign(i.claims()), "an unknown issuer": other.sign(other.claims()),
		"alg none":                  header(`{"alg":"none"}`) + "." + payload + ".",
		"alg none, signature":       header(`{"alg":"none"}`) + "." + payload + "." + signature,
		"HS256 with the public key": sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), KeyID: i.kid}}, i.claims()),
		"a stranger's RSA key":      sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: stranger, KeyID: i.kid}}, i.claims()),
		"an unknown key":            sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: stranger, KeyID: "x"}}, i.claims()),
		"no signature":              head + "." + payload + ".", "a cut one": good[:len(good)-4], "empty": "", "no JWT": "x", "two dots": "..", "no JSON": "e30.e30.e30",
		"a huge one": head + "." + strings.Repeat("A", 1<<20) + "." + signature,
	} {
		if _, err := v.Verify(t.Context(), document); registry.CodeOf(err) != registry.Unauthorized {
			t.Errorf("%s: %v, want Unauthorized", what, err)
		}
	}
	if _, err := v.Verify(t.Context(), good); err != nil {
		t.Errorf("the good one: %v", err)
	}
	// Clocks may differ by less than a minute.
	for what, document := range map[string]string{"just expired": with("exp", time.Now().Add(-30*time.Second).Unix()), "valid soon": with("nbf", time.Now().Add(30*time.Second).Unix())} {
		if _, err := v.Verify(t.Context(), document); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestRotation has the issuer change its key: documents of the new one are good once the old answer has had its time.
func TestRotation(t *testing.T) {
	i := startIssuer(t)
	v := i.verifier()
	old := i.sign(i.claims())
	if _, err := v.Verify(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	i.rotate("two")
	for range 20 {
		if _, err := v.Verify(t.Context(), i.sign(i.claims())); registry.CodeOf(err) != registry.Unauthorized {
			t.Fatalf("at once: %v", err)
		}
	}
	if n := i.asked.Load(); n != 1 {
		t.Errorf("the keys were asked for %d times, want 1", n)
	}
	i.ahead = 11 * time.Second
	i.verified(v, i.sign(i.claims()))
	if _, err := v.Verify(t.Context(), old); registry.CodeOf(err) != registry.Unauthorized {
		t.Errorf("a document of the old key: %v", err)
	}
}

// TestIssuerDown tells a document that can't be checked from one that is wrong, and recovers.
func TestIssuerDown(t *testing.T) {
	i := startIssuer(t)
	v := i.verifier()
	i.down.Store(true)
	document := i.sign(i.claims())
	for range 3 {
		_, err := v.Verify(t.Context(), document)
		if registry.CodeOf(err) != registry.Unavailable {
			t.Fatalf("issuer down: %v, want Unavailable", err)
		}
	}
	i.down.Store(false)
	i.ahead = 11 * time.Second
	i.verified(v, document)
	i.rotate("three")
	i.down.Store(true)
	i.ahead = 22 * time.Second
	i.unavailable(v, "keys can't be fetched")
	i.Close()
	i.ahead = 33 * time.Second
	i.unavailable(v, "nobody there")
}

// verified has a document verified, by the time that a fetch which has just ended is forgotten.
func (i *issuer) verified(v *oidc.Verifier, document string) {
	i.tb.Helper()
	var err error
	for range 100 {
		if _, err = v.Verify(i.tb.Context(), document); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	i.tb.Errorf("%v", err)
}

// unavailable has a document verified whose key must be fetched. A fetch that has just ended may answer for the next one
// too, so it is asked again.
func (i *issuer) unavailable(v *oidc.Verifier, what string) {
	i.tb.Helper()
	var err error
	for range 100 {
		if _, err = v.Verify(i.tb.Context(), i.sign(i.claims())); registry.CodeOf(err) == registry.Unavailable {
			return
		}
		time.Sleep(time.Millisecond)
	}
	i.tb.Errorf("%s: %v, want Unavailable", what, err)
}

func TestIssuerThatTalksTooMuch(t *testing.T) {
	i := startIssuer(t)
	long := `{"keys":[` + strings.Repeat(" ", 2<<20) + `]}`
	i.answer.Store(&long)
	if _, err := i.verifier().Verify(t.Context(), i.sign(i.claims())); registry.CodeOf(err) != registry.Unavailable {
		t.Errorf("%v, want Unavailable", err)
	}
}

func TestConfiguration(t *testing.T) {
	for _, bad := range []oidc.Issuer{
		{URL: "http://issuer.example", Audience: "x"}, {URL: "https://issuer.example"}, {URL: "issuer", Audience: "x"}, {Audience: "x"},
		{URL: "https://issuer.example?x=y", Audience: "x"}, {URL: "https://issuer.example", Audience: "x", CAFile: "missing.pem"},
	} {
		if _, err := oidc.New([]oidc.Issuer{bad}, time.Now); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
	one := oidc.Issuer{URL: "https://issuer.example", Audience: "x"}
	if _, err := oidc.New([]oidc.Issuer{one, one}, time.Now); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("an issuer that is named twice: %v", err)
	}
}
