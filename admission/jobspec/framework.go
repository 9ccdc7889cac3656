package jobspec

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/admission/pyvalue"
	"github.com/gatehouse-registry/gatehouse/internal/pattern"
)

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
	shown := WithoutUserinfo(text)
	repository, sum, pinned := strings.Cut(shown, "@")
	if strings.ContainsFunc(text, pyvalue.IsSpace) {
		r.bad(n, "job.framework.image.reference", "found %.100q, expected a reference without white space", shown)
	}
	if scheme, rest, ok := strings.Cut(shown, "://"); ok {
		r.badWith(n, "job.framework.image.reference", "Leave the scheme out: <host>/<repository>:<tag>, or <host>/<repository>@sha256:<64 hex digits>.",
			"found the address scheme %.40q, expected an image without one, such as %.100q", scheme+"://", rest)
	}
	switch {
	case text == "":
	case pinned && !isSHA256(sum):
		r.bad(n, "job.framework.image.reference", "found %.100q after '@', expected sha256: and 64 lower-case hex digits", sum)
	case repository == "":
		r.bad(n, "job.framework.image.reference", "found %.100q, expected a repository before '@'", shown)
	}
	if hasUserinfo(text) {
		r.bad(n, "job.secret.userinfo", "the reference holds a user name and password (they are not shown here)")
	}
	return text
}

// schemed is an address with a scheme: a colon that does not begin a port.
var schemed = pattern.New(`^([A-Za-z][A-Za-z0-9+.-]*):(.*)$`)

// port is what follows the colon of host:port.
var port = pattern.New(`^[0-9]+(?:[/?#]|$)`)

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
