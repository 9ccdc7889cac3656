package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/s3"
	"github.com/gatehouse-registry/gatehouse/registry/client"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
	"github.com/gatehouse-registry/gatehouse/registry/trust"
)

// openStores opens what the server works with, in the order in which it depends on each other.
func (s *Server) openStores(ctx context.Context, set registry.Settings, change func(*registry.Deps)) error {
	if err := s.lock(s.config.Data); err != nil {
		return err
	}
	blobs, backend, meta, keys, err := s.openParts(ctx)
	if err != nil {
		return err
	}
	s.metrics.pools(meta.Pools)
	s.restMeta = meta.Rest
	if err := s.claimFolder(ctx, meta); err != nil {
		return err
	}
	ledger, err := metastore.OpenLedger(s.config.path(ledgerFile))
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	s.closers = append(s.closers, ledger.Close)
	set.SpoolDir = s.config.path(spoolFolder)
	if err := os.MkdirAll(set.SpoolDir, 0o700); err != nil {
		return err
	}
	if set.RegistryID, err = registry.Identity(ctx, meta); err != nil {
		return err
	}
	deps := registry.Deps{Blobs: blobs, Meta: meta, Ledger: ledger, Signer: keys, Log: s.log, Decided: s.metrics.decided, Told: s.metrics.told, Alone: !s.config.postgres(), Source: client.OpenSource}
	if deps.Workloads, err = s.config.workloads(); err != nil {
		return err
	}
	if deps.Handover, err = s.config.handoverTargets(); err != nil {
		return err
	}
	if deps.Resolver, err = s.config.resolver(); err != nil {
		return err
	}
	change(&deps)
	s.observe(&deps, backend)
	s.ready = newReadiness(deps, set.RegistryID)
	if s.svc, err = registry.New(ctx, deps, set); err != nil {
		return err
	}
	s.metrics.upkeep(s.svc.Stats)
	s.metrics.handover(s.svc.HandoverCounts, s.log)
	return nil
}

// openParts opens both stores and the key at once: one waits for its disk while the others work.
func (s *Server) openParts(ctx context.Context) (blobs registry.BlobStore, backend string, meta *metastore.Store, keys *trust.Keyring, err error) {
	var all sync.WaitGroup
	var noMeta, noBlobs, noKeys error
	if !s.keysInDatabase() {
		all.Go(func() { keys, noKeys = s.openKeys(ctx, nil) })
	}
	all.Go(func() { meta, noMeta = s.openMeta(ctx) })
	blobs, backend, noBlobs = s.openBlobs(ctx)
	all.Wait()
	if noMeta == nil {
		s.closers = append(s.closers, meta.Close)
		if s.keysInDatabase() {
			keys, noKeys = s.openKeys(ctx, meta)
		}
	}
	return blobs, backend, meta, keys, errors.Join(naming("blob store", noBlobs), naming("metadata", noMeta), naming("keys", noKeys))
}

// naming says of an error what it happened to.
func naming(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// lock takes a folder for this process.
func (s *Server) lock(dir string) error {
	release, err := lockData(dir)
	if err == nil {
		s.closers = append(s.closers, release)
	}
	return err
}

// observe measures the stores. What lies in this process's own files needs no bound on its answers.
func (s *Server) observe(d *registry.Deps, backend string) {
	database, store := s.config.Limits.Database, s.config.Limits.Store
	if !s.config.postgres() {
		database = 0
	}
	if backend == backendFolder {
		store = 0
	}
	d.Meta = newObservedMeta(d.Meta, s.metrics, s.tracing, database)
	d.Blobs = newObservedBlobs(d.Blobs, backend, s.metrics, s.tracing, store)
}

// The back-ends of the store of bytes, as metrics name them.
const (
	backendFolder = "folder"
	backendS3     = "s3"
)

func (s *Server) openBlobs(ctx context.Context) (blobs registry.BlobStore, backend string, err error) {
	if s.config.s3() {
		options, err := s3.ParseURL(s.config.Blobs)
		if err != nil {
			return nil, "", err
		}
		store, err := s3.Open(ctx, options)
		if err != nil {
			return nil, "", err
		}
		s.closers = append(s.closers, store.Close)
		return store, backendS3, nil
	}
	folder := s.config.folder()
	if folder != filepath.Clean(s.config.Data) {
		if err := s.lock(folder); err != nil {
			return nil, "", fmt.Errorf("%w; a folder of bytes is for one server alone: replicas share s3://…", err)
		}
	}
	store, err := fs.Open(folder)
	if err != nil {
		return nil, "", err
	}
	s.closers = append(s.closers, store.Close)
	return store, backendFolder, nil
}

func (s *Server) openMeta(ctx context.Context) (*metastore.Store, error) {
	if s.config.postgres() {
		return metastore.OpenPostgres(ctx, s.config.DB)
	}
	return metastore.OpenSQLite(ctx, s.config.path(databaseFile))
}

// keysInDatabase reports whether replicas share the key that signs receipts in the database: they do unless a folder is named.
func (s *Server) keysInDatabase() bool { return s.config.Keys == "" && s.config.postgres() }

// openKeys opens the key that signs receipts. meta counts only where that lies in the database.
func (s *Server) openKeys(ctx context.Context, meta registry.MetaStore) (*trust.Keyring, error) {
	switch {
	case s.keysInDatabase():
		return trust.OpenShared(ctx, meta)
	case s.config.Keys != "":
		return trust.Open(s.config.Keys)
	}
	return trust.Open(s.config.path(keyFolder))
}

const (
	folderSetting = "blob-folder" // the id of the folder that holds the registry's bytes
	folderFile    = "folder-id"   // in that folder
)

// claimFolder holds that all servers of one PostgreSQL database that keep bytes in a folder keep them in the same one: a
// second server with a folder of its own would answer that half of the blobs don't exist.
func (s *Server) claimFolder(ctx context.Context, meta registry.MetaStore) error {
	if !s.config.postgres() || s.config.s3() {
		return nil
	}
	path := filepath.Join(s.config.folder(), folderFile)
	src, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		src = []byte(rand.Text() + "\n")
		err = durable.Replace(path, src, 0o600)
	}
	if err != nil {
		return err
	}
	id := strings.TrimSpace(string(src))
	claimed, err := registry.SettledSetting(ctx, meta, folderSetting, func() string { return id })
	if err == nil && claimed != id {
		err = fmt.Errorf("blobs: the bytes of this registry lie in another folder than %s (its %s is not %s): name that folder, or move the registry to s3://…",
			s.config.folder(), folderFile, claimed)
	}
	return err
}

// Probe connects to everything that the configuration names and reports all that does not answer. It changes nothing but
// that the proof of an S3 store writes small objects and removes them again.
func Probe(ctx context.Context, c Config) error {
	if _, err := c.settings(); err != nil {
		return err
	}
	c = c.complete()
	var faults []error
	check := func(key string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", key, err))
		}
	}
	if c.postgres() {
		check("db", metastore.PingPostgres(ctx, c.DB))
	}
	if c.s3() {
		check("blobs", probeS3(ctx, c.Blobs))
	}
	if folder := c.Keys; folder != "" {
		_, err := os.Stat(filepath.Join(folder, trust.KeyFile))
		if err == nil {
			_, err = trust.Open(folder)
		} else if errors.Is(err, os.ErrNotExist) {
			err = nil // the first start makes it
		}
		check("keys", err)
	}
	if c.TLSCert != "" {
		_, err := loadCertificate(c.TLSCert, c.TLSKey, nil, nil)
		check("tls", err)
	}
	return errors.Join(faults...)
}

func probeS3(ctx context.Context, address string) error {
	options, err := s3.ParseURL(address)
	if err != nil {
		return err
	}
	store, err := s3.Open(ctx, options)
	if err != nil {
		return err
	}
	return store.Close()
}
