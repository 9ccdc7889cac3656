package moving

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
	blobfs "github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
)

// Source is a registry of the embedded form: where its parts lie.
type Source struct {
	Database string  // the SQLite file
	Ledger   string  // the ledger file
	Blobs    string  // the folder that holds blobs/
	Files    []Extra // other files to keep; absent ones are left out
}

// Extra is a file of a Source beside its stores.
type Extra struct {
	At   string // where it lies
	Path string // where a restore puts it, in the data directory
}

// BackupOptions say how to make a backup.
type BackupOptions struct {
	Prune bool // remove blobs of the folder that this backup does not name
	Progress
}

// rounds is how often a backup begins anew because a collection removed blobs of its snapshot meanwhile.
const rounds = 5

// maxFile bounds each of Source.Files in bytes.
const maxFile = 1 << 20

// Backup copies the registry into dir, which must be empty, absent, or a backup. The server may run. Blobs that the registry
// itself has lost are in the manifest's Lost, and the backup holds everything else.
func Backup(ctx context.Context, src Source, dir string, opt BackupOptions) (Manifest, error) {
	if err := prepare(dir); err != nil {
		return Manifest{}, err
	}
	from, err := blobfs.OpenReadOnly(src.Blobs)
	if err != nil {
		return Manifest{}, err
	}
	defer from.Close()
	to, err := blobfs.Open(dir)
	if err != nil {
		return Manifest{}, err
	}
	defer to.Close()
	opt.Progress = opt.withDefaults()
	m := &maker{src: src, dir: dir, opt: opt, from: from, to: to}
	for round := 1; ; round++ {
		made, err := m.round(ctx)
		if err != nil {
			return made, errors.Join(err, m.sweep())
		}
		if len(made.Lost) == 0 || round == rounds || slices.Equal(made.Lost, m.lost) {
			if err := m.finish(ctx, made); err != nil {
				return made, err
			}
			return made, nil
		}
		m.lost = made.Lost // gone between the snapshot and the copy, or lost: the next snapshot tells
		if err := m.sweep(); err != nil {
			return made, err
		}
	}
}

// prepare makes the folder one for backups.
func prepare(dir string) error {
	entries, err := os.ReadDir(dir)
	if err = ignoreMissing(err); err != nil {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, markerFile)); err != nil {
			return registry.Errorf(registry.Conflict, "%s is neither empty nor a backup", dir)
		}
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, markerFile), []byte("This folder is a backup of a Gatehouse registry: sf admin restore reads it.\n"), 0o600)
}

// maker is one backup on its way.
type maker struct {
	src      Source
	dir      string
	opt      BackupOptions
	from, to registry.BlobStore
	id       string // of the names in this round
	lost     []digest.Digest
}

// round takes a snapshot and copies all that it names.
func (m *maker) round(ctx context.Context) (made Manifest, err error) {
	m.id = strings.ToLower(rand.Text()[:10])
	made = Manifest{Format: formatVersion, MadeAt: time.Now().UTC()}
	m.opt.Log("snapshot of the metadata")
	if made.Database, err = m.snapshot(ctx); err != nil {
		return made, fmt.Errorf("snapshot: %w", err)
	}
	meta, err := metastore.OpenSQLite(ctx, m.path(made.Database.Name))
	if err != nil {
		return made, fmt.Errorf("snapshot: %w", err)
	}
	err = m.content(ctx, meta, &made)
	if err = errors.Join(err, meta.Close()); err != nil {
		return made, err
	}
	// Opening the snapshot may have changed its file: what counts is what it is now.
	if made.Database, err = describe(m.dir, made.Database.Name); err != nil {
		return made, err
	}
	if made.Ledger, err = m.ledger(); err != nil {
		return made, fmt.Errorf("ledger: %w", err)
	}
	made.Files, err = m.files()
	return made, err
}

func (m *maker) path(name string) string { return filepath.Join(m.dir, name) }

// snapshot copies the metadata as they are at one moment.
func (m *maker) snapshot(ctx context.Context) (File, error) {
	live, err := metastore.OpenSQLite(ctx, m.src.Database)
	if err != nil {
		return File{}, err
	}
	name := "gatehouse-" + m.id + ".db"
	err = live.Snapshot(ctx, m.path(name))
	return File{Name: name}, noRoom(errors.Join(err, live.Close()))
}

// content copies every blob that the snapshot names.
func (m *maker) content(ctx context.Context, meta registry.MetaStore, made *Manifest) (err error) {
	if made.RegistryID, err = registry.Identity(ctx, meta); err != nil {
		return err
	}
	err = meta.View(ctx, func(tx registry.Tx) error {
		made.LedgerSeq = 0
		for {
			rows, err := tx.Ledger(made.LedgerSeq, namedBatch)
			if err != nil || len(rows) == 0 {
				return err
			}
			made.LedgerSeq = rows[len(rows)-1].Seq
		}
	})
	if err != nil {
		return err
	}
	if made.Small, made.Lost, err = CheckSmall(ctx, meta); err != nil {
		return fmt.Errorf("small blobs: %w", err)
	}
	for _, d := range made.Lost {
		m.opt.Log(fmt.Sprintf("small blob %s is damaged", d))
	}
	m.opt.Log(fmt.Sprintf("%d small blobs beside their rows; blobs follow", made.Small))
	return EachBlob(ctx, meta, func(c NamedBlob) error {
		if c.Small {
			return nil
		}
		err := m.blob(ctx, c.Descriptor)
		if isLost(err) {
			made.Lost = append(made.Lost, c.Digest)
			m.opt.Log(fmt.Sprintf("blob %s: %v", c.Digest, err))
			return nil
		}
		if err != nil {
			return fmt.Errorf("blob %s: %w", c.Digest, err)
		}
		made.Blobs++
		made.BlobBytes += c.Size
		return nil
	})
}

// blob copies a blob unless it is there.
func (m *maker) blob(ctx context.Context, d digest.Descriptor) error {
	return copyBlob(ctx, m.from, m.to, d, m.opt.Progress)
}

// ledger copies the ledger file up to its last whole line. It is read after the snapshot, so it may know versions that the
// snapshot does not: a restore keeps them taken.
func (m *maker) ledger() (File, error) {
	src, err := os.ReadFile(m.src.Ledger)
	if err = ignoreMissing(err); err != nil {
		return File{}, err
	}
	src = src[:bytes.LastIndexByte(src, '\n')+1]
	name := "ledger-" + m.id + ".jsonl"
	return File{Name: name, Digest: digest.FromBytes(src), Size: int64(len(src))}, noRoom(durable.Replace(m.path(name), src, 0o600))
}

// files copies the rest.
func (m *maker) files() (list []File, err error) {
	folder := "files-" + m.id
	if err := os.MkdirAll(m.path(folder), 0o700); err != nil {
		return nil, noRoom(err)
	}
	for i, extra := range m.src.Files {
		info, err := os.Stat(extra.At)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
			return list, errors.Join(err, fmt.Errorf("%s: no file of at most %d bytes", extra.At, maxFile))
		}
		name := filepath.Join(folder, fmt.Sprintf("%d-%s", i, filepath.Base(extra.Path)))
		f, err := copyFile(extra.At, m.path(name), maxFile, nil)
		if err != nil {
			return list, err
		}
		f.Name, f.Path = name, extra.Path
		list = append(list, f)
	}
	return list, durable.SyncFolder(m.dir)
}

// describe hashes a file of the backup and makes it durable.
func describe(dir, name string) (File, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	hash := digest.SHA256.New()
	size, err := io.Copy(hash, io.LimitReader(f, math.MaxInt64))
	if err = errors.Join(err, f.Sync(), f.Chmod(0o600)); err != nil {
		return File{}, err
	}
	return File{Name: name, Digest: digest.FromHash(digest.SHA256, hash), Size: size}, durable.SyncFolder(dir)
}

// finish makes the round the backup of the folder, and removes what belonged to others.
func (m *maker) finish(ctx context.Context, made Manifest) error {
	if err := noRoom(made.write(m.dir)); err != nil {
		return err
	}
	if err := m.sweep(); err != nil {
		return err
	}
	if !m.opt.Prune {
		return nil
	}
	meta, err := metastore.OpenSQLite(ctx, m.path(made.Database.Name))
	if err != nil {
		return err
	}
	defer meta.Close()
	for b, err := range m.to.All(ctx) {
		if err != nil {
			return err
		}
		var named bool
		if err := meta.View(ctx, func(tx registry.Tx) (err error) {
			named, err = tx.BlobNamed(b.Digest)
			return err
		}); err != nil {
			return err
		}
		if !named {
			if err := m.to.Delete(ctx, b.Digest); err != nil {
				return err
			}
		}
	}
	return nil
}

// sweep removes what no manifest names: parts of interrupted backups, and of the one before.
func (m *maker) sweep() error {
	keep := map[string]bool{markerFile: true, manifestFile: true, "blobs": true, "uploads": true, "tmp": true, "quarantine": true}
	if have, err := Read(m.dir); err == nil {
		keep[have.Database.Name], keep[have.Ledger.Name] = true, true
		for _, f := range have.Files {
			keep[filepath.Dir(f.Name)] = true
		}
	} else if registry.CodeOf(err) != registry.NotFound {
		return err
	}
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		ours := strings.HasPrefix(e.Name(), "gatehouse-") || strings.HasPrefix(e.Name(), "ledger-") || strings.HasPrefix(e.Name(), "files-") ||
			strings.HasPrefix(e.Name(), "."+manifestFile) || strings.HasPrefix(e.Name(), ".ledger-")
		if ours && !keep[e.Name()] {
			if err := os.RemoveAll(m.path(e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
