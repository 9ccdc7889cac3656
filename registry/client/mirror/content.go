package mirror

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
	"github.com/gatehouse-registry/gatehouse/registry"
)

// descriptor is a content descriptor as any manifest may hold one.
type descriptor struct {
	MediaType    string            `json:"mediaType"`
	Digest       digest.Digest     `json:"digest"`
	Size         int64             `json:"size"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	URLs         []string          `json:"urls,omitempty"`
	Data         []byte            `json:"data,omitempty"`
	Platform     json.RawMessage   `json:"platform,omitempty"`
}

func (d descriptor) plain() digest.Descriptor {
	return digest.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}
}

// contents is what a manifest names, whatever its media type: the fields are the same in the OCI's manifests, its artifact
// manifests of old, and Docker's. A document that is no JSON, or has none of them, names nothing.
type contents struct {
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Config       *descriptor       `json:"config"`
	Layers       []descriptor      `json:"layers"`
	BlobList     []descriptor      `json:"blobs"`
	Manifests    []descriptor      `json:"manifests"`
	Subject      *descriptor       `json:"subject"`
	Annotations  map[string]string `json:"annotations"`
}

// mediaTypeDocument is what a server calls a manifest whose type it does not know.
const mediaTypeDocument = "application/octet-stream"

// parse reads what a manifest names. Content of a type that names nothing may be anything.
func (m manifest) parse() (contents, error) {
	var c contents
	if err := json.Unmarshal(m.Content, &c); err != nil {
		if strings.Contains(m.MediaType, "json") {
			return c, registry.Errorf(registry.ManifestInvalid, "manifest %s (%.100q): %w", m.Digest, m.MediaType, err)
		}
		return contents{}, nil
	}
	for _, d := range append(c.blobs(), c.Manifests...) {
		if d.Digest.IsZero() || d.Size < 0 {
			return c, registry.Errorf(registry.ManifestInvalid, "manifest %s: a descriptor has no digest or a negative size", m.Digest)
		}
	}
	return c, nil
}

// blobs are the blobs that the manifest names.
func (c contents) blobs() []descriptor {
	var list []descriptor
	if c.Config != nil {
		list = append(list, *c.Config)
	}
	return append(append(list, c.Layers...), c.BlobList...)
}

// describe is the descriptor under which a referrer is listed.
func (m manifest) describe(c contents) descriptor {
	d := descriptor{MediaType: m.MediaType, Digest: m.Digest, Size: int64(len(m.Content)), ArtifactType: c.ArtifactType, Annotations: c.Annotations}
	if d.ArtifactType == "" && c.Config != nil {
		d.ArtifactType = c.Config.MediaType
	}
	return d
}

// newManifest checks content against the digest that it was asked for by, or was said to have.
func newManifest(mediaType string, content []byte, want digest.Digest) (manifest, error) {
	mediaType, _, _ = strings.Cut(mediaType, ";")
	m := manifest{MediaType: strings.TrimSpace(mediaType), Content: content, Digest: digest.FromBytes(content)}
	if !want.IsZero() && want != m.Digest {
		if m.Digest = want.Algorithm().FromBytes(content); m.Digest != want {
			size := int64(len(content))
			return m, &digest.MismatchError{Want: want, Got: m.Digest, WantSize: size, GotSize: size}
		}
	}
	if m.MediaType == "" || m.MediaType == "application/json" || m.MediaType == "text/plain" {
		var c contents
		if json.Unmarshal(content, &c) == nil && c.MediaType != "" {
			m.MediaType = c.MediaType
		}
	}
	if m.MediaType == "" {
		m.MediaType = mediaTypeDocument
	}
	return m, nil
}

// referrersTag is the tag under which registries without the referrers API list what refers to a manifest.
var referrersTag = pattern.New(`^sha(256-[0-9a-f]{64}|512-[0-9a-f]{128})$`)

// tagOfReferrers is that tag for a subject. A tag holds at most 128 characters.
func tagOfReferrers(subject digest.Digest) string {
	tag := string(subject.Algorithm()) + "-" + subject.Hex()
	return tag[:min(len(tag), 128)]
}

// newContentReader reads a manifest's bytes, whose digest was compared already.
func newContentReader(m manifest) io.Reader { return bytes.NewReader(m.Content) }
