package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/gatehouse-registry/gatehouse/internal/durable"
)

// Names in the data directory. blobs/ and uploads/ belong to blobstore/fs.
const (
	lockFile       = "lock"
	databaseFile   = "gatehouse.db"
	ledgerFile     = "ledger.jsonl"
	keyFolder      = "keys"
	spoolFolder    = "tmp"         // of the blob store, which empties it at the start; spool files are unlinked at once
	AdminTokenFile = "admin-token" // the first administrator's token, mode 0600
	AddressFile    = "address"     // the address that a running server answers at
)

// lockData makes the data directory and takes it for this process. The lock ends with the process, however it ends.
func lockData(dir string) (release func() error, err error) {
	if err := errors.Join(os.MkdirAll(dir, 0o700), checkRestored(dir)); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is in use by another server", dir)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f.Close, nil
}

// saveSecret keeps the administrator's first token. What an interrupted first start left is used again.
func saveSecret(path, secret string) (string, error) {
	old, err := os.ReadFile(path)
	if text := strings.TrimSpace(string(old)); err == nil && text != "" {
		return text, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return secret, durable.Replace(path, []byte(secret+"\n"), 0o600)
}
