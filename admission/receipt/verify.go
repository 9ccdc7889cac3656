package receipt

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

// MaxEnvelope bounds an envelope: a payload of limit.Document bytes in base64, and its signatures.
const MaxEnvelope = 2 * limit.Document

// maxSignatures bounds the work that one envelope can cause.
const maxSignatures = 16

// Problem says why a receipt does not hold.
type Problem string

// The problems.
const (
	Malformed     Problem = "malformed" // no envelope, no receipt, or one that contradicts itself
	Untrusted     Problem = "untrusted" // no signature by a key of the trust set
	WrongAudience Problem = "audience"  // signed for another registry
	Expired       Problem = "expired"   //
)

// Error is what Verify and Parse fail with. Exit code 7 (design.md 7).
type Error struct {
	Problem Problem
	Message string // what was found and what was expected
	Err     error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Verify opens an envelope: its payload type must be PayloadType, a key of trust must have signed it, the receipt
// must be for audience, and now must be before its expiry. An empty audience stands for the trust set's own; when
// that is empty too, the keys alone say whose receipts count. Every error is an *Error.
func Verify(envelope []byte, trust TrustSet, audience string, now time.Time) (*Receipt, error) {
	payload, _, err := trust.Open(envelope, PayloadType, MaxEnvelope)
	if err != nil {
		return nil, err
	}
	r, err := Parse(payload)
	if err != nil {
		return nil, err
	}
	if audience == "" {
		audience = trust.Audience
	}
	if audience != "" && r.Audience != audience {
		return nil, &Error{Problem: WrongAudience, Message: fmt.Sprintf("the receipt is for registry %.100q, expected %.100q", r.Audience, audience)}
	}
	if !now.Before(r.Expires) {
		return nil, &Error{Problem: Expired, Message: fmt.Sprintf("the receipt expired at %s, it is %s", r.Expires.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))}
	}
	return r, nil
}

// Open gives the payload of a DSSE envelope of at most max bytes that a key of the set signed as payloadType, and the
// id of that key. What the payload says is not looked at. Every error is an *Error: Malformed or Untrusted.
func (t TrustSet) Open(envelope []byte, payloadType string, max int) (payload []byte, keyID string, err error) {
	env, err := readEnvelope(envelope, payloadType, max)
	if err != nil {
		return nil, "", err
	}
	if len(t.keys) == 0 {
		return nil, "", &Error{Problem: Untrusted, Message: "the trust set holds no key"}
	}
	verifiers := make([]dsse.Verifier, len(t.keys))
	for i, k := range t.keys {
		verifiers[i] = keyVerifier{k}
	}
	ev, err := dsse.NewEnvelopeVerifier(verifiers...)
	if err != nil {
		return nil, "", &Error{Untrusted, "the trust set can't be used", err}
	}
	accepted, payload, err := ev.VerifyAndDecode(context.Background(), env)
	if err != nil {
		// What the library says beside it, of thresholds, helps nobody who reads a refusal.
		return nil, "", &Error{Problem: Untrusted, Message: fmt.Sprintf("no trusted key signed it (it names %s, trusted are %s)", signers(env), t)}
	}
	return payload, accepted[0].KeyID, nil
}

// Peek gives what Open would, without a look at the signatures: it proves nothing.
func Peek(envelope []byte, payloadType string, max int) (payload []byte, err error) {
	env, err := readEnvelope(envelope, payloadType, max)
	if err != nil {
		return nil, err
	}
	if payload, err = env.DecodeB64Payload(); err != nil {
		return nil, &Error{Malformed, "the envelope's payload is no base64", err}
	}
	return payload, nil
}

func readEnvelope(src []byte, payloadType string, max int) (*dsse.Envelope, error) {
	var env dsse.Envelope
	if err := decodeStrict(src, max, &env); err != nil {
		return nil, &Error{Malformed, "it is no DSSE envelope", err}
	}
	if env.PayloadType != payloadType {
		return nil, &Error{Problem: Malformed, Message: fmt.Sprintf("the envelope holds %.100q, expected %s", env.PayloadType, payloadType)}
	}
	if len(env.Signatures) > maxSignatures {
		return nil, &Error{Problem: Malformed, Message: fmt.Sprintf("the envelope has %d signatures, at most %d allowed", len(env.Signatures), maxSignatures)}
	}
	return &env, nil
}

// Sign puts a payload into a DSSE envelope, as JSON, signed with an ed25519 key; its id is KeyID's.
func Sign(payloadType string, payload []byte, key crypto.Signer) ([]byte, error) {
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("sign: found a %T, expected an ed25519 key", key.Public())
	}
	id, err := KeyID(public)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	sig, err := key.Sign(nil, dsse.PAE(payloadType, payload), crypto.Hash(0))
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return json.Marshal(dsse.Envelope{
		PayloadType: payloadType, Payload: base64.StdEncoding.EncodeToString(payload),
		Signatures: []dsse.Signature{{KeyID: id, Sig: base64.StdEncoding.EncodeToString(sig)}},
	})
}

func signers(env *dsse.Envelope) string {
	var ids []string
	for _, s := range env.Signatures {
		ids = append(ids, fmt.Sprintf("%.80q", s.KeyID))
	}
	return list(ids)
}

// keyVerifier is the DSSE library's view of a Key.
type keyVerifier struct{ key Key }

var errSignature = errors.New("the signature does not match")

func (v keyVerifier) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(v.key.Public, data, sig) {
		return errSignature
	}
	return nil
}

func (v keyVerifier) KeyID() (string, error)   { return v.key.ID, nil }
func (v keyVerifier) Public() crypto.PublicKey { return v.key.Public }
