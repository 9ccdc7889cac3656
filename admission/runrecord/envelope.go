package runrecord

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
)

// Sign puts a statement into an envelope, as JSON, signed with a node's ed25519 key, and writes the key's id into its
// predicate. It fails for a statement whose Check does, and for one that is too long.
func Sign(s Statement, key crypto.Signer) ([]byte, error) {
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("run record: found a %T, expected an ed25519 key", key.Public())
	}
	id, err := receipt.KeyID(public)
	if err != nil {
		return nil, fmt.Errorf("run record: %w", err)
	}
	s.Predicate.Node.Key = id
	if err := s.Check(); err != nil {
		return nil, fmt.Errorf("run record: %w", err)
	}
	payload, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("run record: %w", err)
	}
	if len(payload) > maxPayload {
		return nil, fmt.Errorf("run record: %d bytes, at most %d allowed", len(payload), maxPayload)
	}
	return receipt.Sign(PayloadType, payload, key)
}

// Open reads an envelope that one of keys must have signed, and gives the id of that key. Unknown and repeated members are
// refused, and so is whatever Check refuses, and a statement that names another key than signed it. Every error is
// a *receipt.Error: Malformed or Untrusted.
func Open(envelope []byte, keys receipt.TrustSet) (s *Statement, keyID string, err error) {
	payload, keyID, err := keys.Open(envelope, PayloadType, MaxEnvelope)
	if err != nil {
		return nil, "", err
	}
	if s, err = parse(payload); err != nil {
		return nil, "", err
	}
	if s.Predicate.Node.Key != keyID {
		return nil, "", malformed("the statement contradicts its envelope", fmt.Errorf("it names the key %.100q, %s signed it", s.Predicate.Node.Key, keyID))
	}
	return s, keyID, nil
}

// Read is Open without keys: nobody vouches for what it gives.
func Read(envelope []byte) (*Statement, error) {
	payload, err := receipt.Peek(envelope, PayloadType, MaxEnvelope)
	if err != nil {
		return nil, err
	}
	return parse(payload)
}

func parse(payload []byte) (*Statement, error) {
	var s Statement
	if err := strictjson.Decode(payload, maxPayload, strictjson.Options{MaxDepth: 8}, &s); err != nil {
		return nil, malformed("the statement can't be read", err)
	}
	if err := s.Check(); err != nil {
		return nil, malformed("the statement says too little or the impossible", err)
	}
	if err := sameToAll(payload, s); err != nil {
		return nil, malformed("the statement can be read in two ways", err)
	}
	return &s, nil
}

// sameToAll refuses a payload in which a reader that goes by the exact names of members sees something else than encoding/json,
// to which their case is all one and null is nothing.
func sameToAll(payload []byte, s Statement) error {
	again, err := json.Marshal(s)
	if err != nil {
		return err
	}
	var seen, meant any
	for _, one := range []struct {
		src  []byte
		into *any
	}{{payload, &seen}, {again, &meant}} {
		dec := json.NewDecoder(bytes.NewReader(one.src))
		dec.UseNumber()
		if err := dec.Decode(one.into); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(seen, meant) {
		return errors.New("members that are written otherwise than docs/runs.md has them")
	}
	return nil
}

func malformed(message string, err error) error {
	return &receipt.Error{Problem: receipt.Malformed, Message: message, Err: err}
}

// Later reports whether a state replaces another that is already kept for the same run.
func (s State) Later(than State) bool { return s != StateStarted && than == StateStarted }
