package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Stat implements blobstore.Backend.
func (b *bucket) Stat(ctx context.Context, d digest.Digest) (int64, error) {
	info, err := b.stat(ctx, b.blobKey(d))
	return info.Size, err
}

// Open implements blobstore.Backend.
func (b *bucket) Open(ctx context.Context, d digest.Digest) (registry.Blob, int64, error) {
	key := b.blobKey(d)
	info, err := b.stat(ctx, key)
	if err != nil {
		return nil, 0, err
	}
	return b.newReader(ctx, []segment{{key: key, etag: info.ETag, size: info.Size}}, true), info.Size, nil
}

// Put implements blobstore.Backend. r ends well only with verified bytes, and only then is the object finished.
func (b *bucket) Put(ctx context.Context, want digest.Descriptor, r io.Reader) error {
	key := b.blobKey(want.Digest)
	o := b.newObject(ctx, key, false, want.Size)
	_, err := io.Copy(o, r)
	if err == nil {
		_, err = o.finish()
	}
	if err != nil {
		return errors.Join(err, o.abort())
	}
	return b.proveSize(ctx, key, want.Size)
}

// Settle implements blobstore.Backend. What is visible is durable. It becomes young as a new object of its own bytes, made by
// a multipart upload: some stores keep the time of an object that is copied onto itself. An object that others replace while
// it is copied is looked at again: it holds the same bytes.
func (b *bucket) Settle(ctx context.Context, d digest.Digest) error {
	for try := 1; ; try++ {
		err := b.settle(ctx, b.blobKey(d))
		if try == maxTries || !isAbsent(err) {
			return err
		}
		if err := pause(ctx, lookPause<<try); err != nil {
			return err
		}
	}
}

func (b *bucket) settle(ctx context.Context, key string) error {
	info, err := b.statWritten(ctx, key)
	if err != nil || time.Since(info.LastModified) < b.touchAfter {
		return err
	}
	if info.Size == 0 {
		return b.storeParts(ctx, key, nil)
	}
	spans, _ := spansOf([]segment{{key: key, etag: info.ETag, size: info.Size}}) // at most 10 TiB
	if err := b.copyParts(ctx, key, spans, rand.Text()); err != nil {
		return err
	}
	return b.proveSize(ctx, key, info.Size)
}

// Delete implements blobstore.Backend.
func (b *bucket) Delete(ctx context.Context, d digest.Digest) error {
	return b.remove(ctx, b.blobKey(d))
}

// remove removes an object that may be absent.
func (b *bucket) remove(ctx context.Context, key string) error {
	if err := classify(b.core.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{})); !isAbsent(err) {
		return err
	}
	return nil
}

// Quarantine implements blobstore.Backend. Bytes that were put in place of the damaged ones meanwhile stay.
func (b *bucket) Quarantine(ctx context.Context, d digest.Digest) error {
	key := b.blobKey(d)
	damaged, err := b.stat(ctx, key)
	if err != nil {
		return err
	}
	if err := b.compose(ctx, b.quarantineKey(d), []segment{{key: key, etag: damaged.ETag, size: damaged.Size}}); err != nil {
		return err
	}
	now, err := b.stat(ctx, key)
	if err != nil || now.ETag != damaged.ETag || !now.LastModified.Equal(damaged.LastModified) {
		return err
	}
	return b.remove(ctx, key)
}

// All implements blobstore.Backend. An object that is no blob by its key is left out. The first error ends the list.
func (b *bucket) All(ctx context.Context) iter.Seq2[registry.StoredBlob, error] {
	return func(yield func(registry.StoredBlob, error) bool) {
		for info, err := range b.list(ctx, b.prefix+"blobs/") {
			if err != nil {
				yield(registry.StoredBlob{}, err)
				return
			}
			d, ok := b.digestOfKey(info.Key)
			if ok && !yield(registry.StoredBlob{Digest: d, Size: info.Size, StoredAt: info.LastModified}, nil) {
				return
			}
		}
	}
}

// list yields the objects whose keys begin with prefix, in byte order, a page at a time. The first error ends it.
func (b *bucket) list(ctx context.Context, prefix string) iter.Seq2[minio.ObjectInfo, error] {
	return func(yield func(minio.ObjectInfo, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(minio.ObjectInfo{}, err)
			return
		}
		for info := range b.core.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
			if !yield(info, classify(info.Err)) || info.Err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil { // a list that was cut off must not look whole
			yield(minio.ObjectInfo{}, err)
		}
	}
}

// sweep removes unfinished multipart uploads of blobs, which processes that were killed left behind. A store that lists
// none, or removes them by a rule of its own, has nothing to sweep.
func (b *bucket) sweep(ctx context.Context) error {
	for _, part := range []string{"blobs/", "quarantine/", "proof/"} {
		for left, err := range b.unfinished(ctx, b.prefix+part) {
			if err == nil && time.Since(left.Initiated) >= b.staleAfter {
				err = b.abortUpload(ctx, left.Key, left.UploadID)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
