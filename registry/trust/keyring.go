// Package trust holds a registry's signing key and signs receipts and deny lists with it (design.md 3.2). The key is ed25519, made
// when a registry starts for the first time, and never leaves its file. What it signs is read by
// admission/receipt and admission/denylist, which need neither this package nor a network.
package trust

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore/pkg/signature"
	sigstoredsse "github.com/sigstore/sigstore/pkg/signature/dsse"

	"github.com/gatehouse-registry/gatehouse/admission/denylist"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
)

const (
	// KeyFile is the private key's name in the folder that Open is given: PKCS #8 in PEM, mode 0600.
	KeyFile = "receipt-key.pem"
	// OtherKeysFile lies beside KeyFile where there is one: public keys in PEM, with which nothing is signed, and by which
	// receipts hold. While a registry changes its key that is the next one, and then the one before.
	OtherKeysFile = "other-keys.pem"

	pemType = "PRIVATE KEY"
	// maxKeyFile bounds what is read; an ed25519 key has about 120 bytes in PEM.
	maxKeyFile = 4096
	// maxOtherKeys bounds the file of the others.
	maxOtherKeys = 16 << 10
)

// Keyring signs receipts and deny lists. It is safe for concurrent use.
type Keyring struct {
	public ed25519.PublicKey
	others []ed25519.PublicKey
	id     string
	signer dsse.EnvelopeSigner
}

// Open loads the key below dir and makes it when there is none. A new key is on disk, file and folder synced, before
// Open returns; of several processes that open an empty dir at once all get the same key. A key file that others
// than its owner may read or write is refused.
func Open(dir string) (*Keyring, error) {
	path := filepath.Join(dir, KeyFile)
	private, err := load(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = create(dir, path); err == nil {
			private, err = load(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	k, err := newKeyring(private)
	if err == nil {
		k.others, err = otherKeys(filepath.Join(dir, OtherKeysFile))
	}
	return k, err
}

// otherKeys reads the keys that count beside the one that signs; there may be no such file.
func otherKeys(path string) ([]ed25519.PublicKey, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("other keys: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxOtherKeys {
		return nil, fmt.Errorf("other keys: %s is no file of at most %d bytes", path, maxOtherKeys)
	}
	if loose := info.Mode().Perm() & 0o022; loose != 0 {
		return nil, fmt.Errorf("other keys: %s has mode %#o: others may add keys (chmod 644 it)", path, info.Mode().Perm())
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("other keys: %w", err)
	}
	set, err := receipt.ParseTrust(src)
	if err != nil {
		return nil, fmt.Errorf("other keys: %s: %w", path, err)
	}
	var keys []ed25519.PublicKey
	for _, k := range set.Keys() {
		keys = append(keys, k.Public)
	}
	return keys, nil
}

func newKeyring(private ed25519.PrivateKey) (*Keyring, error) {
	signer, err := signature.LoadED25519Signer(private)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("signing key: no public half")
	}
	id, err := receipt.KeyID(public)
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	envelope, err := dsse.NewEnvelopeSigner(&sigstoredsse.SignerAdapter{SignatureSigner: signer, Pub: public, PubKeyID: id})
	if err != nil {
		return nil, fmt.Errorf("signing key: %w", err)
	}
	return &Keyring{public: public, id: id, signer: *envelope}, nil
}

// KeyID names the public key as envelopes do.
func (k *Keyring) KeyID() string { return k.id }

// PublicPEM is the public key in the shorter of the two forms that receipt.ParseTrust reads; `sf admin key show` prints the other.
func (k *Keyring) PublicPEM() ([]byte, error) { return receipt.EncodeKey(k.public) }

// Trust is the set that accepts this registry's receipts for one audience, its id: the key that signs, then the others.
func (k *Keyring) Trust(audience string) (receipt.TrustSet, error) {
	return receipt.NewTrustSet(audience, append([]ed25519.PublicKey{k.public}, k.others...)...)
}

// SignReceipt puts a receipt into a signed DSSE envelope, as JSON. It fails for a receipt whose Check does.
func (k *Keyring) SignReceipt(r receipt.Receipt) ([]byte, error) {
	payload, err := r.Encode()
	if err != nil {
		return nil, err
	}
	return k.sign(receipt.PayloadType, payload)
}

// SignDenyList puts a list of revoked versions into a signed DSSE envelope, as JSON. It fails for a list whose Check does.
func (k *Keyring) SignDenyList(l denylist.List) ([]byte, error) {
	payload, err := l.Encode()
	if err != nil {
		return nil, err
	}
	return k.sign(denylist.PayloadType, payload)
}

func (k *Keyring) sign(payloadType string, payload []byte) ([]byte, error) {
	env, err := k.signer.SignPayload(context.Background(), payloadType, payload)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", payloadType, err)
	}
	return json.Marshal(env)
}

func load(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyFile {
		return nil, fmt.Errorf("%s is no key file", path)
	}
	if loose := info.Mode().Perm() & 0o077; loose != 0 {
		return nil, fmt.Errorf("%s has mode %#o: others may use it (chmod 600 it, or remove it to get a new key)", path, info.Mode().Perm())
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseKey(src, path)
}

// parseKey reads a key; where says in messages what holds it.
func parseKey(src []byte, where string) (ed25519.PrivateKey, error) {
	block, rest := pem.Decode(src)
	if block == nil || block.Type != pemType || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("%s is no PEM file with one %q block", where, pemType)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s holds a %T, expected an ed25519 key", where, parsed)
	}
	return private, nil
}

// create writes a new key below a temporary name, syncs it and links it to path. A key that another process put
// there first stays.
func create(dir, path string) error {
	text, err := newKeyText()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := durable.Create(path, text, 0o600); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
