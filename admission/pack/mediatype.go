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

// ClaimsPack reports whether a manifest claims to be a pack: by its artifactType, be the kind known or not, or by the
// media type of its config.
func ClaimsPack(artifactType, configType string) bool {
	return strings.HasPrefix(artifactType, artifactTypePrefix) || configType == MediaTypeConfig
}

// KindOfArtifactType finds the kind of a pack's artifactType.
func KindOfArtifactType(s string) (Kind, bool) {
	k := strings.TrimSuffix(strings.TrimPrefix(s, artifactTypePrefix), artifactTypeSuffix)
	kind, ok := ParseKind(k)
	if !ok || kind.ArtifactType() != s {
		return "", false
	}
	return kind, true
}
