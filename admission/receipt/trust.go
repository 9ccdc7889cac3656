package receipt

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
)

// Key is a public key that may sign receipts.
type Key struct {
	ID     string // KeyID(Public)
	Public ed25519.PublicKey
}

// TrustSet is the set of keys whose receipts count. While a registry changes keys the set holds the old and the new
// one. The zero TrustSet trusts nobody.
type TrustSet struct {
	Audience string // the registry that the keys belong to; "" when it is not said
	keys     []Key
}

// NewTrustSet is the set of the given keys.
func NewTrustSet(audience string, keys ...ed25519.PublicKey) (TrustSet, error) {
	t := TrustSet{Audience: audience}
	for _, k := range keys {
		id, err := KeyID(k)
		if err != nil {
			return TrustSet{}, err
		}
		if !slices.ContainsFunc(t.keys, func(have Key) bool { return have.ID == id }) {
			t.keys = append(t.keys, Key{id, k})
		}
	}
	return t, nil
}

// Empty reports whether the set trusts nobody.
func (t TrustSet) Empty() bool { return len(t.keys) == 0 }

// Keys lists the keys.
func (t TrustSet) Keys() []Key { return slices.Clone(t.keys) }

// String lists the ids of the keys.
func (t TrustSet) String() string {
	var ids []string
	for _, k := range t.keys {
		ids = append(ids, k.ID)
	}
	return list(ids)
}

func list(items []string) string {
	if len(items) == 0 {
		return "none"
	}
	return strings.Join(items, ", ")
}

// KeyID names a public key: "sha256:" and the hex digest of its DER (PKIX) form. DSSE envelopes carry it.
func KeyID(public ed25519.PublicKey) (string, error) {
	if len(public) != ed25519.PublicKeySize {
		return "", fmt.Errorf("an ed25519 public key has %d bytes, found %d", ed25519.PublicKeySize, len(public))
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("encode public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// EncodeKey is the PEM form (PKIX) of a public key.
func EncodeKey(public ed25519.PublicKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("encode public key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

const (
	pemType = "PUBLIC KEY"
	// maxTrust bounds a trust file, maxKeys the keys in it.
	maxTrust = 64 * limit.KiB
	maxKeys  = 64
)

// trustFile is the JSON form of a TrustSet.
type trustFile struct {
	Audience string   `json:"audience"`
	Keys     []string `json:"keys"` // PEM
}

// Encode is the JSON form of the set, which ParseTrust reads: {"audience": "<registry id>", "keys": ["<PEM>", …]}.
func (t TrustSet) Encode() ([]byte, error) {
	file := trustFile{Audience: t.Audience, Keys: []string{}}
	for _, k := range t.keys {
		text, err := EncodeKey(k.Public)
		if err != nil {
			return nil, err
		}
		file.Keys = append(file.Keys, string(text))
	}
	return json.MarshalIndent(file, "", "  ")
}

// ParseTrust reads a trust file: the JSON form that Encode writes and `sf admin key show` prints, once or several times for one
// registry, or one or more PEM public keys one after the other; text around the PEM blocks is a comment. Only ed25519 keys are taken. A
// file without a key is refused.
func ParseTrust(src []byte) (TrustSet, error) {
	if len(src) > maxTrust {
		return TrustSet{}, fmt.Errorf("trust file: %d bytes, at most %d allowed", len(src), maxTrust)
	}
	file := trustFile{Keys: []string{string(src)}}
	if trimmed := bytes.TrimSpace(src); len(trimmed) > 0 && trimmed[0] == '{' {
		var err error
		if file, err = readTrustFiles(src); err != nil {
			return TrustSet{}, fmt.Errorf("trust file: %w", err)
		}
	}
	var keys []ed25519.PublicKey
	for _, text := range file.Keys {
		found, err := parseKeys([]byte(text))
		if err != nil {
			return TrustSet{}, fmt.Errorf("trust file: %w", err)
		}
		keys = append(keys, found...)
	}
	switch {
	case len(keys) == 0:
		return TrustSet{}, errors.New("trust file: it holds no PEM public key")
	case len(keys) > maxKeys:
		return TrustSet{}, fmt.Errorf("trust file: %d keys, at most %d allowed", len(keys), maxKeys)
	}
	return NewTrustSet(file.Audience, keys...)
}

// readTrustFiles reads one document, or several one after the other: what two calls of `sf admin key show` printed, the one
// before a registry changed its key and the one after. They must be of one registry.
func readTrustFiles(src []byte) (trustFile, error) {
	var all trustFile
	for first := true; len(bytes.TrimSpace(src)) > 0; first = false {
		one := src
		decoder := json.NewDecoder(bytes.NewReader(src))
		if err := decoder.Decode(&json.RawMessage{}); err == nil {
			one = src[:decoder.InputOffset()]
		} // what is no JSON is refused by the strict reader, which says where
		var file trustFile
		if err := decodeStrict(one, maxTrust, &file); err != nil {
			return trustFile{}, err
		}
		if !first && file.Audience != all.Audience {
			return trustFile{}, fmt.Errorf("it holds keys of two registries, %.100q and %.100q; --trust takes those of one", all.Audience, file.Audience)
		}
		all.Audience, all.Keys = file.Audience, append(all.Keys, file.Keys...)
		src = src[len(one):]
	}
	return all, nil
}

func parseKeys(src []byte) ([]ed25519.PublicKey, error) {
	var keys []ed25519.PublicKey
	for {
		block, rest := pem.Decode(src)
		if block == nil {
			return keys, nil
		}
		src = rest
		if block.Type != pemType {
			return nil, fmt.Errorf("found a PEM block %.40q, expected %q", block.Type, pemType)
		}
		parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read public key: %w", err)
		}
		key, ok := parsed.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("found a %T, expected an ed25519 key", parsed)
		}
		keys = append(keys, key)
	}
}
