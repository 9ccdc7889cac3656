package blobfault

import (
	"context"
	"io"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
)

// Backend gives a back-end whose calls fail as the plan says, before they do anything. Lists and Close never fail.
func (p *Plan) Backend(b blobstore.Backend) blobstore.Backend { return backend{b, p} }

type backend struct {
	blobstore.Backend
	plan *Plan
}

func (b backend) Stat(ctx context.Context, d digest.Digest) (int64, error) {
	if err := b.plan.next("Stat").Error(); err != nil {
		return 0, err
	}
	return b.Backend.Stat(ctx, d)
}

func (b backend) Open(ctx context.Context, d digest.Digest) (registry.Blob, int64, error) {
	if err := b.plan.next("Open").Error(); err != nil {
		return nil, 0, err
	}
	blob, size, err := b.Backend.Open(ctx, d)
	if err != nil {
		return nil, 0, err
	}
	return faultyBlob{blob, b.plan}, size, nil
}

func (b backend) Put(ctx context.Context, want digest.Descriptor, r io.Reader) error {
	if err := b.plan.next("Put").Error(); err != nil {
		return err
	}
	return b.Backend.Put(ctx, want, r)
}

func (b backend) Settle(ctx context.Context, d digest.Digest) error {
	if err := b.plan.next("Settle").Error(); err != nil {
		return err
	}
	return b.Backend.Settle(ctx, d)
}

func (b backend) Delete(ctx context.Context, d digest.Digest) error {
	if err := b.plan.next("Delete").Error(); err != nil {
		return err
	}
	return b.Backend.Delete(ctx, d)
}

func (b backend) Quarantine(ctx context.Context, d digest.Digest) error {
	if err := b.plan.next("Quarantine").Error(); err != nil {
		return err
	}
	return b.Backend.Quarantine(ctx, d)
}

func (b backend) CreateUpload(ctx context.Context, id string) error {
	if err := b.plan.next("CreateUpload").Error(); err != nil {
		return err
	}
	return b.Backend.CreateUpload(ctx, id)
}

func (b backend) StatUpload(ctx context.Context, id string) (blobstore.UploadState, error) {
	if err := b.plan.next("StatUpload").Error(); err != nil {
		return blobstore.UploadState{}, err
	}
	return b.Backend.StatUpload(ctx, id)
}

func (b backend) OpenUpload(ctx context.Context, id string) (registry.Blob, int64, error) {
	if err := b.plan.next("OpenUpload").Error(); err != nil {
		return nil, 0, err
	}
	blob, size, err := b.Backend.OpenUpload(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	return faultyBlob{blob, b.plan}, size, nil
}

func (b backend) AppendUpload(ctx context.Context, id string) (blobstore.Staging, blobstore.UploadState, error) {
	if err := b.plan.next("AppendUpload").Error(); err != nil {
		return nil, blobstore.UploadState{}, err
	}
	s, state, err := b.Backend.AppendUpload(ctx, id)
	if err != nil {
		return nil, state, err
	}
	return staging{s, b.plan}, state, nil
}

func (b backend) StoreUpload(ctx context.Context, id string, d digest.Descriptor, mark string) error {
	if err := b.plan.next("StoreUpload").Error(); err != nil {
		return err
	}
	return b.Backend.StoreUpload(ctx, id, d, mark)
}

func (b backend) RemoveUpload(ctx context.Context, id string) error {
	if err := b.plan.next("RemoveUpload").Error(); err != nil {
		return err
	}
	return b.Backend.RemoveUpload(ctx, id)
}

type staging struct {
	blobstore.Staging
	plan *Plan
}

func (s staging) Write(b []byte) (int, error) {
	if err := s.plan.next("Staging.Write").Error(); err != nil {
		n, _ := s.Staging.Write(b[:len(b)/2])
		return n, err
	}
	return s.Staging.Write(b)
}

func (s staging) Sync() (string, error) {
	if err := s.plan.next("Staging.Sync").Error(); err != nil {
		return "", err
	}
	return s.Staging.Sync()
}

// faultyBlob fails while it is read.
type faultyBlob struct {
	registry.Blob
	plan *Plan
}

func (b faultyBlob) Read(p []byte) (int, error) {
	if err := b.plan.next("Blob.Read").Error(); err != nil {
		return 0, err
	}
	return b.Blob.Read(p)
}
