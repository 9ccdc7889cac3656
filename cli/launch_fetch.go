package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/launchverify"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// fetcher brings what a launch pins from the registry. It signs in with the first question, so a warm cache needs neither
// a server nor a session.
type fetcher struct {
	app    app
	client *client.Client
}

func (f *fetcher) open(ctx context.Context) (*client.Client, error) {
	if f.client != nil {
		return f.client, nil
	}
	c, err := f.app.env.ociClient(ctx)
	if err != nil {
		return nil, err
	}
	f.client = c
	return c, nil
}

// Fetch opens a pack's archive; reading it fails unless it is the one that the pinned manifest names.
func (f *fetcher) Fetch(ctx context.Context, pin receipt.Pin) (io.ReadCloser, error) {
	owner, pack, _ := strings.Cut(pin.ID, "/")
	repository, err := name.RepositoryName(owner, pack)
	if err != nil {
		return nil, err
	}
	c, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	got, err := c.FetchManifest(ctx, repository, pin.Manifest)
	if err != nil {
		return nil, notFound(err)
	}
	blob, err := c.Blob(ctx, repository, got.Artifact.Layer)
	if err != nil {
		return nil, notFound(err)
	}
	bar := f.app.env.transfer(pin.String(), got.Artifact.Layer.Size)
	return followed{bar.reader(blob), blob, bar}, nil
}

// notFound marks what the registry does not have, as launchverify wants it.
func notFound(err error) error {
	if exitCode(err) == exitNotFound {
		return fmt.Errorf("%w: %w", launchverify.ErrNotFound, err)
	}
	return err
}

// followed takes its bar down when it is closed.
type followed struct {
	io.Reader
	blob io.Closer
	bar  *transfer
}

func (f followed) Close() error {
	f.bar.end()
	return f.blob.Close()
}
