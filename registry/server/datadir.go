package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

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

// How long a start waits for a lock: a child that a killed server was about to start holds it until it is started.
const (
	lockWait  = 3 * time.Second
	lockPause = 20 * time.Millisecond
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
	for start := time.Now(); ; time.Sleep(lockPause) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f.Close, nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
		case time.Since(start) > lockWait:
			f.Close()
			return nil, fmt.Errorf("data directory %s is in use by another server", dir)
		}
	}
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
