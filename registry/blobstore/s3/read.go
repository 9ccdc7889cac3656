package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/minio/minio-go/v7"
)

// maxResumes is how often a reader asks again when an answer ended early, and once more for each resumeEach bytes.
const (
	maxResumes = 5
	resumeEach = 1 << 30
)

// reader is a registry.Blob over segments. Reading on from one place uses one request a segment; an answer that ends
// early is gone on with where it ended, a bounded number of times. It never ends before its size without an error.
type reader struct {
	bucket   *bucket
	ctx      context.Context
	cancel   context.CancelFunc
	segments []segment
	size     int64
	end      int64 // where reading will stop: what a request need not ask for
	blob     bool  // a replaced object holds the same bytes, as its key is their digest

	pos     int64
	body    io.ReadCloser // nil while no request runs
	left    int64         // what body has still to give
	resumes int
}

// newReader reads the segments. It ends with Close, not with ctx, as a file does.
func (b *bucket) newReader(ctx context.Context, segments []segment, blob bool) *reader {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	size := total(segments)
	return &reader{bucket: b, ctx: ctx, cancel: cancel, segments: segments, size: size, end: size, blob: blob, resumes: maxResumes + int(size/resumeEach)}
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for r.pos < r.end {
		n, err := r.readBody(p)
		if n > 0 {
			return n, nil
		}
		if err == nil {
			continue
		}
		r.drop()
		if r.resumes--; r.resumes < 0 || r.ctx.Err() != nil || !mayResume(err) {
			return 0, err
		}
	}
	return 0, io.EOF
}

// readBody reads from the running request, or starts one. It gives bytes or an error.
func (r *reader) readBody(p []byte) (int, error) {
	if r.body == nil {
		if err := r.request(); err != nil {
			return 0, err
		}
	}
	n, err := r.body.Read(p[:min(int64(len(p)), r.left)])
	r.pos += int64(n)
	r.left -= int64(n)
	if r.left == 0 {
		r.drop()
		return n, nil
	}
	if n == 0 && err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, unavailable(fmt.Sprintf("the blob store's answer ended %d bytes early", r.left), err, busyWait)
	}
	return n, nil
}

// mayResume reports whether asking again may help.
func mayResume(err error) bool {
	return !isAbsent(err) && !errors.Is(err, context.Canceled)
}

// request asks for the rest of the segment at pos.
func (r *reader) request() error {
	at, from := r.segmentAt(r.pos)
	s := &r.segments[at]
	length := min(s.size-from, r.end-r.pos)
	body, err := r.bucket.get(r.ctx, *s, from, length)
	if err == nil {
		r.body, r.left = body, length
		return nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if !r.blob {
		return errors.Join(fs.ErrNotExist, err)
	}
	info, statErr := r.bucket.stat(r.ctx, s.key)
	if statErr != nil {
		return statErr
	}
	if info.Size != s.size {
		return unavailable("a blob was replaced while it was read", err, busyWait)
	}
	s.etag = info.ETag
	return unavailable("a blob was written again while it was read", err, busyWait) // Read asks again
}

// segmentAt is the segment that holds the byte at pos, and where in it.
func (r *reader) segmentAt(pos int64) (int, int64) {
	at := 0
	for pos >= r.segments[at].size {
		pos -= r.segments[at].size
		at++
	}
	return at, pos
}

// get asks for a range of an object, which must still be the one that has the ETag (else an error that wraps
// fs.ErrExist). The answer says that it has the range's length.
func (b *bucket) get(ctx context.Context, s segment, from, length int64) (io.ReadCloser, error) {
	var opts minio.GetObjectOptions
	if err := errors.Join(opts.SetRange(from, from+length-1), opts.SetMatchETag(s.etag)); err != nil {
		return nil, err
	}
	body, info, header, err := b.core.GetObject(ctx, b.name, s.key, opts)
	if err != nil {
		return nil, classify(err)
	}
	place := fmt.Sprintf("bytes %d-%d/", from, from+length-1)
	if given := header.Get("Content-Range"); info.Size != length || given != "" && !strings.HasPrefix(given, place) || given == "" && from > 0 {
		err := unavailable(fmt.Sprintf("the blob store answered a request for %d bytes at %d with %d bytes, range %q", length, from, info.Size, given), nil, busyWait)
		return nil, errors.Join(err, body.Close())
	}
	return body, nil
}

// drop ends the running request.
func (r *reader) drop() {
	if r.body != nil {
		r.body.Close() // what it could say is of no interest: the bytes that were wanted came
		r.body, r.left = nil, 0
	}
}

// Seek implements io.Seeker.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.pos
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return r.pos, errors.New("seek before the start of a blob")
	}
	if offset != r.pos {
		r.drop()
		r.pos = offset
	}
	return offset, nil
}

// ReadAt implements io.ReaderAt, with a request of its own.
func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("read before the start of a blob")
	}
	if off >= r.size {
		return 0, io.EOF
	}
	own := &reader{
		bucket: r.bucket, ctx: r.ctx, segments: append([]segment(nil), r.segments...), size: r.size,
		pos: off, end: min(off+int64(len(p)), r.size), blob: r.blob, resumes: maxResumes,
	}
	defer own.drop()
	n, err := io.ReadFull(own, p)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.drop()
	r.cancel()
	return nil
}
