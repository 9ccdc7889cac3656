package mirror

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// HasBlob implements place.
func (r *remote) HasBlob(ctx context.Context, repository string, d digest.Digest) (bool, error) {
	res, err := r.do(ctx, r.in(repository, http.MethodHead, "/blobs/"+d.String()), http.StatusOK)
	if err != nil {
		if absent(err) {
			return false, nil
		}
		return false, err
	}
	return true, res.Close()
}

// Blob implements place.
func (r *remote) Blob(ctx context.Context, repository string, d digest.Digest) (io.ReadCloser, error) {
	return r.try(ctx, r.in(repository, http.MethodGet, "/blobs/"+d.String()), []int{http.StatusOK})
}

// Mount implements place.
func (r *remote) Mount(ctx context.Context, repository, from string, d digest.Digest) (bool, error) {
	c := r.in(repository, http.MethodPost, "/blobs/uploads/")
	c.query = url.Values{"mount": {d.String()}, "from": {from}}
	c.scopes = append(c.scopes, auth.ScopeRepository(from, auth.ActionPull))
	res, err := r.do(ctx, c, http.StatusCreated, http.StatusAccepted)
	if err != nil {
		return false, err
	}
	defer res.Close()
	if res.StatusCode == http.StatusCreated {
		return true, nil
	}
	r.cancel(ctx, repository, res)
	return false, nil
}

// cancel ends an upload that is not wanted. One that can't be ended expires.
func (r *remote) cancel(ctx context.Context, repository string, res *answer) {
	c := r.in(repository, http.MethodDelete, "")
	at, err := r.location(res)
	if err != nil {
		return
	}
	c.at = at
	if res, err := r.try(ctx, c, []int{http.StatusNoContent, http.StatusOK, http.StatusAccepted}); err == nil {
		res.Close()
	}
}

// location is where an upload goes on.
func (r *remote) location(res *answer) (*url.URL, error) {
	u, err := res.Location()
	if err != nil {
		return nil, registry.Errorf(registry.BlobUploadInvalid, "the registry named no address for the upload: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || r.base.Scheme == "https" && u.Scheme != "https" {
		return nil, registry.Errorf(registry.BlobUploadInvalid, "the registry named the address %.200q for the upload", u)
	}
	return u, nil
}

// PutBlob implements place: one request opens the upload, one brings the bytes.
func (r *remote) PutBlob(ctx context.Context, repository string, want digest.Descriptor, body io.Reader) error {
	res, err := r.try(ctx, r.in(repository, http.MethodPost, "/blobs/uploads/"), []int{http.StatusAccepted})
	if err != nil {
		return &putError{err: err, blob: true}
	}
	defer res.Close()
	at, err := r.location(res)
	if err != nil {
		return err
	}
	query := at.Query()
	query.Set("digest", want.Digest.String())
	at.RawQuery = query.Encode()
	c := r.in(repository, http.MethodPut, "")
	c.at, c.body, c.length = at, body, want.Size
	c.header.Set("Content-Type", "application/octet-stream")
	if want.Size == 0 {
		c.body = nil
		if _, err := io.Copy(io.Discard, body); err != nil {
			return err
		}
	}
	done, err := r.try(ctx, c, []int{http.StatusCreated, http.StatusNoContent})
	if err != nil {
		return &putError{err: err, blob: true}
	}
	return done.Close()
}

// putError is what the destination said to a write.
type putError struct {
	err  error
	blob bool // a blob: where no blob may be put, nothing may
}

func (e *putError) Error() string { return e.err.Error() }
func (e *putError) Unwrap() error { return e.err }

// PutManifest implements place. A manifest whose digest is no sha256 is named by it, so that it gets no other.
func (r *remote) PutManifest(ctx context.Context, repository, tag string, m manifest) error {
	reference, query := tag, url.Values{}
	if tag == "" {
		reference = m.Digest.String()
	} else if m.Digest.Algorithm() != digest.SHA256 {
		reference, query = m.Digest.String(), url.Values{"tag": {tag}}
	}
	c := r.in(repository, http.MethodPut, "/manifests/"+reference)
	c.query = query
	c.header.Set("Content-Type", m.MediaType)
	c.header.Set("Accept", rule.MediaTypeDecision+", */*") // a refusal with all its violations
	err := r.opt.retry(ctx, func() error {
		c.body, c.length = bytes.NewReader(m.Content), int64(len(m.Content))
		res, err := r.try(ctx, c, []int{http.StatusCreated, http.StatusOK, http.StatusAccepted})
		if err != nil {
			return err
		}
		defer res.Close()
		if got, err := digest.Parse(res.Header.Get(digestHeader)); err == nil && got != m.Digest {
			return fmt.Errorf("the destination stored another manifest: %w", &digest.MismatchError{Want: m.Digest, Got: got})
		}
		return nil
	})
	if err != nil {
		return &putError{err: err}
	}
	return nil
}
