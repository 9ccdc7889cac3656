package trust

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// A registry that moves takes its key along. The text of a key is what KeyFile holds.

// ReadKey is the key below dir. Errors: fs.ErrNotExist.
func ReadKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, KeyFile)
	if _, err := load(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// WriteKey puts the key below dir, mode 0600 and durable. Another key that is there stays: Errors: Conflict.
func WriteKey(dir string, key []byte) error {
	path := filepath.Join(dir, KeyFile)
	if _, err := parseKey(key, "the key"); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	err := durable.Create(path, key, 0o600)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	have, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(have, key) {
		err = registry.Errorf(registry.Conflict, "%s is another key", path)
	}
	return err
}

// ReadShared is the key that the metadata keep. Errors: registry.ErrNotFound.
func ReadShared(ctx context.Context, meta registry.MetaStore) ([]byte, error) {
	var text string
	err := meta.View(ctx, func(tx registry.Tx) (err error) {
		text, err = tx.Setting(keySetting)
		return err
	})
	if err != nil {
		return nil, err
	}
	_, err = parseKey([]byte(text), fmt.Sprintf("setting %s", keySetting))
	return []byte(text), err
}

// WriteShared makes the key the one that the metadata keep.
func WriteShared(ctx context.Context, meta registry.MetaStore, key []byte) error {
	if _, err := parseKey(key, "the key"); err != nil {
		return err
	}
	return meta.Update(ctx, func(tx registry.Tx) error { return tx.PutSetting(keySetting, string(key)) })
}
