// Package fs keeps blobs and upload sessions in a folder of the local file system. It is a back-end of
// blobstore.Store, which verifies; this package makes things atomic and durable:
//
//	open a new file with a random name, write, fsync it, rename it into place, fsync the folder it is then in
//
// A file under its final name is therefore complete and on the disk, whatever happens at any step. The tree:
//
//	blobs/                        locked (flock) while a process has the store open
//	blobs/<algorithm>/<ab>/<hex>  a blob, 0444, never changed; ab is the first two digits of hex
//	uploads/<id>                  an upload session: the bytes that came so far, 0600
//	tmp/<random>                  a blob that is being written; what a crash left there is removed by Open
//	quarantine/<algorithm>-<hex>  damaged bytes that an administrator may look at; nothing reads them
//
// All paths go through one os.Root, so that no name and no link leads out of the folder. Other files may lie beside
// these three folders.
package fs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
)

// The top of the tree.
const (
	blobsDir   = "blobs"
	uploadsDir = "uploads"
	tmpDir     = "tmp"
	quarantine = "quarantine"
)

// The modes. Nobody but the server's user may look into the folder.
const (
	dirMode     = 0o700
	blobMode    = 0o444
	stagingMode = 0o600
)

// folder is a blobstore.Backend in a folder.
type folder struct {
	root *os.Root
	disk disk // root, as everything that changes it sees it
	lock *os.File

	mu     sync.Mutex
	shards map[string]bool // the blob folders that are known to be durable
}

var _ blobstore.Unchecked = (*folder)(nil)

// Unchecked implements blobstore.Unchecked.
func (f *folder) Unchecked() {}

// Open opens the store in the folder dir, makes it when it is missing, and removes what a crash left in tmp. One process
// at a time may have it open: another Open fails with Conflict. Upload sessions of an earlier process stay.
func Open(dir string) (*blobstore.Store, error) { return OpenWith(dir, nil) }

// OpenWith is Open on a disk that fails as the fault says.
func OpenWith(dir string, fault Fault) (*blobstore.Store, error) {
	f, err := openFolder(dir, fault)
	if err != nil {
		return nil, err
	}
	return blobstore.New(f), nil
}

func openFolder(dir string, fault Fault) (*folder, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, classify(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{root: root, disk: disk{root, fault}, shards: map[string]bool{}}
	if err := f.prepare(dir); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// prepare makes the top of the tree durable, takes the lock and empties tmp.
func (f *folder) prepare(dir string) error {
	tops := []string{blobsDir, path.Join(blobsDir, string(digest.SHA256)), path.Join(blobsDir, string(digest.SHA512)), uploadsDir, tmpDir, quarantine}
	for _, name := range tops {
		if err := f.mkdir(name); err != nil {
			return classify(err)
		}
	}
	if err := errors.Join(f.syncDir(blobsDir), f.syncDir("."), syncParent(dir)); err != nil {
		return err
	}
	lock, err := f.root.Open(blobsDir)
	if err != nil {
		return err
	}
	f.lock = lock
	if err := tryLock(lock); err != nil {
		return registry.Errorf(registry.Conflict, "the blob folder %q is in use by another process: %w", dir, err)
	}
	return f.clearTmp()
}

// clearTmp removes what a process that died was writing.
func (f *folder) clearTmp() error {
	for info, err := range f.entries(context.Background(), tmpDir) {
		if err != nil {
			return err
		}
		if err := f.disk.remove(path.Join(tmpDir, info.Name())); err != nil {
			return err
		}
	}
	return nil
}

// mkdir makes a folder that may be there.
func (f *folder) mkdir(name string) error {
	if err := f.disk.mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// Close gives the folder free for another process.
func (f *folder) Close() error {
	err := f.root.Close()
	if f.lock != nil {
		err = errors.Join(err, unlock(f.lock), f.lock.Close())
	}
	return err
}

// Stat implements blobstore.Backend.
func (f *folder) Stat(_ context.Context, d digest.Digest) (int64, error) {
	info, err := f.root.Lstat(blobPath(d))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Open implements blobstore.Backend. The blob is an *os.File.
func (f *folder) Open(_ context.Context, d digest.Digest) (registry.Blob, int64, error) {
	return f.open(blobPath(d))
}

func (f *folder) open(name string) (registry.Blob, int64, error) {
	file, err := f.root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// Put implements blobstore.Backend.
func (f *folder) Put(_ context.Context, want digest.Descriptor, r io.Reader) error {
	name := path.Join(tmpDir, rand.Text())
	err := f.write(name, r)
	if err == nil {
		err = f.place(name, want.Digest)
	}
	if err != nil {
		return errors.Join(classify(err), f.remove(name))
	}
	return nil
}

// write makes the file name of r's bytes and syncs it.
func (f *folder) write(name string, r io.Reader) error {
	file, err := f.disk.create(name, blobMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, r)
	if err == nil {
		err = file.sync()
	}
	return errors.Join(err, file.Close())
}

// place renames a synced file to the blob's name and makes that durable.
func (f *folder) place(name string, d digest.Digest) error {
	shard, err := f.shard(d)
	if err != nil {
		return err
	}
	if err := f.disk.rename(name, blobPath(d)); err != nil {
		return err
	}
	return f.syncDir(shard)
}

// Settle implements blobstore.Backend. A file has its blob's name only after its bytes were synced.
func (f *folder) Settle(_ context.Context, d digest.Digest) error {
	shard, err := f.shard(d)
	if err == nil {
		err = f.disk.chtimes(blobPath(d), time.Now())
	}
	if err == nil {
		err = f.syncDir(shard)
	}
	return classify(err)
}

// Quarantine implements blobstore.Backend.
func (f *folder) Quarantine(_ context.Context, d digest.Digest) error {
	name := blobPath(d)
	if err := f.disk.rename(name, path.Join(quarantine, string(d.Algorithm())+"-"+d.Hex())); err != nil {
		return classify(err)
	}
	return classify(errors.Join(f.syncDir(quarantine), f.syncDir(path.Dir(name))))
}

// Delete implements blobstore.Backend.
func (f *folder) Delete(_ context.Context, d digest.Digest) error {
	name := blobPath(d)
	if err := f.disk.remove(name); err != nil {
		return ignoreMissing(classify(err))
	}
	return classify(f.syncDir(path.Dir(name)))
}

// blobPath is where a blob lies. Digests hold nothing but their algorithm's name and hex digits.
func blobPath(d digest.Digest) string {
	hex := d.Hex()
	return path.Join(blobsDir, string(d.Algorithm()), hex[:2], hex)
}

// shard makes sure that the folder of the blob is there and durable. A folder that is found may be another call's, not
// synced yet, so every one is synced once by this process before a blob in it is acknowledged.
func (f *folder) shard(d digest.Digest) (string, error) {
	name := path.Dir(blobPath(d))
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shards[name] {
		return name, nil
	}
	if err := f.mkdir(name); err != nil {
		return "", err
	}
	if err := f.syncDir(path.Dir(name)); err != nil {
		return "", err
	}
	f.shards[name] = true
	return name, nil
}

// remove removes a file that may be absent.
func (f *folder) remove(name string) error { return ignoreMissing(f.disk.remove(name)) }

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// syncDir makes the entries of a folder durable.
func (f *folder) syncDir(name string) error {
	dir, err := f.disk.openFile("open", name, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(dir.sync(), dir.Close())
}

// syncParent makes the entry of dir itself durable. A parent that we may not read is somebody else's, and so was the
// making of dir.
func syncParent(dir string) error {
	parent, err := os.Open(filepath.Dir(filepath.Clean(dir)))
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := errors.Join(parent.Sync(), parent.Close()); err != nil {
		return fmt.Errorf("sync the folder above %q: %w", dir, err)
	}
	return nil
}
