package jobspec

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
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

// source reads spec.source: the entrypoint that must not be there comes first.
func (r *reader) source(n node) {
	m, ok := r.nonEmpty(n, secSource, "job.source.object", "job.source.empty")
	if !ok {
		return
	}
	if e := m.get("entrypoint"); !e.null() {
		switch {
		case !e.v.Truthy() && e.v.Kind != pyvalue.Str:
			r.falsy(e)
		case e.v.Truthy() && pyvalue.Strip(e.v.PyStr()) != "":
			r.bad(e, "job.source.entrypoint", "found %s, expected nothing: the recipe decides what runs", show(e.v))
		}
	}
	exp := m.get("exp")
	if text, ok := r.required(exp, "job.source.exp.required", "job.source.exp.type"); ok {
		r.spec.Source.Exp = r.exp(exp, text)
	}
}

// exp checks the experiment's path: relative, trailing slashes dropped, every part a name.
func (r *reader) exp(n node, text string) string {
	if strings.HasPrefix(text, "/") {
		r.bad(n, "job.source.exp.absolute", "found %.100q, expected a path relative to the project", text)
		return ""
	}
	path := strings.TrimRight(text, "/")
	if path == "" {
		r.bad(n, "job.source.exp.empty", "found %.100q, expected a path", text)
		return ""
	}
	ok := true
	for part := range strings.SplitSeq(path, "/") {
		ok = r.segment(n, part, "job.source.exp.segment") && ok
	}
	if !ok {
		return ""
	}
	return path
}

// framework reads spec.framework.
func (r *reader) framework(n node) {
	m, ok := r.nonEmpty(n, secFramework, "job.framework.object", "job.framework.empty")
	if !ok {
		return
	}
	out := &r.spec.Framework
	kind, version := m.get("kind"), m.get("version")
	if text, ok := r.required(kind, "job.framework.kind.required", "job.framework.kind.type"); ok && r.segment(kind, text, "job.framework.kind.segment") {
		out.Kind = text
	}
	if text, ok := r.required(version, "job.framework.version.required", "job.framework.version.type"); ok {
		if text == "" {
			r.expected(version, "job.framework.version.empty", "a version")
		}
		out.Version = text
	}
	runtime := m.get("runtime_id")
	if text := r.loose(runtime); text != "" && r.segment(runtime, text, "job.framework.runtime_id.segment") {
		out.RuntimeID = text
	}
	out.Image = r.image(m.get("image"))
	out.ObservabilityURL = r.link(m.get("observability_url"))
}

// image asks what the clients' command line asks of an image.
func (r *reader) image(n node) string {
	text := r.loose(n)
	repository, sum, pinned := strings.Cut(text, "@")
	switch {
	case text == "":
	case strings.ContainsFunc(text, pyvalue.IsSpace):
		r.bad(n, "job.framework.image.reference", "found %.100q, expected a reference without white space", text)
	case pinned && !isSHA256(sum):
		r.bad(n, "job.framework.image.reference", "found %.100q after '@', expected sha256: and 64 lower-case hex digits", sum)
	case repository == "":
		r.bad(n, "job.framework.image.reference", "found %.100q, expected a repository before '@'", text)
	}
	if hasUserinfo(text) {
		r.bad(n, "job.secret.userinfo", "the reference holds a user name and password (they are not shown here)")
	}
	return text
}

// schemed is an address with a scheme: a colon that does not begin a port.
var schemed = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):(.*)$`)

// port is what follows the colon of host:port.
var port = regexp.MustCompile(`^[0-9]+(?:[/?#]|$)`)

// link asks that a text which is shown as a link is one: http, https or no scheme, a host, no white space.
func (r *reader) link(n node) string {
	text := r.loose(n)
	if text == "" {
		return ""
	}
	if why := notLink(text); why != "" {
		r.bad(n, "job.framework.observability_url.url", "%s, expected an http or https link", why)
	}
	if hasUserinfo(text) {
		r.bad(n, "job.secret.userinfo", "the address holds a user name and password (they are not shown here)")
	}
	return text
}

// notLink says why a text is no link, "" when it is one.
func notLink(text string) string {
	if strings.ContainsFunc(text, func(c rune) bool { return pyvalue.IsSpace(c) || unicode.IsControl(c) }) {
		return "found white space"
	}
	m := schemed.FindStringSubmatch(text)
	if m == nil || port.MatchString(m[2]) || hasUserinfo(text) && !strings.HasPrefix(m[2], "//") {
		return ""
	}
	if scheme := strings.ToLower(m[1]); scheme != "http" && scheme != "https" {
		return fmt.Sprintf("found the scheme %.40q", m[1])
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return "found no host after the scheme"
	}
	return ""
}

// hasUserinfo reports whether an address, with a scheme or without, begins with user:password@. What follows the
// '@' of an image's digest is no host.
func hasUserinfo(address string) bool {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	if end := strings.IndexAny(address, "/?#"); end >= 0 {
		address = address[:end]
	}
	at := strings.LastIndexByte(address, '@')
	if at < 0 || strings.HasPrefix(address[at+1:], "sha256:") {
		return false
	}
	user, password, ok := strings.Cut(address[:at], ":")
	return ok && user != "" && password != ""
}
