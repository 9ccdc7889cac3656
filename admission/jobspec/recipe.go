package jobspec

import (
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/rule"
)

// recipe reads spec.recipe.
func (r *reader) recipe(n node) {
	m, ok := r.nonEmpty(n, secRecipe, "job.recipe.object", "job.recipe.empty")
	if !ok {
		return
	}
	out := &r.spec.Recipe
	out.Name = r.recipeName(m.get("name"))
	out.Plugins, _ = r.names(m.get("plugins"), "job.recipe.plugins.array", "job.recipe.plugins.segment", false)
	version, sum := m.get("version"), m.get("digest")
	versionText, hasVersion := r.required(version, "job.recipe.version.required", "job.recipe.version.type")
	digestText, hasDigest := r.required(sum, "job.recipe.digest.required", "job.recipe.digest.type")
	if hasVersion && versionText == "" {
		r.expected(version, "job.recipe.version.empty", "a version")
	}
	switch {
	case !hasDigest:
	case digestText == "":
		r.expected(sum, "job.recipe.digest.empty", "a digest")
	case !isSHA256(digestText):
		r.bad(sum, "job.recipe.digest.hex", "found %.100q, expected sha256: and 64 lower-case hex digits", digestText)
	}
	out.Version, out.Digest = versionText, digestText
}

// nonEmpty is object for a section that may not be empty.
func (r *reader) nonEmpty(n node, sec section, object, empty rule.ID) (node, bool) {
	m, ok := r.object(n, sec, object)
	if ok && m.empty() {
		r.missing(n, empty)
		return m, false
	}
	return m, ok
}

// recipeName reads <framework>/<method>; here empty parts count.
func (r *reader) recipeName(n node) string {
	text, ok := r.required(n, "job.recipe.name.required", "job.recipe.name.type")
	if !ok {
		return ""
	}
	parts := strings.Split(text, "/")
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		r.bad(n, "job.recipe.name.format", "found %.100q, expected <framework>/<method>", text)
		return ""
	}
	for _, part := range parts {
		ok = r.segment(n, part, "job.recipe.name.segment") && ok
	}
	if !ok {
		return ""
	}
	return text
}
