package moving

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
	blobfs "github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
)

// Target is where a restore puts things: the same parts as a Source's.
type Target struct {
	Data     string
	Database string
	Ledger   string
	Blobs    string // the folder that gets blobs/
	Marker   string // the file that stands while the directory is not whole; no server starts there
}

// Restore makes a data directory of the backup in dir. The directory must be empty or absent, or hold an interrupted restore
// of the same backup, which then goes on. ledger, unless "", is a newer ledger file: the versions in it stay taken. Every
// byte is verified; the database comes last, and the marker goes when all is there and durable.
func Restore(ctx context.Context, dir string, t Target, ledger string, p Progress) (Manifest, error) {
	p = p.withDefaults()
	m, err := Read(dir)
	if err != nil {
		return m, err
	}
	if err := claim(t, m.Database.Digest.String()); err != nil {
		return m, err
	}
	from, err := blobfs.OpenReadOnly(dir)
	if err != nil {
		return m, err
	}
	defer from.Close()
	to, err := blobfs.Open(t.Blobs)
	if err != nil {
		return m, err
	}
	defer to.Close()
	for _, f := range m.Files {
		path := filepath.Join(t.Data, f.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return m, err
		}
		if _, err := copyFile(filepath.Join(dir, f.Name), path, maxFile, &f); err != nil {
			return m, err
		}
	}
	if err := restoreLedger(dir, m, t.Ledger, ledger); err != nil {
		return m, fmt.Errorf("ledger: %w", err)
	}
	pending := t.Database + ".restored"
	for _, left := range []string{pending + "-wal", pending + "-shm"} { // of a restore that was killed: SQLite would replay it
		if err := ignoreMissing(os.Remove(left)); err != nil {
			return m, err
		}
	}
	if _, err := copyFile(filepath.Join(dir, m.Database.Name), pending, math.MaxInt64, &m.Database); err != nil {
		return m, err
	}
	if err := restoreBlobs(ctx, m, pending, from, to, p); err != nil {
		return m, err
	}
	if err := errors.Join(os.Rename(pending, t.Database), durable.SyncFolder(t.Data)); err != nil {
		return m, err
	}
	return m, errors.Join(os.Remove(t.Marker), durable.SyncFolder(t.Data))
}

// claim takes an empty directory for the restore of one backup.
func claim(t Target, backup string) error {
	if err := os.MkdirAll(t.Data, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(t.Data)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return noRoom(durable.Replace(t.Marker, []byte(backup+"\n"), 0o600))
	}
	held, err := os.ReadFile(t.Marker)
	if err != nil {
		return registry.Errorf(registry.Conflict, "%s is not empty: a backup is restored into an empty directory", t.Data)
	}
	if string(held) != backup+"\n" {
		return registry.Errorf(registry.Conflict, "%s holds an interrupted restore of another backup: empty it first", t.Data)
	}
	return nil
}

// restoreLedger puts the backup's ledger file, or a newer one, in place and reads it whole.
func restoreLedger(dir string, m Manifest, to, newer string) error {
	from, wanted := filepath.Join(dir, m.Ledger.Name), &m.Ledger
	if newer != "" {
		from, wanted = newer, nil
	}
	if _, err := copyFile(from, to, math.MaxInt64, wanted); err != nil {
		return err
	}
	l, err := metastore.OpenLedger(to)
	if err != nil {
		return err
	}
	return l.Close()
}

// restoreBlobs copies and counts what the restored metadata name.
func restoreBlobs(ctx context.Context, m Manifest, database string, from, to registry.BlobStore, p Progress) error {
	meta, err := metastore.OpenSQLite(ctx, database)
	if err != nil {
		return err
	}
	found := Manifest{}
	if found.Small, found.Lost, err = CheckSmall(ctx, meta); err == nil {
		err = EachBlob(ctx, meta, func(c NamedBlob) error {
			if c.Small {
				return nil
			}
			err := copyBlob(ctx, from, to, c.Descriptor, p)
			if registry.CodeOf(err) == registry.BlobUnknown {
				found.Lost = append(found.Lost, c.Digest)
				return nil
			}
			if err != nil {
				return fmt.Errorf("blob %s: %w", c.Digest, err)
			}
			found.Blobs++
			found.BlobBytes += c.Size
			return nil
		})
	}
	if err = errors.Join(err, meta.Close()); err != nil {
		return err
	}
	if found.Blobs != m.Blobs || found.BlobBytes != m.BlobBytes || found.Small != m.Small || len(found.Lost) != len(m.Lost) {
		return &registry.Error{Code: registry.DigestInvalid, Message: fmt.Sprintf(
			"the backup lacks something: it has %d blobs of %d bytes and %d small ones, its manifest says %d of %d and %d; missing: %v",
			found.Blobs, found.BlobBytes, found.Small, m.Blobs, m.BlobBytes, m.Small, shown(found.Lost))}
	}
	return nil
}

// shown is the beginning of a list for a message.
func shown(list []digest.Digest) []digest.Digest { return list[:min(len(list), 10)] }
