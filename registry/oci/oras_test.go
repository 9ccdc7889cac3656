package oci_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/oci"
)

// orasRepository is a repository of the server as oras sees it.
func (s *server) orasRepository(user, name string) *remote.Repository {
	s.tb.Helper()
	host := strings.TrimPrefix(s.URL, "http://")
	repository, err := remote.NewRepository(host + "/" + name)
	if err != nil {
		s.tb.Fatal(err)
	}
	repository.PlainHTTP = true
	repository.Client = &auth.Client{Client: s.Client(), Credential: auth.StaticCredential(host, auth.Credential{Username: user, Password: password})}
	return repository
}

// pushWithOras packs files as an artifact and copies it to the repository.
func (s *server) pushWithOras(to *remote.Repository, tag string, subject *ocispec.Descriptor, files ...string) ocispec.Descriptor {
	s.tb.Helper()
	ctx, local := s.tb.Context(), memory.New()
	var layers []ocispec.Descriptor
	for _, f := range files {
		d, err := oras.PushBytes(ctx, local, "text/plain", []byte(f))
		if err != nil {
			s.tb.Fatal(err)
		}
		layers = append(layers, d)
	}
	d, err := oras.PackManifest(ctx, local, oras.PackManifestVersion1_1, "application/vnd.example.artifact", oras.PackManifestOptions{Layers: layers, Subject: subject})
	if err != nil {
		s.tb.Fatal(err)
	}
	if err := local.Tag(ctx, d, tag); err != nil {
		s.tb.Fatal(err)
	}
	if subject != nil { // oras copies a graph with its subject; here the subject is on the server already
		if err := to.Push(ctx, layers[0], bytes.NewReader([]byte(files[0]))); err != nil {
			s.tb.Fatal(err)
		}
		manifest, err := content.FetchAll(ctx, local, d)
		if err != nil {
			s.tb.Fatal(err)
		}
		if err := to.PushReference(ctx, d, bytes.NewReader(manifest), tag); err != nil {
			s.tb.Fatal(err)
		}
		return d
	}
	if _, err := oras.Copy(ctx, local, tag, to, tag, oras.DefaultCopyOptions); err != nil {
		s.tb.Fatal(err)
	}
	return d
}

// TestOras drives the handler with the client library that most tools are made of.
func TestOras(t *testing.T) {
	s := newServer(t)
	ctx := t.Context()
	x, y := s.orasRepository("alice", "alice/x"), s.orasRepository("alice", "alice/y")
	first := s.pushWithOras(x, "v1", nil, "one", "two", strings.Repeat("three", 100_000))
	s.pushWithOras(x, "v2", nil, "other")

	local := memory.New()
	pulled, err := oras.Copy(ctx, x, "v1", local, "v1", oras.DefaultCopyOptions)
	if err != nil || pulled.Digest != first.Digest {
		t.Fatalf("pull: %v, %v", pulled, err)
	}
	successors, err := content.Successors(ctx, local, pulled)
	if err != nil || len(successors) != 4 {
		t.Fatalf("pull: %d blobs, %v", len(successors), err)
	}

	options := oras.DefaultCopyOptions
	var mounted atomic.Int64 // oras copies blobs side by side
	options.MountFrom = func(context.Context, ocispec.Descriptor) ([]string, error) { return []string{"alice/x"}, nil }
	options.OnMounted = func(context.Context, ocispec.Descriptor) error { mounted.Add(1); return nil }
	if d, err := oras.Copy(ctx, x, "v1", y, "copied", options); err != nil || d.Digest != first.Digest || mounted.Load() != 4 {
		t.Errorf("copy: %v, %d blobs mounted, %v", d, mounted.Load(), err)
	}

	if err := x.Tag(ctx, first, "stable"); err != nil {
		t.Error(err)
	}
	var tags []string
	x.TagListPageSize = 2
	if err := x.Tags(ctx, "", func(page []string) error { tags = append(tags, page...); return nil }); err != nil || !slices.Equal(tags, []string{"stable", "v1", "v2"}) {
		t.Errorf("tags: %v, %v", tags, err)
	}

	signature := s.pushWithOras(x, "sig", &first, "signature")
	var referrers []ocispec.Descriptor
	if err := x.Referrers(ctx, first, "application/vnd.example.artifact", func(list []ocispec.Descriptor) error { referrers = append(referrers, list...); return nil }); err != nil || len(referrers) != 1 || referrers[0].Digest != signature.Digest {
		t.Errorf("referrers: %v, %v", referrers, err)
	}

	if err := x.Delete(ctx, signature); err != nil {
		t.Error(err)
	}
	if _, err := x.Resolve(ctx, "sig"); !errors.Is(err, errdef.ErrNotFound) {
		t.Errorf("after the delete: %v", err)
	}
	blob, err := x.Blobs().Resolve(ctx, successors[1].Digest.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Blobs().Delete(ctx, blob); err == nil {
		t.Error("a blob that a manifest names was deleted")
	}
}

// TestOrasShowsRefusals: what the registry says reaches whoever uses the library.
func TestOrasShowsRefusals(t *testing.T) {
	s := newServer(t, func(_ *oci.Options, set *registry.Settings) { set.MaxBlob = 100 })
	large := []byte(strings.Repeat("x", 101))
	for user, want := range map[string]struct {
		status int
		said   string
	}{"alice": {413, "at most 100 are allowed"}, "bob": {403, "account bob"}} {
		_, err := oras.PushBytes(t.Context(), s.orasRepository(user, "alice/x"), "text/plain", large)
		refused, ok := errors.AsType[*errcode.ErrorResponse](err)
		if !ok || refused.StatusCode != want.status || !strings.Contains(err.Error(), want.said) {
			t.Errorf("%s: %v; want status %d and %q", user, err, want.status, want.said)
		}
	}
}
