package pack

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	ocidigest "github.com/opencontainers/go-digest"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
)

// OCIArtifact is a pack's OCI image manifest (design.md 2).
type OCIArtifact struct {
	Kind    Kind
	Config  digest.Descriptor
	Layer   digest.Descriptor // the archive
	Title   string            // of the layer: <name>-<version>.tar.gz
	Content digest.Digest     // claimed
	Tree    digest.Digest     // claimed
}

// ArchiveName is the title of the pack's layer: <name>-<version>.tar.gz.
func (m *Manifest) ArchiveName() string { return m.Name + "-" + m.Version + ".tar.gz" }

// BuildManifest writes the OCI image manifest of a pack from the descriptors of its archive and of its config blob. The bytes
// are the same for the same input. The pack must be one that Check accepted.
func BuildManifest(p *Pack, layer, config digest.Descriptor) ([]byte, error) {
	if p.Content().IsZero() || p.Tree().IsZero() {
		return nil, errors.New("a pack without digests has no manifest")
	}
	archive := descriptorOf(layer, MediaTypeLayer)
	archive.Annotations = map[string]string{ocispec.AnnotationTitle: p.Manifest.ArchiveName()}
	return json.Marshal(ocispec.Manifest{
		Versioned:    specs.Versioned{SchemaVersion: 2},
		MediaType:    ocispec.MediaTypeImageManifest,
		ArtifactType: p.Manifest.Kind.ArtifactType(),
		Config:       descriptorOf(config, MediaTypeConfig),
		Layers:       []ocispec.Descriptor{archive},
		Annotations: map[string]string{
			AnnotationContent: p.Content().String(),
			AnnotationTree:    p.Tree().String(),
		},
	})
}

func descriptorOf(d digest.Descriptor, mediaType string) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: ocidigest.Digest(d.Digest.String()), Size: d.Size}
}

// manifestDocument is what ParseArtifact reads of an image manifest. Digests stay texts, so that each malformed
// one is a violation of its own.
type manifestDocument struct {
	SchemaVersion int                  `json:"schemaVersion"`
	FSLayers      json.RawMessage      `json:"fsLayers"` // of an older form; some readers would take the manifest for it
	History       json.RawMessage      `json:"history"`
	Signatures    json.RawMessage      `json:"signatures"`
	MediaType     string               `json:"mediaType"`
	ArtifactType  string               `json:"artifactType"`
	Config        descriptorDocument   `json:"config"`
	Layers        []descriptorDocument `json:"layers"`
	Manifests     []json.RawMessage    `json:"manifests"`
	Annotations   map[string]string    `json:"annotations"`
}

type descriptorDocument struct {
	Data        json.RawMessage   `json:"data"`
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	URLs        []string          `json:"urls"`
	Annotations map[string]string `json:"annotations"`
}

// ParseArtifact reads an OCI image manifest that may be a pack's. It gives nil and an OK report for a manifest
// that does not claim to be one: neither its artifactType nor its config is of Gatehouse's types. Otherwise the
// report says what of a pack's shape is missing, and the artifact is nil unless the report is OK.
func ParseArtifact(src []byte, policy rule.Policy) (*OCIArtifact, rule.Report) {
	r := artifactReader{report: rule.Report{Policy: policy}}
	if len(src) > limit.Manifest {
		r.add("oci.limit", "", "the manifest has %d bytes; at most %d are allowed", len(src), limit.Manifest)
		return nil, r.report
	}
	if err := strictjson.Scan(src, strictjson.Options{FreeKeys: []string{"annotations"}}); err != nil {
		r.addFault(err)
		return nil, r.report
	}
	var doc manifestDocument
	if err := json.Unmarshal(src, &doc); err != nil {
		r.add("oci.json", "", "the manifest is no OCI image manifest: %v", err)
		return nil, r.report
	}
	if !ClaimsPack(doc.ArtifactType, doc.Config.MediaType) {
		return nil, r.report
	}
	artifact := r.read(doc)
	if !r.report.OK() {
		return nil, r.report
	}
	return artifact, r.report
}

type artifactReader struct{ report rule.Report }

func (r *artifactReader) add(id rule.ID, field, format string, args ...any) {
	r.report.Add(rule.Violation{Rule: id, Field: field, Message: fmt.Sprintf(format, args...)})
}

func (r *artifactReader) addFault(err error) {
	v := rule.Violation{Rule: "oci.json", Message: err.Error()}
	if f, ok := errors.AsType[*strictjson.Fault](err); ok {
		v.Field, v.Line, v.Column, v.Message = f.Path, f.Line, f.Column, f.Message
	}
	r.report.Add(v)
}

func (r *artifactReader) read(doc manifestDocument) *OCIArtifact {
	var a OCIArtifact
	var ok bool
	if a.Kind, ok = KindOfArtifactType(doc.ArtifactType); !ok {
		r.add("oci.kind", "artifactType", "unknown artifactType %.200q; expected one such as %q", doc.ArtifactType, KindAlgorithm.ArtifactType())
	}
	if doc.MediaType != "" && doc.MediaType != ocispec.MediaTypeImageManifest {
		r.add("oci.mediatype", "mediaType", "the media type is %.200q; expected %q", doc.MediaType, ocispec.MediaTypeImageManifest)
	}
	if doc.SchemaVersion != 2 {
		r.add("oci.mediatype", "schemaVersion", "the schema version is %d; expected 2", doc.SchemaVersion)
	}
	if doc.FSLayers != nil || doc.History != nil || doc.Signatures != nil {
		r.add("oci.layers", "", "found members of an older manifest form (fsLayers, history or signatures); other readers would see another artifact")
	}
	if len(doc.Manifests) > 0 {
		r.add("oci.layers", "manifests", "a pack is one image manifest and lists no others; found %d", len(doc.Manifests))
	}
	a.Config = r.descriptor("config", doc.Config, MediaTypeConfig)
	if len(doc.Layers) != 1 {
		r.add("oci.layers", "layers", "found %d layers; a pack has exactly one, its archive", len(doc.Layers))
	} else {
		a.Layer = r.descriptor("layers[0]", doc.Layers[0], MediaTypeLayer)
		a.Title = doc.Layers[0].Annotations[ocispec.AnnotationTitle]
		if a.Title == "" {
			r.add("oci.title", "layers[0].annotations", "the layer has no title; expected the annotation %s with <name>-<version>.tar.gz", ocispec.AnnotationTitle)
		}
	}
	a.Content = r.claim(doc.Annotations, AnnotationContent)
	a.Tree = r.claim(doc.Annotations, AnnotationTree)
	return &a
}

func (r *artifactReader) descriptor(field string, doc descriptorDocument, mediaType string) digest.Descriptor {
	if doc.MediaType != mediaType {
		r.add("oci.mediatype", field+".mediaType", "the media type is %.200q; expected %q", doc.MediaType, mediaType)
	}
	d, err := digest.Parse(doc.Digest)
	if err != nil {
		r.add("oci.descriptor", field+".digest", "%v", err)
	}
	if doc.Data != nil {
		r.add("oci.descriptor", field+".data", "the descriptor embeds content; a pack's bytes lie in its blobs alone")
	}
	if doc.Size < 0 {
		r.add("oci.descriptor", field+".size", "the size is %d; expected a number of bytes", doc.Size)
	}
	if len(doc.URLs) > 0 {
		r.add("oci.descriptor", field+".urls", "the bytes are said to lie at %.200q too; expected no address, the registry holds a pack's bytes", doc.URLs[0])
	}
	return digest.Descriptor{MediaType: doc.MediaType, Digest: d, Size: doc.Size}
}

// claim reads an annotation that claims a digest of the pack.
func (r *artifactReader) claim(annotations map[string]string, key string) digest.Digest {
	text, ok := annotations[key]
	if !ok {
		r.add("oci.claims", "annotations", "the annotation %s is missing; it must hold the digest that the publisher computed", key)
		return digest.Digest{}
	}
	d, err := digest.Parse(text)
	if err != nil {
		r.add("oci.claims", "annotations", "the annotation %s: %v", key, err)
	}
	return d
}
