package runrecord

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"testing"
)

// A statement is what the published specification of in-toto's Statement v1 asks for, read here as a tool would that has
// never heard of us: the envelope by the DSSE protocol's own words, the statement by its fields.
func TestInTotoStatement(t *testing.T) {
	for name, p := range map[string]Predicate{"started": started(), "ended": ended(), "refused": refused()} {
		var envelope struct {
			PayloadType string
			Payload     string
			Signatures  []struct{ KeyID, Sig string }
		}
		if err := json.Unmarshal(signed(t, New(p), 1), &envelope); err != nil {
			t.Fatal(err)
		}
		payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
		if err != nil {
			t.Fatal(err)
		}
		sig, err := base64.StdEncoding.DecodeString(envelope.Signatures[0].Sig)
		if err != nil {
			t.Fatal(err)
		}
		pae := fmt.Sprintf("DSSEv1 %d %s %d %s", len(envelope.PayloadType), envelope.PayloadType, len(payload), payload)
		if !ed25519.Verify(private(1).Public().(ed25519.PublicKey), []byte(pae), sig) || len(envelope.Signatures) != 1 {
			t.Errorf("%s: the signature does not verify by the protocol's own words", name)
		}
		if envelope.PayloadType != "application/vnd.in-toto+json" {
			t.Errorf("%s: payloadType %s", name, envelope.PayloadType)
		}
		checkStatement(t, name, payload)
	}
}

var lowerHex = regexp.MustCompile(`^[0-9a-f]+$`)

func checkStatement(t *testing.T, name string, payload []byte) {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(payload, &s); err != nil {
		t.Fatal(err)
	}
	for key := range s {
		switch key {
		case "_type", "subject", "predicateType", "predicate":
		default:
			t.Errorf("%s: a Statement v1 has no member %q", name, key)
		}
	}
	if s["_type"] != "https://in-toto.io/Statement/v1" {
		t.Errorf("%s: _type %v", name, s["_type"])
	}
	if u, err := url.Parse(s["predicateType"].(string)); err != nil || !u.IsAbs() {
		t.Errorf("%s: predicateType %v is no URI", name, s["predicateType"])
	}
	if _, ok := s["predicate"].(map[string]any); !ok {
		t.Errorf("%s: the predicate is no object", name)
	}
	subjects := s["subject"].([]any)
	if len(subjects) == 0 {
		t.Errorf("%s: a statement is about at least one artifact", name)
	}
	for _, one := range subjects {
		digests := one.(map[string]any)["digest"].(map[string]any)
		if len(digests) == 0 {
			t.Errorf("%s: a subject has at least one digest: %v", name, one)
		}
		for algorithm, value := range digests {
			text := value.(string)
			if raw, err := hex.DecodeString(text); err != nil || len(raw) != 32 || !lowerHex.MatchString(text) {
				t.Errorf("%s: %s %q is no digest in hex", name, algorithm, text)
			}
		}
	}
}
