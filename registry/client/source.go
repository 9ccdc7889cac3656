package client

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// OpenSource opens where a repair fetches bytes from: another registry of any make (http or https, with USER:PASSWORD@
// before the host where it asks for a sign-in), or a folder of blobs: a data directory, a backup, an OCI layout.
// Errors: Invalid, NotFound.
func OpenSource(from string) (registry.RepairSource, error) {
	if strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://") {
		u, err := url.Parse(from)
		if err != nil {
			return nil, registry.Errorf(registry.Invalid, "from: it is no address")
		}
		opt := Options{UserAgent: "gatehouse-fsck"}
		if u.User != nil {
			opt.Account = u.User.Username()
			opt.Token, _ = u.User.Password()
			u.User = nil
		}
		opt.Server = u.String()
		c, err := New(opt)
		return registrySource{c}, err
	}
	info, err := os.Stat(from)
	if err != nil || !info.IsDir() {
		return nil, registry.Errorf(registry.NotFound, "from: %.300q is neither an http(s) address nor a folder on the server", from)
	}
	return folderSource(from), nil
}

// registrySource fetches over the distribution protocol.
type registrySource struct{ c *Client }

// Fetch implements registry.RepairSource: as a blob, then as a manifest, of each repository in turn.
func (s registrySource) Fetch(ctx context.Context, repositories []string, want digest.Descriptor) (io.ReadCloser, error) {
	failed := error(registry.Errorf(registry.BlobUnknown, "no repository that the source could have holds %s", want.Digest))
	for _, repository := range repositories {
		r, err := s.fetch(ctx, repository, want)
		if err == nil {
			return r, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		failed = err
	}
	return nil, failed
}

func (s registrySource) fetch(ctx context.Context, repository string, want digest.Descriptor) (io.ReadCloser, error) {
	repo, err := s.c.repository(repository)
	if err != nil {
		return nil, err
	}
	if _, r, err := repo.Blobs().FetchReference(ctx, want.Digest.String()); err == nil {
		return r, nil
	}
	_, r, err := repo.Manifests().FetchReference(ctx, want.Digest.String())
	return r, ProtocolError(err)
}

// folderSource is a folder in which blobs lie by their digest.
type folderSource string

// Fetch implements registry.RepairSource. It looks where the registry's own folders and OCI layouts keep a blob.
func (dir folderSource) Fetch(_ context.Context, _ []string, want digest.Descriptor) (io.ReadCloser, error) {
	root, err := os.OpenRoot(string(dir))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	hex := want.Digest.Hex()
	for _, name := range []string{
		path.Join("blobs", string(want.Digest.Algorithm()), hex[:2], hex),
		path.Join("blobs", string(want.Digest.Algorithm()), hex),
	} {
		f, err := root.Open(name)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, registry.Errorf(registry.BlobUnknown, "the folder does not hold %s", want.Digest)
}
