package bearer

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatehouse-registry/gatehouse/registry/auth"
)

func newKey() Key {
	k := make(Key, 32)
	rand.Read(k)
	return k
}

func TestSignAndVerify(t *testing.T) {
	k, now := newKey(), time.Now()
	claims := Claims{Use: Access, Account: "alice", Credential: "0123", Catalogue: true, Scopes: []auth.Scope{{Repository: "a/b", Actions: []auth.Verb{auth.Pull}}}}
	token, err := k.Sign(claims, "registry", now, 5*time.Minute)
	if err != nil || !LooksLike(token) {
		t.Fatalf("%q, %v", token, err)
	}
	got, err := k.Verify(token, "registry", now.Add(4*time.Minute), Access)
	claims.Expires = now.Add(5 * time.Minute).Truncate(time.Second)
	if diff := cmp.Diff(claims, got, cmpopts.EquateApproxTime(0)); err != nil || diff != "" {
		t.Fatalf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := k.Verify(token, "registry", now.Add(time.Hour), Access); !errors.Is(err, ErrExpired) {
		t.Errorf("a genuine token an hour later: %v, want ErrExpired", err)
	}
	for _, verify := range []func() (Claims, error){
		func() (Claims, error) { return k.Verify(token, "other", now.Add(time.Hour), Access) },
		func() (Claims, error) { return k.Verify(token, "registry", now.Add(time.Hour), Refresh) },
		func() (Claims, error) { return newKey().Verify(token, "registry", now.Add(time.Hour), Access) },
	} {
		if _, err := verify(); !errors.Is(err, ErrToken) || errors.Is(err, ErrExpired) {
			t.Errorf("what never was good, an hour later: %v, want ErrToken alone", err)
		}
	}
	for what, verify := range map[string]func() (Claims, error){
		"expired":          func() (Claims, error) { return k.Verify(token, "registry", now.Add(5*time.Minute), Access) },
		"not yet":          func() (Claims, error) { return k.Verify(token, "registry", now.Add(-2*time.Minute), Access) },
		"another audience": func() (Claims, error) { return k.Verify(token, "other", now, Access) },
		"another use":      func() (Claims, error) { return k.Verify(token, "registry", now, Refresh) },
		"another key":      func() (Claims, error) { return newKey().Verify(token, "registry", now, Access) },
		"cut":              func() (Claims, error) { return k.Verify(token[:len(token)-1], "registry", now, Access) },
		"long":             func() (Claims, error) { return k.Verify(token+strings.Repeat("A", maxToken), "registry", now, Access) },
		"empty":            func() (Claims, error) { return k.Verify("", "registry", now, Access) },
	} {
		if c, err := verify(); !errors.Is(err, ErrToken) || c.Account != "" {
			t.Errorf("%s: %+v, %v", what, c, err)
		}
	}
}

// TestForgeries are tokens that somebody else makes of the key's knowledge, or without any.
func TestForgeries(t *testing.T) {
	k, now := newKey(), time.Now()
	claims := map[string]any{"iss": "registry", "aud": "registry", "sub": "alice", "nbf": now.Unix(), "exp": now.Add(time.Minute).Unix(), "gatehouse": map[string]string{"use": "access", "account": "alice"}}
	with := func(name string, value any) map[string]any {
		out := map[string]any{}
		for n, v := range claims {
			out[n] = v
		}
		out[name] = value
		return out
	}
	sign := func(alg jose.SignatureAlgorithm, key []byte, claims map[string]any) string {
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := jwt.Signed(s).Claims(claims).Serialize()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if _, err := k.Verify(sign(jose.HS256, k, claims), "registry", now, Access); err != nil {
		t.Fatalf("the form that the others differ from: %v", err)
	}
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`))
	_, rest, _ := strings.Cut(sign(jose.HS256, k, claims), ".")
	payload, _, _ := strings.Cut(rest, ".")
	for what, token := range map[string]string{
		"HS512": sign(jose.HS512, append(k, k...), claims), "none": none + "." + payload + ".", "no expiry": sign(jose.HS256, k, with("exp", nil)), "no nbf": sign(jose.HS256, k, with("nbf", nil)),
		"another subject": sign(jose.HS256, k, with("sub", "bob")), "no use": sign(jose.HS256, k, with("gatehouse", map[string]string{"account": "alice"})),
	} {
		if _, err := k.Verify(token, "registry", now, Access); !errors.Is(err, ErrToken) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	k, now := newKey(), time.Now()
	token, err := k.Sign(Claims{Use: Access, Account: "alice", Credential: "0123", Scopes: []auth.Scope{{Repository: "a/b", Actions: []auth.Verb{auth.Pull}}}}, "registry", now, 5*time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Verify(token, "registry", now, Access); err != nil {
			b.Fatal(err)
		}
	}
}
