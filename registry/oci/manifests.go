package oci

import (
	"bytes"
	"mime"
	"net/http"
	"strings"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

func (h *handler) getManifest(x *exchange) error {
	m, content, err := h.service.GetManifest(x.ctx, x.p, x.Repository, x.Reference)
	if err != nil {
		return err
	}
	return h.serveContent(x, descriptorOf(m), bytes.NewReader(content))
}

func (h *handler) headManifest(x *exchange) error {
	m, err := h.service.StatManifest(x.ctx, x.p, x.Repository, x.Reference)
	if err != nil {
		return err
	}
	return h.serveContent(x, descriptorOf(m), nil)
}

func descriptorOf(m registry.Manifest) digest.Descriptor {
	return digest.Descriptor{MediaType: m.MediaType, Digest: m.Digest, Size: m.Size}
}

// putManifest stores a manifest under a tag, a digest, or a digest and several tags. The tags are set one after the
// other: when one is refused, those before it stay.
func (h *handler) putManifest(x *exchange) error {
	if err := h.service.MayPush(x.ctx, x.p, x.Repository); err != nil {
		return err
	}
	content, err := h.readManifest(x)
	if err != nil {
		return err
	}
	mediaType, err := manifestMediaType(x.r.Header.Get("Content-Type"), content)
	if err != nil {
		return err
	}
	var m registry.Manifest
	for _, ref := range x.references() {
		if m, err = h.service.PutManifest(x.ctx, x.p, x.Repository, ref, mediaType, content); err != nil {
			return err
		}
	}
	x.manifestCreated(m)
	return nil
}

// references lists what the manifest is stored under.
func (x *exchange) references() []registry.Reference {
	if len(x.Tags) == 0 {
		return []registry.Reference{x.Reference}
	}
	list := make([]registry.Reference, len(x.Tags))
	for i, tag := range x.Tags {
		list[i] = registry.Reference{Tag: tag, Digest: x.Reference.Digest}
	}
	return list
}

func (x *exchange) manifestCreated(m registry.Manifest) {
	header := x.w.Header()
	header.Set("Location", manifestLocation(x.Repository, m.Digest))
	header.Set("Docker-Content-Digest", m.Digest.String())
	if !m.Subject.IsZero() {
		header.Set("OCI-Subject", m.Subject.String())
	}
	if len(x.Tags) > 0 {
		header.Set("OCI-Tag", strings.Join(x.Tags, ", "))
	}
	x.w.WriteHeader(http.StatusCreated)
}

// manifestMediaType is what the client says the manifest is, without parameters; where it says nothing, what the
// document says. Errors: ManifestInvalid.
func manifestMediaType(header string, content []byte) (string, error) {
	if header == "" {
		if header = registry.MediaTypeOf(content); header == "" {
			return "", registry.Errorf(registry.ManifestInvalid, "the request has no Content-Type and the document no mediaType")
		}
	}
	mediaType, _, err := mime.ParseMediaType(header)
	if err != nil || !strings.Contains(mediaType, "/") {
		return "", registry.Errorf(registry.ManifestInvalid, "%.100q is no media type", header)
	}
	return mediaType, nil
}

func (h *handler) deleteManifest(x *exchange) error {
	if err := h.service.DeleteManifest(x.ctx, x.p, x.Repository, x.Reference); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusAccepted)
	return nil
}
