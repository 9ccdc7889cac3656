package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// blobs copies what of a manifest's blobs the destination lacks.
func (r *repo) blobs(ctx context.Context, list []descriptor) error {
	var g group
	g.limit(r.opt.Jobs)
	var mu sync.Mutex
	var first error
	for _, d := range list {
		g.run(func() {
			err := r.once(ctx, d.Digest, func() error { return r.blob(ctx, d) })
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = fmt.Errorf("blob %s: %w", d.Digest, err)
				}
			}
		})
		mu.Lock()
		stop := first != nil
		mu.Unlock()
		if stop {
			break
		}
	}
	g.wait()
	return first
}

// blob brings one blob to the destination: it is there, or in another of its repositories, or is copied.
func (r *repo) blob(ctx context.Context, d descriptor) error {
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	there, err := r.dst.HasBlob(ctx, r.to, d.Digest)
	if err != nil {
		return err
	}
	if there {
		r.count(func(rep *Report) { rep.Present++ })
		r.holds(d.Digest)
		return nil
	}
	if from := r.held(d.Digest); from != "" && from != r.to {
		if !r.opt.DryRun {
			there, err = r.dst.Mount(ctx, r.to, from, d.Digest)
		}
		if err != nil {
			return err
		}
		if there || r.opt.DryRun {
			r.count(func(rep *Report) { rep.Mounted++ })
			return nil
		}
	}
	r.opt.Found(d.Size)
	if !r.opt.DryRun {
		if err := r.opt.retry(ctx, func() error { return r.transfer(ctx, d) }); err != nil {
			return r.elsewhere(d, err)
		}
	}
	r.count(func(rep *Report) {
		rep.Blobs++
		rep.Bytes += d.Size
	})
	r.holds(d.Digest)
	return nil
}

// elsewhere forgives that the source lacks a blob which has addresses of its own: no registry need hold it.
func (r *repo) elsewhere(d descriptor, err error) error {
	var lacks *sourceError
	if len(d.URLs) == 0 || !absent(err) || !errors.As(err, &lacks) {
		return err
	}
	r.note(sparse, Problem{Repository: r.name(), Reference: d.Digest.String(), Message: "the source lacks it; manifests give other addresses for it"})
	return nil
}

// sourceError is an error of the source: the destination's rules have no part in it.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return "source: " + e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

// transfer moves the bytes of a blob. The last of them leave only when all have the digest.
func (r *repo) transfer(ctx context.Context, d descriptor) error {
	body, err := r.src.Blob(ctx, r.from, d.Digest)
	if absent(err) && int64(len(d.Data)) == d.Size && len(d.Data) > 0 {
		body, err = io.NopCloser(bytes.NewReader(d.Data)), nil
	}
	if err != nil {
		return &sourceError{err}
	}
	defer body.Close()
	src := &sourceReader{r: digest.NewReader(body, d.plain()), size: d.Size, moved: r.opt.Moved}
	if err := r.dst.PutBlob(ctx, r.to, d.plain(), src); err != nil {
		read, cause := src.state()
		r.opt.Moved(-read)
		if cause != nil {
			return &sourceError{cause}
		}
		return err
	}
	return nil
}

// sourceReader counts what is read of a blob, keeps its last bytes back until the digest was compared, and remembers why
// the reading ended. An upload that was answered early may still be reading when it is asked.
type sourceReader struct {
	r     *digest.Reader
	size  int64
	moved func(int64)

	mu    sync.Mutex
	read  int64
	cause error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read += int64(n)
	if err == nil && n > 0 && s.read == s.size {
		var beyond [1]byte
		if _, err = s.r.Read(beyond[:]); err == io.EOF {
			err = nil
		}
	}
	if err != nil && err != io.EOF {
		s.cause = err
		s.read -= int64(n)
		return 0, err
	}
	s.moved(int64(n))
	return n, err
}

func (s *sourceReader) state() (read int64, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read, s.cause
}

// holds remembers that the repository of the destination holds a blob, for others to mount it from.
func (r *repo) holds(d digest.Digest) {
	r.copier.mu.Lock()
	defer r.copier.mu.Unlock()
	if len(r.holder) < maxEntries {
		r.holder[d] = r.to
	}
}

func (r *repo) held(d digest.Digest) string {
	r.copier.mu.Lock()
	defer r.copier.mu.Unlock()
	return r.holder[d]
}
