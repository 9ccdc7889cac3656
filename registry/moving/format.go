// Package moving takes a registry whole from one place to another: a backup of the embedded form into a folder and back
// (Backup, Restore), and a move between forms (Migrate), all while the server runs, verified by digest, and taken up again
// when they are interrupted. It works on the stores; sf mirror moves content between registries over the network.
//
// A backup is a folder that holds
//
//	gatehouse-backup        says that the folder is one, from before its first byte
//	manifest.json           what a whole backup holds; written last, in one step
//	gatehouse-<id>.db       the metadata at one moment, small blobs and settings included
//	ledger-<id>.jsonl       the ledger file, at that moment or a little later
//	files-<id>/             the signing key, the configuration and the first administrator's token, each 0600
//	blobs/                  every other blob that the metadata name, as package blobstore/fs lays them out
//
// What it promises: a backup that manifest.json names is whole, durable, and verified by digest; one that was interrupted,
// at any step, leaves the one before it as it was. Into the same folder only blobs that are not there are copied.
package moving

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// The names in the folder.
const (
	markerFile   = "gatehouse-backup"
	manifestFile = "manifest.json"
)

// formatVersion is the form of the folder that this package writes and reads.
const formatVersion = 1

// Manifest says what a backup holds.
type Manifest struct {
	Format     int       `json:"format"`
	RegistryID string    `json:"registryId"`
	MadeAt     time.Time `json:"madeAt"`
	Database   File      `json:"database"`
	Ledger     File      `json:"ledger"`
	LedgerSeq  int64     `json:"ledgerSeq"` // the last row that the metadata hold
	Files      []File    `json:"files"`     // of the data directory, such as the signing key
	Blobs      int       `json:"blobs"`     // that the metadata name, without the small ones
	BlobBytes  int64     `json:"blobBytes"`
	Small      int       `json:"small"` // blobs in the metadata
	// Lost are blobs that the metadata name and the registry's own store does not hold, or holds damaged.
	Lost []digest.Digest `json:"lost,omitempty"`
}

// File is a file of a backup.
type File struct {
	Name   string        `json:"name"`           // in the backup
	Path   string        `json:"path,omitempty"` // in the data directory
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"size"`
}

// Read reads the manifest of a whole backup. Errors: NotFound when the folder holds none.
func Read(dir string) (Manifest, error) {
	var m Manifest
	src, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, registry.Errorf(registry.NotFound, "%s holds no whole backup: it has no %s", dir, manifestFile)
	}
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(src, &m); err != nil {
		return m, registry.Errorf(registry.Invalid, "%s: %w", filepath.Join(dir, manifestFile), err)
	}
	if m.Format != formatVersion {
		return m, registry.Errorf(registry.Invalid, "%s: format %d, expected %d: a newer sf wrote it", filepath.Join(dir, manifestFile), m.Format, formatVersion)
	}
	for _, f := range append(m.Files, m.Database, m.Ledger) {
		if !filepath.IsLocal(f.Name) || (f.Path != "" && !filepath.IsLocal(f.Path)) {
			return m, registry.Errorf(registry.Invalid, "%s: the name %.200q leads out of the folder", filepath.Join(dir, manifestFile), f.Name+" "+f.Path)
		}
	}
	return m, nil
}

// write makes the manifest the one of the folder.
func (m Manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, manifestFile), append(text, '\n'), 0o600)
}

// copyFile copies at most most bytes of a file to a new one, which only its owner may read, and makes it durable. A file
// that is there is replaced; a copy that fails leaves none. wanted, unless nil, is what the bytes must be.
func copyFile(from, to string, most int64, wanted *File) (f File, err error) {
	in, err := os.Open(from)
	if err != nil {
		return f, err
	}
	defer in.Close()
	temporary := to + ".new"
	out, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return f, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(temporary)))
		}
	}()
	hash := digest.SHA256.New()
	f.Size, err = io.Copy(io.MultiWriter(out, hash), io.LimitReader(in, most))
	f.Digest = digest.FromHash(digest.SHA256, hash)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return f, noRoom(err)
	}
	if wanted != nil && (f.Digest != wanted.Digest || f.Size != wanted.Size) {
		return f, fmt.Errorf("%s: %w", from, &digest.MismatchError{Want: wanted.Digest, Got: f.Digest, WantSize: wanted.Size, GotSize: f.Size})
	}
	if err := os.Rename(temporary, to); err != nil {
		return f, err
	}
	return f, durable.SyncFolder(filepath.Dir(to))
}

// noRoom words an error of a full disk.
func noRoom(err error) error {
	if errors.Is(err, errNoSpace) || errors.Is(err, errTooBig) || errors.Is(err, errQuota) {
		return &registry.Error{Code: registry.Unavailable, Message: "the disk is full: " + err.Error(), Err: err}
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
