package registry

import (
	"encoding/json"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// Media types of manifests that the registry looks into. Any other is kept as it is (distribution-spec).
const (
	mediaImageManifest  = "application/vnd.oci.image.manifest.v1+json"
	mediaImageIndex     = "application/vnd.oci.image.index.v1+json"
	mediaDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	mediaDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// document is what the registry reads of a manifest or index.
type document struct {
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Config       *descriptor       `json:"config"`
	Layers       []descriptor      `json:"layers"`
	Manifests    []descriptor      `json:"manifests"`
	Subject      *descriptor       `json:"subject"`
	Annotations  map[string]string `json:"annotations"`
}

// descriptor is an OCI descriptor as it stands in a document.
type descriptor struct {
	MediaType string        `json:"mediaType"`
	Digest    digest.Digest `json:"digest"`
	Size      int64         `json:"size"`
	URLs      []string      `json:"urls"`
}

// kindOf says whether a media type is one that the registry looks into, and whether as an index.
func kindOf(mediaType string) (known, index bool) {
	switch mediaType {
	case mediaImageManifest, mediaDockerManifest:
		return true, false
	case mediaImageIndex, mediaDockerList:
		return true, true
	}
	return false, false
}

// parseDocument reads a manifest or index of a known media type. The content has passed the strict scan, so that
// no two readers can see two documents in it. Errors: ManifestInvalid, DigestInvalid.
func parseDocument(mediaType string, content []byte) (document, error) {
	var d document
	if err := json.Unmarshal(content, &d); err != nil {
		return d, Errorf(ManifestInvalid, "manifest: %w", err)
	}
	_, index := kindOf(mediaType)
	switch {
	case d.MediaType != "" && d.MediaType != mediaType:
		return d, Errorf(ManifestInvalid, "mediaType: the document says %.100q, the request's Content-Type %q", d.MediaType, mediaType)
	case index && (d.Layers != nil || d.Config != nil):
		return d, Errorf(ManifestInvalid, "an index holds manifests, not config or layers")
	case !index && d.Manifests != nil:
		return d, Errorf(ManifestInvalid, "a manifest holds config and layers, not manifests")
	case !index && d.Config == nil:
		return d, Errorf(ManifestInvalid, "config: required field is missing")
	}
	for _, r := range d.references() {
		if err := r.check(); err != nil {
			return d, err
		}
	}
	return d, nil
}

// references lists what the document names, in its order: config, layers, manifests. The subject is apart.
func (d document) references() []descriptor {
	var all []descriptor
	if d.Config != nil {
		all = append(all, *d.Config)
	}
	all = append(all, d.Layers...)
	all = append(all, d.Manifests...)
	if d.Subject != nil {
		all = append(all, *d.Subject)
	}
	return all
}

func (r descriptor) check() error {
	switch {
	case r.Digest.IsZero():
		return Errorf(ManifestInvalid, "digest: a descriptor lacks it")
	case r.Size < 0:
		return Errorf(ManifestInvalid, "size: %d of %s is negative", r.Size, r.Digest)
	case r.MediaType == "":
		return Errorf(ManifestInvalid, "mediaType: the descriptor of %s lacks it", r.Digest)
	}
	return nil
}

// artifactType is what referrers are listed and filtered by: the document's own, else its config's media type.
func (d document) artifactType() string {
	if d.ArtifactType != "" || d.Config == nil {
		return d.ArtifactType
	}
	return d.Config.MediaType
}
