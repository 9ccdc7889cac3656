package registry

import (
	"context"
	"errors"
)

// identitySetting is where the store keeps the registry's id.
const identitySetting = "registry-id"

// Identity is the registry's id, the audience of its receipts. It is made once, at the first start, and belongs to
// the metadata: a copy of them is the same registry.
func Identity(ctx context.Context, meta MetaStore) (string, error) {
	var id string
	err := meta.Update(ctx, func(tx Tx) (err error) {
		if id, err = tx.Setting(identitySetting); !errors.Is(err, ErrNotFound) {
			return err
		}
		id = "gatehouse-" + randomHex(16)
		return tx.PutSetting(identitySetting, id)
	})
	return id, err
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
