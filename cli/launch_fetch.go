package cli

import (
	"bytes"
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
	signIn *launchSignIn
}

func (f *fetcher) open(ctx context.Context) (*client.Client, error) { return f.signIn.client(ctx) }

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
	return described{followed{bar.reader(blob), blob, bar, got.Artifact.Layer.Size}, got.Manifest}, nil
}

// FetchSpec opens the stored spec of a receipt's job.
func (f *fetcher) FetchSpec(ctx context.Context, r *receipt.Receipt) (io.ReadCloser, error) {
	c, err := f.openJob(ctx, r)
	if err != nil {
		return nil, err
	}
	spec, err := c.JobSpec(ctx, r.Job)
	return io.NopCloser(bytes.NewReader(spec)), notFound(err)
}

// FetchPackage opens the package of a receipt's job.
func (f *fetcher) FetchPackage(ctx context.Context, r *receipt.Receipt) (io.ReadCloser, error) {
	c, err := f.openJob(ctx, r)
	if err != nil {
		return nil, err
	}
	blob, size, err := c.JobPackage(ctx, r.Job)
	if err != nil {
		return nil, notFound(err)
	}
	bar := f.app.env.transfer("package of "+r.Job, size)
	return followed{bar.reader(blob), blob, bar, size}, nil
}

// openJob is open for what belongs to a job, whose id goes into an address.
func (f *fetcher) openJob(ctx context.Context, r *receipt.Receipt) (*client.Client, error) {
	if !jobForm.MatchString(r.Job) {
		return nil, fmt.Errorf("the receipt is of job %.200q, which is no job's id", r.Job)
	}
	return f.open(ctx)
}

// notFound marks what the registry does not have, as launchverify wants it.
func notFound(err error) error {
	if exitCode(err) == exitNotFound {
		return fmt.Errorf("%w: %w", launchverify.ErrNotFound, err)
	}
	return err
}

// described brings the manifest along.
type described struct {
	followed
	manifest []byte
}

// Manifest is the manifest's bytes.
func (d described) Manifest() []byte { return d.manifest }

// followed takes its bar down when it is closed.
type followed struct {
	io.Reader
	blob io.Closer
	bar  *transfer
	size int64
}

// Size is how many bytes come, as far as the registry says.
func (f followed) Size() int64 { return f.size }

func (f followed) Close() error {
	f.bar.end()
	return f.blob.Close()
}
