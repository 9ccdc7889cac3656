package registry

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
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

// manifestScan is how strictly the text of a manifest is read. A control character in an annotation hurts nobody who
// parses JSON; everything else that two readers could take in two ways is refused.
var manifestScan = strictjson.Options{
	MaxDepth: limit.JSONDepth,
	Tolerate: func(f *strictjson.Fault) bool { return f.Kind == strictjson.Control },
	FreeKeys: []string{"annotations"},
}

// place is where in a document an object or array stands.
type place uint8

const (
	elsewhere place = iota // what the registry does not look into
	inDocument
	inDescriptor
	inList // of descriptors
)

// members lists what the registry, or a client, reads in the objects of a place.
var members = map[place][]string{
	inDocument:   {"schemaVersion", "mediaType", "artifactType", "config", "layers", "manifests", "subject", "annotations"},
	inDescriptor: {"mediaType", "digest", "size", "urls", "annotations", "data", "artifactType", "platform"},
}

// below is the place of the value of a member.
func (p place) below(member string) place {
	switch {
	case p == inDocument && (member == "config" || member == "subject"):
		return inDescriptor
	case p == inDocument && (member == "layers" || member == "manifests"):
		return inList
	case p == inList:
		return inDescriptor
	}
	return elsewhere
}

// scanDocument requires that every reader sees the same document in the text: strict JSON, and no name that some
// decoders take for a known one (Go's takes Layers, and layer\u017f, for layers). It bounds what the decoded document
// takes: `{},` is three bytes of text and many of a descriptor. Errors: ManifestInvalid, TooLarge.
func scanDocument(content []byte) error {
	r := strictjson.NewReader(content, manifestScan)
	var open []place
	var member string
	values := 0
	for first := true; ; first = false {
		t, err := r.Next()
		if t.Type != strictjson.EndObject && t.Type != strictjson.EndArray && t.Type != strictjson.Key {
			values++
		}
		switch {
		case values > limit.JSONNodes:
			return Errorf(TooLarge, "the manifest has more than %d values, the most that is allowed", limit.JSONNodes)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return Errorf(ManifestInvalid, "manifest: %w", err)
		case first && t.Type != strictjson.BeginObject:
			return Errorf(ManifestInvalid, "manifest: the document is no JSON object")
		case t.Type == strictjson.Key:
			member = t.Text
			if name := lookAlike(members[open[len(open)-1]], member); name != "" {
				return Errorf(ManifestInvalid, "manifest: line %d column %d: %.40q looks like %s; write it as %s", t.Line, t.Column, member, name, name)
			}
		case t.Type == strictjson.BeginObject || t.Type == strictjson.BeginArray:
			in := inDocument
			if len(open) > 0 {
				in = open[len(open)-1].below(member)
			}
			open = append(open, in)
		case t.Type == strictjson.EndObject || t.Type == strictjson.EndArray:
			open = open[:len(open)-1]
		}
	}
}

// lookAlike is the known name that a decoder without regard to case takes name for, "" when it is none or that name.
func lookAlike(known []string, name string) string {
	for _, k := range known {
		if k != name && strings.EqualFold(k, name) {
			return k
		}
	}
	return ""
}

// checkMediaType refuses a document of another media type than the one it is pushed as: readers that go by the one
// and readers that go by the other would see two things. What is no JSON says nothing about itself.
func checkMediaType(said, mediaType string) error {
	if said != "" && said != mediaType {
		return Errorf(ManifestInvalid, "mediaType: the document says %.100q, the request's Content-Type %.100q", said, mediaType)
	}
	return nil
}

// MediaTypeOf is what the content of a manifest says of its own media type, "" for nothing.
func MediaTypeOf(content []byte) string {
	var d struct {
		MediaType string `json:"mediaType"`
	}
	if json.Unmarshal(content, &d) != nil {
		return ""
	}
	return d.MediaType
}

// parseDocument reads a manifest or index of a known media type. The content has passed the strict scan, so that
// no two readers can see two documents in it. Errors: ManifestInvalid, DigestInvalid.
func parseDocument(mediaType string, content []byte) (document, error) {
	var d document
	if err := json.Unmarshal(content, &d); err != nil {
		return d, Errorf(ManifestInvalid, "manifest: %w", err)
	}
	if err := checkMediaType(d.MediaType, mediaType); err != nil {
		return d, err
	}
	_, index := kindOf(mediaType)
	switch {
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
	if d.Subject != nil {
		return d, d.Subject.check()
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
	return append(all, d.Manifests...)
}

// digestText finds what looks like a digest.
var digestText = pattern.New(`sha512:[0-9a-f]{128}|sha256:[0-9a-f]{64}`)

// maxNamedDigests is how many digests a manifest of an unknown kind names at most.
const maxNamedDigests = 20_000

// namedDigests are the digests that stand anywhere in a manifest of a kind that the registry does not know: whatever they
// mean, a collection must not take away what a client may have named. Errors: ManifestInvalid.
func namedDigests(content []byte) ([]digest.Digest, error) {
	var list []digest.Digest
	seen := map[digest.Digest]bool{}
	for _, at := range digestText.FindAllIndex(content, -1) {
		d, err := digest.Parse(string(content[at[0]:at[1]]))
		if err != nil || seen[d] {
			continue
		}
		if seen[d] = true; len(seen) > maxNamedDigests {
			return nil, Errorf(ManifestInvalid, "the manifest names more than %d digests, the most that is allowed", maxNamedDigests)
		}
		list = append(list, d)
	}
	return list, nil
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
