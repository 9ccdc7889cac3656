package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
	blobfs "github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/s3"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
	"github.com/gatehouse-registry/gatehouse/registry/trust"
)

// restoreFile stands in a data directory from before the first byte of a restore until it is whole. No server starts there.
const restoreFile = "restoring"

// Parts say where the parts of a registry lie that commands work on beside its server, or in its place.
type Parts struct {
	Data     string
	Database string // the SQLite file, "" with PostgreSQL
	Ledger   string
	Blobs    string // the folder that holds blobs/, "" with S3
	Files    []File // the signing key, the configuration, and the first administrator's token, whether they are there or not
	Restore  string // what stands in Data while a restore into it is not finished
}

// File is a small file of a registry: where it lies, and where it lies in a data directory that has everything.
type File struct{ At, Path string }

// Parts are those of the configuration.
func (c Config) Parts() Parts {
	c = c.complete()
	keys := c.Keys
	if keys == "" {
		keys = c.path(keyFolder)
	}
	p := Parts{Data: filepath.Clean(c.Data), Database: c.path(databaseFile), Ledger: c.path(ledgerFile), Blobs: c.folder(), Restore: c.path(restoreFile)}
	p.Files = []File{
		{filepath.Join(keys, trust.KeyFile), filepath.Join(keyFolder, trust.KeyFile)},
		{filepath.Join(keys, trust.OtherKeysFile), filepath.Join(keyFolder, trust.OtherKeysFile)},
		{c.path(ConfigFile), ConfigFile}, {c.path(AdminTokenFile), AdminTokenFile},
	}
	if c.postgres() {
		p.Database = ""
	}
	if c.s3() {
		p.Blobs = ""
	}
	return p
}

// checkRestored refuses a directory in which a restore was not finished: a server would begin a registry of its own there.
func checkRestored(dir string) error {
	_, err := os.Stat(filepath.Join(dir, restoreFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, fmt.Errorf("a restore into %s was not finished: run sf admin restore again", dir))
}

// Stores are the stores of a registry, opened for a command. Close them.
type Stores struct {
	Meta  *metastore.Store
	Blobs registry.BlobStore

	config  Config
	closers []func() error
}

// OpenSource opens the stores of a registry whose server may run: blobs in a folder for reading alone. Errors: NotFound when
// there is no registry.
func OpenSource(ctx context.Context, c Config) (*Stores, error) {
	s := &Stores{config: c.complete()}
	if p := s.config.Parts(); p.Database != "" {
		if _, err := os.Stat(p.Database); err != nil {
			return nil, registry.Errorf(registry.NotFound, "%s holds no registry: %w", p.Data, err)
		}
	}
	return s, s.open(ctx, blobfs.OpenReadOnly)
}

// OpenTarget opens the stores of a form that a registry is moved to, and makes what is missing. It takes the data directory
// as a server does: none may run there.
func OpenTarget(ctx context.Context, c Config) (*Stores, error) {
	s := &Stores{config: c.complete()}
	release, err := lockData(s.config.Data)
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, release)
	return s, s.open(ctx, blobfs.Open)
}

// open opens both stores, a folder of bytes by openFolder.
func (s *Stores) open(ctx context.Context, openFolder func(string) (*blobstore.Store, error)) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.config.postgres() {
		s.Meta, err = metastore.OpenPostgres(ctx, s.config.DB)
	} else {
		s.Meta, err = metastore.OpenSQLite(ctx, s.config.path(databaseFile))
	}
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	s.closers = append(s.closers, s.Meta.Close)
	if !s.config.s3() {
		folder, err := openFolder(s.config.folder())
		if err != nil {
			return fmt.Errorf("blob store: %w", err)
		}
		s.Blobs, s.closers = folder, append(s.closers, folder.Close)
		return nil
	}
	options, err := s3.ParseURL(s.config.Blobs)
	if err != nil {
		return err
	}
	bucket, err := s3.Open(ctx, options)
	if err != nil {
		return fmt.Errorf("blob store: %w", err)
	}
	s.Blobs, s.closers = bucket, append(s.closers, bucket.Close)
	return nil
}

// Close closes the stores.
func (s *Stores) Close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

// MoveIdentity gives the target what lies beside the source's stores: the key that signs receipts, so that old ones stay
// valid, and the id of a folder of bytes that replicas share. The target's metadata must be the source's already.
func (s *Stores) MoveIdentity(ctx context.Context, to *Stores) error {
	key, err := s.readKey(ctx)
	if errors.Is(err, registry.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return nil // no server ever ran there
	}
	if err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	if err := to.writeKey(ctx, key); err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	if !to.config.postgres() || to.config.s3() {
		return nil
	}
	var claimed string
	err = to.Meta.View(ctx, func(tx registry.Tx) (err error) {
		claimed, err = tx.Setting(folderSetting)
		return err
	})
	if errors.Is(err, registry.ErrNotFound) {
		return nil
	}
	return errors.Join(err, durable.Replace(filepath.Join(to.config.folder(), folderFile), []byte(claimed+"\n"), 0o600))
}

// keyFolder is where the key lies, "" when it lies in the metadata.
func (s *Stores) keyFolder() string {
	switch {
	case s.config.Keys != "":
		return s.config.Keys
	case s.config.postgres():
		return ""
	}
	return s.config.path(keyFolder)
}

func (s *Stores) readKey(ctx context.Context) ([]byte, error) {
	if folder := s.keyFolder(); folder != "" {
		return trust.ReadKey(folder)
	}
	return trust.ReadShared(ctx, s.Meta)
}

func (s *Stores) writeKey(ctx context.Context, key []byte) error {
	if folder := s.keyFolder(); folder != "" {
		return trust.WriteKey(folder, key)
	}
	return trust.WriteShared(ctx, s.Meta, key)
}
