package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	ocidigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// Artifact is a pack as it goes over the OCI protocol: its manifest, its config, and its archive, which is opened
// anew for each try.
type Artifact struct {
	Manifest []byte
	Config   []byte
	Layer    digest.Descriptor
	Open     func() (io.ReadCloser, error)
}

// repository opens an OCI repository of the server.
func (c *Client) repository(name string) (*remote.Repository, error) {
	repo, err := remote.NewRepository(c.base.Host + "/" + name)
	if err != nil {
		return nil, registry.Errorf(registry.NameInvalid, "%w", err)
	}
	repo.PlainHTTP = c.base.Scheme == "http"
	header := http.Header{"User-Agent": {c.opt.UserAgent}, "Accept": {rule.MediaTypeDecision}}
	if c.opt.Bearer { // nothing is asked of the token endpoint
		header.Set("Authorization", "Bearer "+c.opt.Token)
		repo.Client = &auth.Client{Client: c.http, Header: header}
		return repo, nil
	}
	repo.Client = &auth.Client{
		Client: c.http,
		Header: header,
		Credential: auth.StaticCredential(c.base.Host, auth.Credential{
			Username: c.opt.Account, Password: c.opt.Token,
		}),
	}
	return repo, nil
}

// Push publishes an artifact under <repository>:<tag>. progress, unless nil, sees the archive's bytes as they go.
func (c *Client) Push(ctx context.Context, repository, tag string, a Artifact, progress func(io.Reader) io.Reader) (digest.Digest, error) {
	repo, err := c.repository(repository)
	if err != nil {
		return digest.Digest{}, err
	}
	config := ocispec.Descriptor{MediaType: pack.MediaTypeConfig, Digest: ocidigest.Digest(digest.FromBytes(a.Config).String()), Size: int64(len(a.Config))}
	layer := ocispec.Descriptor{MediaType: pack.MediaTypeLayer, Digest: ocidigest.Digest(a.Layer.Digest.String()), Size: a.Layer.Size}
	if err := pushBlob(ctx, repo, layer, a.Open, progress); err != nil {
		return digest.Digest{}, fmt.Errorf("archive: %w", ProtocolError(err))
	}
	openConfig := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(a.Config)), nil }
	if err := pushBlob(ctx, repo, config, openConfig, nil); err != nil {
		return digest.Digest{}, fmt.Errorf("config: %w", ProtocolError(err))
	}
	d := digest.FromBytes(a.Manifest)
	manifest := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: ocidigest.Digest(d.String()), Size: int64(len(a.Manifest))}
	return d, ProtocolError(repo.Manifests().PushReference(ctx, manifest, bytes.NewReader(a.Manifest), tag))
}

func pushBlob(ctx context.Context, repo *remote.Repository, d ocispec.Descriptor, open func() (io.ReadCloser, error), progress func(io.Reader) io.Reader) error {
	there, err := repo.Blobs().Exists(ctx, d)
	if err != nil || there {
		return err
	}
	r, err := open()
	if err != nil {
		return err
	}
	defer r.Close()
	var body io.Reader = r
	if progress != nil {
		body = progress(r)
	}
	return repo.Blobs().Push(ctx, d, body)
}

// FetchedArtifact is a pack's manifest and config, verified against the manifest's digest.
type FetchedArtifact struct {
	Artifact pack.OCIArtifact
	Config   *pack.Config
	Manifest []byte
}

// FetchManifest fetches a pack's manifest by digest and its config, and verifies both.
func (c *Client) FetchManifest(ctx context.Context, repository string, d digest.Digest) (FetchedArtifact, error) {
	var out FetchedArtifact
	repo, err := c.repository(repository)
	if err != nil {
		return out, err
	}
	_, body, err := repo.Manifests().FetchReference(ctx, d.String())
	if err != nil {
		return out, ProtocolError(err)
	}
	defer body.Close()
	if out.Manifest, err = io.ReadAll(io.LimitReader(body, limit.Manifest+1)); err != nil {
		return out, err
	}
	if got := digest.FromBytes(out.Manifest); got != d {
		return out, &digest.MismatchError{Want: d, Got: got, WantSize: int64(len(out.Manifest)), GotSize: int64(len(out.Manifest))}
	}
	artifact, report := pack.ParseArtifact(out.Manifest, rule.Policy{})
	if artifact == nil {
		return out, errors.Join(fmt.Errorf("%s@%s is no pack", repository, d), report.Decide(rule.Launch, rule.Subject{Digest: d.String()}, nil).Err())
	}
	out.Artifact = *artifact
	if artifact.Config.Size > limit.Config {
		return out, fmt.Errorf("config of %s@%s: %d bytes, at most %d are allowed", repository, d, artifact.Config.Size, limit.Config)
	}
	blob, err := c.Blob(ctx, repository, artifact.Config)
	if err != nil {
		return out, err
	}
	defer blob.Close()
	src, err := io.ReadAll(blob)
	if err != nil {
		return out, err
	}
	out.Config, err = pack.ParseConfig(src)
	return out, err
}

// Blob opens a blob; reading it fails at the end unless the bytes are those of the descriptor. A connection that breaks
// meanwhile is taken up again, as Options.RetryFor says.
func (c *Client) Blob(ctx context.Context, repository string, d digest.Descriptor) (io.ReadCloser, error) {
	repo, err := c.repository(repository)
	if err != nil {
		return nil, err
	}
	want := ocispec.Descriptor{MediaType: d.MediaType, Digest: ocidigest.Digest(d.Digest.String()), Size: d.Size}
	body := &resuming{ctx: ctx, by: c.retry, open: func(ctx context.Context, at int64) (io.ReadCloser, error) {
		r, err := repo.Blobs().Fetch(ctx, want)
		if err != nil || at == 0 {
			return r, ProtocolError(err)
		}
		if s, ok := r.(io.Seeker); ok {
			_, err = s.Seek(at, io.SeekStart)
		} else {
			_, err = io.CopyN(io.Discard, r, at)
		}
		if err != nil {
			r.Close()
		}
		return r, err
	}}
	if err := body.begin(); err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{digest.NewReader(body, d), body}, nil
}
