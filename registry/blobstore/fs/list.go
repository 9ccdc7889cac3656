package fs

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"path"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
)

// listBatch is how many entries of a folder are held in memory at a time.
const listBatch = 256

// All implements blobstore.Backend. A file that is no blob by its name and place is left out. Blobs that come or go
// meanwhile may be listed or not. The first error ends the list.
func (f *folder) All(ctx context.Context) iter.Seq2[registry.StoredBlob, error] {
	return func(yield func(registry.StoredBlob, error) bool) {
		for _, a := range []digest.Algorithm{digest.SHA256, digest.SHA512} {
			top := path.Join(blobsDir, string(a))
			for shard, err := range f.entries(ctx, top) {
				if err != nil {
					yield(registry.StoredBlob{}, err)
					return
				}
				if !f.listShard(ctx, a, path.Join(top, shard.Name()), yield) {
					return
				}
			}
		}
	}
}

// listShard yields the blobs of one folder and reports whether to go on.
func (f *folder) listShard(ctx context.Context, a digest.Algorithm, dir string, yield func(registry.StoredBlob, error) bool) bool {
	for info, err := range f.entries(ctx, dir) {
		if err != nil {
			yield(registry.StoredBlob{}, err)
			return false
		}
		d, err := digest.Parse(string(a) + ":" + info.Name())
		if err != nil || blobPath(d) != path.Join(dir, info.Name()) || !info.Mode().IsRegular() {
			continue
		}
		if !yield(registry.StoredBlob{Digest: d, Size: info.Size(), StoredAt: info.ModTime()}, nil) {
			return false
		}
	}
	return true
}

// Uploads implements blobstore.Backend. The first error ends the list.
func (f *folder) Uploads(ctx context.Context) iter.Seq2[registry.UploadSession, error] {
	return func(yield func(registry.UploadSession, error) bool) {
		for info, err := range f.entries(ctx, uploadsDir) {
			if err != nil {
				yield(registry.UploadSession{}, err)
				return
			}
			if !blobstore.ValidUploadID(info.Name()) || !info.Mode().IsRegular() {
				continue
			}
			if !yield(registry.UploadSession{ID: info.Name(), Size: info.Size(), TouchedAt: info.ModTime()}, nil) {
				return
			}
		}
	}
}

// entries yields what a folder holds, a batch at a time; what vanishes meanwhile, or is no folder, yields nothing.
func (f *folder) entries(ctx context.Context, name string) iter.Seq2[fs.FileInfo, error] {
	return func(yield func(fs.FileInfo, error) bool) {
		if info, err := f.root.Lstat(name); err != nil || !info.IsDir() {
			if err := ignoreMissing(err); err != nil {
				yield(nil, err)
			}
			return
		}
		dir, err := f.root.Open(name)
		if err != nil {
			yield(nil, err)
			return
		}
		defer dir.Close()
		for {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			batch, err := dir.Readdir(listBatch)
			for _, info := range batch {
				if !yield(info, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}
