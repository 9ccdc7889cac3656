package jobspec

import (
	"strings"

	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// plugins reads spec.plugins: every entry, then repeated ids, then names that would share a directory.
func (r *reader) plugins(n node) {
	list, ok := r.list(n, "job.plugins.array", "objects")
	if !ok {
		return
	}
	named := true
	for i, v := range list {
		p := r.plugin(n.item(i, v))
		named = named && p.ID != ""
		r.spec.Plugins = append(r.spec.Plugins, p)
	}
	if named {
		r.pluginNames(n)
	}
}

// plugin reads one triple. The clients look at both types before they look at either text.
func (r *reader) plugin(n node) (p Plugin) {
	entry, ok := r.object(n, secPlugin, "job.plugins.item.object")
	if !ok {
		return p
	}
	p.ID = r.pluginID(entry.get("id"))
	version, sum := entry.get("version"), entry.get("digest")
	versionText, hasVersion := r.required(version, "job.plugins.version.required", "job.plugins.version.type")
	digestText, hasDigest := r.required(sum, "job.plugins.digest.required", "job.plugins.digest.type")
	switch {
	case !hasVersion:
	case versionText == "":
		r.expected(version, "job.plugins.version.empty", "a version")
	default:
		p.Version = versionText
		if !name.IsSegment(versionText) {
			r.bad(version, "job.plugins.version.segment", "found %.100q, expected a version that can be published (letters, digits, '.', '_', '-')", versionText)
		}
	}
	switch {
	case !hasDigest:
	case !strings.HasPrefix(digestText, "sha256:"):
		r.bad(sum, "job.plugins.digest.prefix", "found %.100q, expected sha256:<64 hex digits>", digestText)
	default:
		p.Digest = digestText
		if !isSHA256(digestText) {
			r.bad(sum, "job.plugins.digest.hex", "found %.100q, expected sha256: and 64 lower-case hex digits", digestText)
		}
	}
	return p
}

// pluginID reads <owner>/<name>; empty parts are dropped. It is "" for what is none.
func (r *reader) pluginID(n node) string {
	text, ok := r.required(n, "job.plugins.id.required", "job.plugins.id.type")
	if !ok {
		return ""
	}
	parts := split(text)
	if len(parts) != 2 {
		r.bad(n, "job.plugins.id.format", "found %.100q, expected <owner>/<name>", text)
		return ""
	}
	for _, part := range parts {
		ok = r.segment(n, part, "job.plugins.id.segment") && ok
	}
	if !ok {
		return ""
	}
	return strings.Join(parts, "/")
}

// pluginNames compares the entries with each other. Like the clients it looks for shared names only when no id is
// repeated.
func (r *reader) pluginNames(n node) {
	ids := make(map[string]bool)
	for _, p := range r.spec.Plugins {
		if ids[p.ID] {
			r.bad(n, "job.plugins.duplicate", "found %.100q more than once, expected one version of it", p.ID)
			return
		}
		ids[p.ID] = true
	}
	exact, folded := make(map[string]string), make(map[string]string)
	for _, p := range r.spec.Plugins {
		leaf := Leaf(p.ID)
		fold := strings.ToLower(strings.TrimSpace(leaf))
		if other, taken := exact[leaf]; taken {
			r.bad(n, "job.plugins.leaf_collision", "found %.100q and %.100q, expected names that differ: both would be put into one folder, %.100q", other, p.ID, leaf)
		} else if other, taken := folded[fold]; taken {
			r.bad(n, "job.plugins.leaf_collision.fold", "found %.100q and %.100q, whose names differ only in case", other, p.ID)
		}
		exact[leaf], folded[fold] = p.ID, p.ID
	}
}

// Leaf is the name of <owner>/<name>: the directory into which a plugin is injected.
func Leaf(id string) string {
	_, leaf, _ := strings.Cut(id, "/")
	return leaf
}

func isSHA256(s string) bool {
	d, err := digest.Parse(s)
	return err == nil && d.Algorithm() == digest.SHA256
}
