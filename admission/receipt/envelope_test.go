package receipt

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
)

const testType = "application/vnd.example+json"

func private(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func trusting(t testing.TB, seeds ...byte) TrustSet {
	t.Helper()
	var keys []ed25519.PublicKey
	for _, seed := range seeds {
		keys = append(keys, private(seed).Public().(ed25519.PublicKey))
	}
	set, err := NewTrustSet("", keys...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func sealed(t testing.TB, payloadType, payload string, seed byte) []byte {
	t.Helper()
	envelope, err := Sign(payloadType, []byte(payload), private(seed))
	if err != nil {
		t.Fatal(err)
	}
	return envelope
}

// An envelope is opened by any set that holds its key, and says which key that was.
func TestOpenSigned(t *testing.T) {
	envelope := sealed(t, testType, `{"a":1}`, 1)
	for _, seeds := range [][]byte{{1}, {1, 2}, {3, 2, 1}} {
		payload, id, err := trusting(t, seeds...).Open(envelope, testType, 1000)
		if want := trusting(t, 1).Keys()[0].ID; err != nil || string(payload) != `{"a":1}` || id != want {
			t.Errorf("keys %v: %s by %s, %v; expected %s", seeds, payload, id, err, want)
		}
	}
	if payload, err := Peek(envelope, testType, 1000); err != nil || string(payload) != `{"a":1}` {
		t.Errorf("peeked: %s, %v", payload, err)
	}
	// Of two signatures one by a trusted key is enough, in whatever order; the stranger's is not named.
	both := bytes.Replace(envelope, []byte(`"signatures":[`), []byte(`"signatures":[{"keyid":"x","sig":"AAAA"},`), 1)
	if _, id, err := trusting(t, 1).Open(both, testType, 1000); err != nil || id != trusting(t, 1).Keys()[0].ID {
		t.Errorf("signed twice: %s, %v", id, err)
	}
}

func TestOpenRefusals(t *testing.T) {
	good := string(sealed(t, testType, `{"a":1}`, 1))
	payload := base64.StdEncoding.EncodeToString([]byte(`{"a":1}`))
	other := base64.StdEncoding.EncodeToString([]byte(`{"a":2}`))
	for name, c := range map[string]struct {
		envelope string
		want     Problem
	}{
		"another type":               {string(sealed(t, PayloadType, `{"a":1}`, 1)), Malformed},
		"a type that was exchanged":  {strings.Replace(string(sealed(t, PayloadType, `{"a":1}`, 1)), PayloadType, testType, 1), Untrusted},
		"a payload that was changed": {strings.Replace(good, payload, other, 1), Untrusted},
		"a stranger's":               {string(sealed(t, testType, `{"a":1}`, 2)), Untrusted},
		"another key's id":           {strings.Replace(good, trusting(t, 1).Keys()[0].ID, trusting(t, 2).Keys()[0].ID, 1), Untrusted},
		"a payload that is none":     {strings.Replace(good, payload, "%%%%", 1), Untrusted},
		"one byte too many":          {good + strings.Repeat(" ", 1001-len(good)), Malformed},
		"two envelopes":              {good + good, Malformed},
		"nothing":                    {"", Malformed},
	} {
		got, _, err := trusting(t, 1).Open([]byte(c.envelope), testType, 1000)
		var e *Error
		if got != nil || !errors.As(err, &e) || e.Problem != c.want {
			t.Errorf("%s: %s, %v; expected %s", name, got, err, c.want)
		}
	}
	if _, err := Peek([]byte(strings.Replace(good, payload, "%%%%", 1)), testType, 1000); err == nil {
		t.Error("a payload that is no base64 can be peeked at")
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Sign(testType, nil, ec); err == nil {
		t.Error("an ecdsa key signs")
	}
}

// Whatever comes in, an envelope that opens is signed over exactly the payload that it gives.
func FuzzOpen(f *testing.F) {
	f.Add(sealed(f, testType, `{}`, 1))
	f.Add(fmt.Appendf(nil, `{"payloadType":%q,"payload":"e30=","signatures":[{"keyid":"","sig":"AA=="}]}`, testType))
	set := trusting(f, 1)
	f.Fuzz(func(t *testing.T, src []byte) {
		peeked, peekErr := Peek(src, testType, 10_000)
		payload, _, err := set.Open(src, testType, 10_000)
		var e *Error
		switch {
		case err != nil && !errors.As(err, &e):
			t.Fatalf("%q: %v", src, err)
		case err == nil && (peekErr != nil || !bytes.Equal(peeked, payload)):
			t.Fatalf("%q: opened as %q and peeked at as %q, %v", src, payload, peeked, peekErr)
		}
	})
}
