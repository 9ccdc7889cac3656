package pack

import "strings"

// Media types of a pack in the registry (design.md 2).
const (
	// MediaTypeConfig is the config blob: canonical JSON, see Config.
	MediaTypeConfig = "application/vnd.gatehouse.pack.config.v1+json"
	// MediaTypeLayer is the one layer: the pack's archive.
	MediaTypeLayer = "application/vnd.oci.image.layer.v1.tar+gzip"

	artifactTypePrefix = "application/vnd.gatehouse.pack."
	artifactTypeSuffix = ".v1"
)

// Annotations of a pack's manifest: the digests that the publisher claims. Gate 1 recomputes them.
const (
	AnnotationContent = "dev.gatehouse.content-digest"
	AnnotationTree    = "dev.gatehouse.tree-digest"
)

// ArtifactType is the artifactType of a pack of the kind.
func (k Kind) ArtifactType() string { return artifactTypePrefix + string(k) + artifactTypeSuffix }

// IsArtifactType reports whether a manifest of this artifactType claims to be a pack, be its kind known or not.
func IsArtifactType(s string) bool { return strings.HasPrefix(s, artifactTypePrefix) }

// KindOfArtifactType finds the kind of a pack's artifactType.
func KindOfArtifactType(s string) (Kind, bool) {
	k := strings.TrimSuffix(strings.TrimPrefix(s, artifactTypePrefix), artifactTypeSuffix)
	kind, ok := ParseKind(k)
	if !ok || kind.ArtifactType() != s {
		return "", false
	}
	return kind, true
}
