package handover

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// The files of a job in a folder.
const (
	DocumentFile = "job.json"       // the Document, without spec and receipt: those lie beside it
	SpecFile     = "jobspec.json"   // the stored JobSpec, byte for byte
	ReceiptFile  = "receipt.json"   // as `sf launch --receipt` reads it
	PackageFile  = "package.tar.gz" // the job package, where the target gets one
)

// writeFiles writes a job into a new folder and makes it durable, but for the folder's own name.
func writeFiles(ctx context.Context, folder string, m registry.HandoverMessage, base string, withPackage bool) error {
	d := documentOf(m, base)
	files := map[string][]byte{}
	if m.Event == registry.EventAdmitted {
		files[SpecFile], files[ReceiptFile] = d.Spec, d.Receipt
	}
	d.Spec, d.Receipt = nil, nil
	if d.Package != nil && withPackage {
		d.Package.File = PackageFile
		if err := writePackage(ctx, filepath.Join(folder, PackageFile), m); err != nil {
			return err
		}
	}
	document, err := d.encode()
	if err != nil {
		return err
	}
	files[DocumentFile] = document
	for name, content := range files {
		if err := writeSynced(filepath.Join(folder, name), func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		}); err != nil {
			return err
		}
	}
	return durable.SyncFolder(folder)
}

// writePackage copies the job's package, whose bytes are compared with its digest once more.
func writePackage(ctx context.Context, path string, m registry.HandoverMessage) error {
	b, err := m.Package(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	return writeSynced(path, func(w io.Writer) error {
		h := sha256.New()
		n, err := io.Copy(io.MultiWriter(w, h), interruptible{ctx, b})
		if err != nil {
			return err
		}
		if got := digest.FromHash(digest.SHA256, h); got != m.Job.Package.Digest || n != m.Job.Package.Size {
			return fmt.Errorf("job package: %w", &digest.MismatchError{Want: m.Job.Package.Digest, Got: got, WantSize: m.Job.Package.Size, GotSize: n})
		}
		return nil
	})
}

// writeSynced makes a new file and syncs what write puts into it.
func writeSynced(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Sync(), f.Close())
}

// interruptible is a reader that ends with its context.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}

// Directory delivers into a folder: one folder of files for each event, which has its name only once it is whole and on the
// disk. An admission's is called by the run's id, a cancellation's by that and ".cancelled".
type Directory struct {
	Path    string
	Package bool   // put the package's bytes beside it
	Base    string // the registry's public address
}

// Deliver implements registry.HandoverDeliverer. Of a folder that is there already it takes the files to be those that it would
// write: nobody else makes a folder of that name.
func (d Directory) Deliver(ctx context.Context, m registry.HandoverMessage) error {
	name := m.Job.ID
	if m.Event == registry.EventCancelled {
		name += ".cancelled"
	}
	to, from := filepath.Join(d.Path, name), d.unfinished(m, m.Try)
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, durable.SyncFolder(d.Path))
	}
	for try := range m.Try + 1 { // what tries that died left
		if err := os.RemoveAll(d.unfinished(m, try)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(from, 0o750); err != nil {
		return err
	}
	err := writeFiles(ctx, from, m, d.Base, d.Package)
	if err == nil {
		err = os.Rename(from, to)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(from))
	}
	return durable.SyncFolder(d.Path)
}

// unfinished is the folder that a try writes into. Each has its own: one that stood still until its lease was over, and goes on
// beside the next, can't give its name to a folder that is half written.
func (d Directory) unfinished(m registry.HandoverMessage, try int) string {
	return filepath.Join(d.Path, fmt.Sprintf(".%s.%d.tmp", m.ID, try))
}
