package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
)

// markHeader is the metadata by which a writer knows its own object again when an answer got lost.
const markHeader = "Gatehouse-Writer"

// cleanupTime bounds what is done after a request was given up.
const cleanupTime = 30 * time.Second

// object is an object on its way in. It is visible only when finish gave nil, and nothing of it stays after abort.
type object struct {
	bucket *bucket
	ctx    context.Context
	key    string
	once   bool // somebody else's object under this key is not replaced
	mark   string

	buf    []byte
	spare  chan []byte // the buffers that no request reads
	size   int64       // of the parts that are on their way
	upload string      // the id of the multipart upload, "" while there is one buffer
	number int         // of the last part

	wg     sync.WaitGroup
	mu     sync.Mutex
	parts  []minio.CompletePart
	failed error
}

// newObject starts an object. hint is its size where that is known, else 0.
func (b *bucket) newObject(ctx context.Context, key string, once bool, hint int64) *object {
	o := &object{bucket: b, ctx: ctx, key: key, once: once, mark: rand.Text(), spare: make(chan []byte, flights)}
	for range flights {
		o.spare <- nil
	}
	o.buf = make([]byte, 0, min(max(hint, 0), b.partSize))
	return o
}

// partAt is the size of the part with a number, from 1: it doubles each 2,000 parts, so that 10,000 parts hold more than
// 200 GiB and a writer's memory stays small for what is common.
func (b *bucket) partAt(number int) int64 { return b.partSize << min((number-1)/2000, 2) }

// Write implements io.Writer.
func (o *object) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 {
		room := int(o.bucket.partAt(o.number+1)) - len(o.buf)
		if room == 0 {
			if err := o.flush(); err != nil {
				return n, err
			}
			continue
		}
		if o.buf == nil { // a second part: there may be many
			o.buf = make([]byte, 0, o.bucket.partAt(o.number+1))
		}
		room = min(room, len(p))
		o.buf = append(o.buf, p[:room]...)
		p, n = p[room:], n+room
	}
	return n, nil
}

// flush sends the buffer as a part and takes another one. It waits while all are on their way.
func (o *object) flush() error {
	if o.upload == "" {
		id, err := o.bucket.startUpload(o.ctx, o.key, o.mark)
		if err != nil {
			return err
		}
		o.upload = id
	}
	if err := o.failure(); err != nil {
		return err
	}
	o.number++
	number, body := o.number, o.buf
	o.size += int64(len(body))
	o.wg.Go(func() {
		part, err := o.bucket.putPart(o.ctx, o.key, o.upload, number, body)
		o.spare <- body[:0]
		o.mu.Lock()
		defer o.mu.Unlock()
		o.parts = append(o.parts, part)
		if o.failed == nil {
			o.failed = err
		}
	})
	o.buf = <-o.spare
	return nil
}

func (o *object) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failed
}

// finish makes the object visible and gives its ETag. When once is set and another has the key already, it gives an
// error that wraps fs.ErrExist.
func (o *object) finish() (etag string, err error) {
	if o.upload == "" {
		return o.putWhole()
	}
	if err := o.flush(); err != nil {
		return "", err
	}
	o.wg.Wait()
	if err := o.failure(); err != nil {
		return "", err
	}
	slices.SortFunc(o.parts, func(a, b minio.CompletePart) int { return cmp.Compare(a.PartNumber, b.PartNumber) })
	etag, err = o.bucket.complete(o.ctx, o.key, o.upload, o.parts, o.once, o.mark)
	if err == nil {
		o.upload = ""
	}
	return etag, err
}

// putWhole writes what lies in the buffer in one request. A store that replaces an object in two steps may answer "not there"
// to one of several who write it at once: it is asked again.
func (o *object) putWhole() (string, error) {
	sum := sha256.Sum256(o.buf)
	for try := 1; ; try++ {
		info, err := o.bucket.core.PutObject(o.ctx, o.bucket.name, o.key, bytes.NewReader(o.buf), int64(len(o.buf)), "", hex.EncodeToString(sum[:]), o.options())
		if err == nil && info.ETag == "" {
			err = unavailable("the blob store gave an object no ETag", nil, busyWait)
		}
		if err == nil {
			return info.ETag, nil
		}
		cause := classify(err)
		etag, err := o.bucket.outcome(o.ctx, o.key, o.mark, o.once, cause)
		if try == maxTries || err == nil || !errors.Is(err, errVanished) && !isAbsent(cause) {
			return etag, err
		}
		if err := pause(o.ctx, lookPause<<try); err != nil {
			return "", err
		}
	}
}

// abort takes back what is not finished.
func (o *object) abort() error {
	o.wg.Wait()
	if o.upload == "" {
		return nil
	}
	err := o.bucket.abortUpload(o.ctx, o.key, o.upload)
	o.upload = ""
	return err
}

// options are the headers of an object that is one PUT.
func (o *object) options() minio.PutObjectOptions {
	opts := marked(o.mark)
	if o.once {
		opts.SetMatchETagExcept("*")
	}
	return opts
}

// marked are the headers of an object that bears a writer's mark.
func marked(mark string) minio.PutObjectOptions {
	return minio.PutObjectOptions{UserMetadata: map[string]string{markHeader: mark}}
}

// startUpload starts a multipart upload and gives its id, which is not "".
func (b *bucket) startUpload(ctx context.Context, key, mark string) (string, error) {
	id, err := b.core.NewMultipartUpload(ctx, b.name, key, marked(mark))
	if err == nil && id == "" {
		return "", unavailable("the blob store gave a multipart upload no id", nil, busyWait)
	}
	return id, classify(err)
}

// putPart sends one part. Its hash goes with it, so the store refuses bytes that changed on their way.
func (b *bucket) putPart(ctx context.Context, key, upload string, number int, body []byte) (minio.CompletePart, error) {
	sum := sha256.Sum256(body)
	part, err := b.core.PutObjectPart(ctx, b.name, key, upload, number, bytes.NewReader(body), int64(len(body)),
		minio.PutObjectPartOptions{Sha256Hex: hex.EncodeToString(sum[:])})
	if err == nil && part.ETag == "" {
		err = unavailable("the blob store gave a part no ETag", nil, busyWait)
	}
	return minio.CompletePart{PartNumber: number, ETag: part.ETag}, classify(err)
}

// complete makes a multipart upload the object. An answer of status 200 may hold an error; whether the object is there is
// then asked of the store.
func (b *bucket) complete(ctx context.Context, key, upload string, parts []minio.CompletePart, once bool, mark string) (string, error) {
	var opts minio.PutObjectOptions
	if once {
		opts.SetMatchETagExcept("*")
	}
	info, err := b.core.CompleteMultipartUpload(ctx, b.name, key, upload, parts, opts)
	if err == nil {
		return info.ETag, nil
	}
	return b.outcome(ctx, key, mark, once, classify(err))
}

// errVanished says that a condition was not met by an object that is not there: it was removed meanwhile, or the store
// could not decide between two writers.
var errVanished = unavailable("the blob store could not decide between two writers", nil, busyWait)

// outcome finds out what came of a write that was answered with cause, or not at all: it is a success when the object
// under the key bears our mark.
func (b *bucket) outcome(ctx context.Context, key, mark string, once bool, cause error) (string, error) {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	info, err := b.stat(ctx, key)
	switch {
	case err == nil && info.UserMetadata[markHeader] == mark:
		return info.ETag, nil
	case err == nil && once:
		return "", errors.Join(fs.ErrExist, cause)
	case isAbsent(err) && errors.Is(cause, fs.ErrExist):
		return "", errVanished
	case isAbsent(cause): // a multipart upload that somebody aborted
		return "", unavailable("the blob store lost an upload", cause, busyWait)
	}
	return "", cause
}

// abortUpload ends a multipart upload; an absent one is no error.
func (b *bucket) abortUpload(ctx context.Context, key, upload string) error {
	ctx, cancel := afterwards(ctx)
	defer cancel()
	if err := classify(b.core.AbortMultipartUpload(ctx, b.name, key, upload)); !isAbsent(err) {
		return err
	}
	return nil
}

// stat is the object under the key. Errors: one that wraps fs.ErrNotExist.
func (b *bucket) stat(ctx context.Context, key string) (minio.ObjectInfo, error) {
	info, err := b.core.StatObject(ctx, b.name, key, minio.StatObjectOptions{})
	return info, classify(err)
}

// afterwards is a context for what has to be done even when the caller has gone.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
}

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
