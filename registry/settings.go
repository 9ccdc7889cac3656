package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// The store keeps settings of the registry itself: texts by key. Each key stands beside what it is for.

// setting is the text of a setting, "" when there is none.
func setting(tx Tx, key string) (string, error) {
	text, err := tx.Setting(key)
	if errors.Is(err, ErrNotFound) {
		return "", nil
	}
	return text, err
}

// SettledSetting is the text of a setting that never changes again: of any number of replicas that ask at once, one makes it.
func SettledSetting(ctx context.Context, meta MetaStore, key string, make func() string) (string, error) {
	var text string
	err := meta.Update(ctx, func(tx Tx) (err error) {
		if text, err = tx.Setting(key); !errors.Is(err, ErrNotFound) {
			return err
		}
		text = make()
		return tx.PutSetting(key, text)
	})
	return text, err
}

// timeSetting is a moment that a setting holds, zero when it holds none.
func timeSetting(tx Tx, key string) (time.Time, error) {
	text, err := setting(tx, key)
	if err != nil || text == "" {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339Nano, text)
}

func putTime(tx Tx, key string, at time.Time) error {
	return tx.PutSetting(key, at.UTC().Format(time.RFC3339Nano))
}

// sharedKey is a secret of 32 bytes that all replicas share; the first who asks makes it.
func sharedKey(ctx context.Context, meta MetaStore, setting string) ([]byte, error) {
	text, err := SettledSetting(ctx, meta, setting, func() string { return randomHex(sha256.Size) })
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != sha256.Size {
		return nil, fmt.Errorf("setting %s holds no key", setting)
	}
	return key, nil
}

// identitySetting is where the store keeps the registry's id.
const identitySetting = "registry-id"

// Identity is the registry's id, the audience of its receipts. It is made once, at the first start, and belongs to
// the metadata: a copy of them is the same registry.
func Identity(ctx context.Context, meta MetaStore) (string, error) {
	return SettledSetting(ctx, meta, identitySetting, func() string { return "gatehouse-" + randomHex(16) })
}

// KnownIdentity is the registry's id. Errors: NotFound when the store is of no registry yet.
func KnownIdentity(ctx context.Context, meta MetaStore) (string, error) {
	var id string
	err := meta.View(ctx, func(tx Tx) (err error) {
		id, err = tx.Setting(identitySetting)
		return notFound(err, "the store holds no registry")
	})
	return id, err
}
