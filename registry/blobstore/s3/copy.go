package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/minio/minio-go/v7"
)

// segment is an object, or what an append added to an upload session.
type segment struct {
	key, etag string
	size      int64
}

func total(segments []segment) (size int64) {
	for _, s := range segments {
		size += s.size
	}
	return size
}

// span is a part of a segment that one request copies.
type span struct {
	segment
	from, length int64
}

// compose makes dst of the segments, in order, without their bytes coming here where the store can do that, and proves
// by its size that it is there. dst may be a segment itself. Errors: one that wraps fs.ErrNotExist when a segment is gone
// or was replaced.
func (b *bucket) compose(ctx context.Context, dst string, segments []segment) error {
	mark := rand.Text()
	spans, fit := spansOf(segments)
	var err error
	switch {
	case len(spans) == 1 && len(segments) == 1:
		err = b.copyWhole(ctx, dst, segments[0], mark)
	case fit && len(spans) > 0:
		err = b.copyParts(ctx, dst, spans, mark)
	default:
		err = b.restream(ctx, dst, segments)
	}
	if err != nil {
		return err
	}
	return b.proveSize(ctx, dst, total(segments))
}

// spansOf cuts segments into what a multipart upload can be made of by copying; false means that it can't.
func spansOf(segments []segment) ([]span, bool) {
	var spans []span
	for i, s := range segments {
		if s.size < minPart && i < len(segments)-1 {
			return nil, false
		}
		count := max((s.size+copyLimit-1)/copyLimit, 1)
		length := (s.size + count - 1) / count // equal shares: none is below the least size
		for from := int64(0); from < s.size || from == 0; from += length {
			spans = append(spans, span{s, from, min(length, s.size-from)})
			if s.size == 0 {
				break
			}
		}
	}
	return spans, len(spans) <= maxParts
}

// copyWhole copies one object in one request.
func (b *bucket) copyWhole(ctx context.Context, dst string, s segment, mark string) error {
	_, err := b.core.Client.CopyObject(ctx,
		minio.CopyDestOptions{Bucket: b.name, Object: dst, ReplaceMetadata: true, UserMetadata: map[string]string{markHeader: mark}},
		minio.CopySrcOptions{Bucket: b.name, Object: s.key, MatchETag: s.etag})
	if err == nil {
		return nil
	}
	_, err = b.outcome(ctx, dst, mark, false, replaced(classify(err)))
	return err
}

// copyParts copies spans into a multipart upload.
func (b *bucket) copyParts(ctx context.Context, dst string, spans []span, mark string) error {
	upload, err := b.startUpload(ctx, dst, mark)
	if err != nil {
		return err
	}
	parts, err := b.copySpans(ctx, dst, upload, spans)
	if err == nil {
		_, err = b.complete(ctx, dst, upload, parts, false, mark)
	}
	if err != nil {
		return errors.Join(err, b.abortUpload(ctx, dst, upload))
	}
	return nil
}

func (b *bucket) copySpans(ctx context.Context, dst, upload string, spans []span) ([]minio.CompletePart, error) {
	parts := make([]minio.CompletePart, 0, len(spans))
	for i, s := range spans {
		part, err := b.core.CopyObjectPart(ctx, b.name, s.key, b.name, dst, upload, i+1, s.from, s.length,
			map[string]string{"x-amz-copy-source-if-match": s.etag})
		if err == nil && part.ETag == "" { // status 200 with an error in its body
			err = unavailable("the blob store failed to copy a part", nil, busyWait)
		}
		if err != nil {
			return nil, replaced(classify(err))
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// restream makes dst of segments that are too small to be copied as parts.
func (b *bucket) restream(ctx context.Context, dst string, segments []segment) error {
	src := b.newReader(ctx, segments, false)
	defer src.Close()
	o := b.newObject(ctx, dst, false, src.size)
	if _, err := io.Copy(o, src); err != nil {
		return errors.Join(err, o.abort())
	}
	if _, err := o.finish(); err != nil {
		return errors.Join(err, o.abort())
	}
	return nil
}

// A store that replaces an object in two steps shows none for a moment while another writer puts the same blob: what was there
// just now is gone only when it is absent at each of so many looks.
const (
	looks     = 5
	lookPause = 20 * time.Millisecond // doubled after each
)

// statWritten is stat of an object that was there a moment ago. Errors: one that wraps fs.ErrNotExist when it stays away.
func (b *bucket) statWritten(ctx context.Context, key string) (minio.ObjectInfo, error) {
	for look := 0; ; look++ {
		info, err := b.stat(ctx, key)
		if !isAbsent(err) || look+1 == looks {
			return info, err
		}
		if err := pause(ctx, lookPause<<look); err != nil {
			return info, err
		}
	}
}

// proveSize checks that an object that was just written is there. Errors: one that wraps fs.ErrNotExist when it is not.
func (b *bucket) proveSize(ctx context.Context, key string, want int64) error {
	info, err := b.statWritten(ctx, key)
	if err != nil {
		return err
	}
	if info.Size != want {
		return unavailable("the blob store holds another size than it was given", nil, busyWait)
	}
	return nil
}

// replaced turns a condition on a copy's source that was not met into "not there": the object that we mean is gone.
func replaced(err error) error {
	if errors.Is(err, fs.ErrExist) && !isAbsent(err) {
		return errors.Join(fs.ErrNotExist, err)
	}
	return err
}
