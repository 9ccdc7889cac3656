package receipt

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
)

func sample() Receipt {
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	d := digest.FromBytes(nil)
	return Receipt{
		Audience: "r", Job: "j", Dialect: dialect.Forge, IssuedAt: at, Expires: at.Add(Lifetime), SpecBytes: d, SpecDigest: d,
		Plugins: []Pin{{ID: "lab/alpha", Version: "1", Kind: "algorithm", Content: d, Tree: d, Manifest: d}},
	}
}

func key(t *testing.T, seed byte) ed25519.PublicKey {
	t.Helper()
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize)).Public().(ed25519.PublicKey)
}

// A payload is read back as it was written; one that another reader could take otherwise is refused.
func TestParse(t *testing.T) {
	good, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Parse(good)
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.Encode()
	if err != nil || !bytes.Equal(good, again) {
		t.Errorf("written again: %s, %v\nexpected %s", again, err, good)
	}
	edit := func(old, new string) []byte { return []byte(strings.Replace(string(good), old, new, 1)) }
	for name, src := range map[string][]byte{
		"unknown key":      edit(`{"audience"`, `{"note":1,"audience"`),
		"repeated key":     edit(`{"audience":"r"`, `{"audience":"r","audience":"s"`),
		"key in two cases": edit(`{"audience":"r"`, `{"audience":"r","Audience":"s"`),
		"upper-case hex":   edit(`e3b0c442`, `E3B0C442`),
		"null document":    []byte("null"),
		"trailing text":    append(bytes.Clone(good), " 1"...),
		"long":             bytes.Repeat([]byte("["), 1<<21),
	} {
		_, err := Parse(src)
		var e *Error
		if !errors.As(err, &e) || e.Problem != Malformed {
			t.Errorf("%s: got %v, expected a malformed receipt", name, err)
		}
	}
}

// Key files may hold several keys, in either form; anything but ed25519 public keys is refused.
func TestParseTrust(t *testing.T) {
	a, b := key(t, 1), key(t, 2)
	pemA, _ := EncodeKey(a)
	pemB, _ := EncodeKey(b)
	both, err := ParseTrust(bytes.Join([][]byte{[]byte("old key\n"), pemA, []byte("\nnew key\n"), pemB, pemA}, nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(both.Keys()); got != 2 || both.Audience != "" {
		t.Errorf("found %d keys for %q, expected 2 for nobody in particular", got, both.Audience)
	}
	set, _ := NewTrustSet("registry-1", a, b)
	file, err := set.Encode()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseTrust(file)
	if err != nil || read.String() != both.String() || read.Audience != "registry-1" {
		t.Errorf("read back %s for %q, %v", read, read.Audience, err)
	}
	before, _ := NewTrustSet("registry-1", a)
	after, _ := NewTrustSet("registry-1", b)
	foreign, _ := NewTrustSet("registry-2", b)
	one, _ := before.Encode()
	two, _ := after.Encode()
	three, _ := foreign.Encode()
	for _, between := range []string{"", "\n"} {
		read, err := ParseTrust(bytes.Join([][]byte{one, two, nil}, []byte(between)))
		if err != nil || read.String() != both.String() || read.Audience != "registry-1" {
			t.Errorf("two documents with %q between them: read %s for %q, %v", between, read, read.Audience, err)
		}
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, _ := x509.MarshalPKIXPublicKey(&ec.PublicKey)
	for name, src := range map[string][]byte{
		"empty":         nil,
		"two audiences": slices.Concat(one, three),
		"a PEM behind":  slices.Concat(one, pemB),
		"no key":        []byte(`{"audience":"r","keys":[]}`),
		"an ecdsa key":  pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
		"a certificate": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"unknown field": []byte(`{"audience":"r","keys":[],"more":1}`),
		"too long":      bytes.Repeat([]byte("x"), maxTrust+1),
		"private key":   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	} {
		if got, err := ParseTrust(src); err == nil {
			t.Errorf("%s: read as %s", name, got)
		}
	}
}

// The id of a key is the digest of its DER form: openssl pkey -pubin -outform DER | sha256sum.
func TestKeyID(t *testing.T) {
	id, err := KeyID(key(t, 1))
	const want = "sha256:fd110d301d2f077de1414b8f99f441b1403fab207b2052fbd2c065e4ee8e7dc2"
	if err != nil || id != want {
		t.Errorf("got %s, %v, expected %s", id, err, want)
	}
	if _, err := KeyID(ed25519.PublicKey("short")); err == nil {
		t.Error("a short key has an id")
	}
}

// Whatever comes in, Verify answers with a receipt or an *Error.
func FuzzVerify(f *testing.F) {
	trust, err := NewTrustSet("r", ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"payloadType":"` + PayloadType + `","payload":"e30=","signatures":[{"keyid":"","sig":""}]}`))
	f.Add([]byte(`{"payloadType":"x","payload":"%%%","signatures":null}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		_, err := Verify(src, trust, "r", time.Unix(0, 0))
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("got %v, expected an *Error: nobody has the key", err)
		}
	})
}
