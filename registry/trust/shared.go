package trust

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"github.com/gatehouse-registry/gatehouse/registry"
)

// keySetting is where the metadata keep the key that replicas share.
const keySetting = "receipt-key"

// OpenShared loads the key that the metadata keep, and makes it when they keep none: every replica of a registry signs with
// the same key, and a replica's own disk holds nothing that matters. Of several that open at once one makes it. Who may read
// the database may sign.
func OpenShared(ctx context.Context, meta registry.MetaStore) (*Keyring, error) {
	fresh, err := newKeyText()
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	text, err := registry.SettledSetting(ctx, meta, keySetting, func() string { return string(fresh) })
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	private, err := parseKey([]byte(text), "setting "+keySetting)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	return newKeyring(private)
}

// newKeyText makes a key in the form that is kept: PKCS #8 in PEM.
func newKeyText() ([]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}
