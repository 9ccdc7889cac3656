package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// corpusManifests says what EXPECT.md asks of each document: the status as a generic artifact, and as a pack, where the
// same text names a pack's artifact type.
var corpusManifests = map[string]struct {
	generic, asPack int
	code            string // of the generic refusal
	index           bool
}{
	"m01-empty-layers.json":       {generic: 201, asPack: 400},
	"m03-manifest-and-index.json": {generic: 400, asPack: 400, code: "MANIFEST_INVALID"},
	"m05-json-case.json":          {generic: 400, asPack: 400, code: "MANIFEST_INVALID"},
	"m07-json-dup.json":           {generic: 400, asPack: 400, code: "MANIFEST_INVALID"},
	"m09-size-lie.json":           {generic: 400, asPack: 400, code: "SIZE_INVALID"},
	"m11-sha512-short.json":       {generic: 400, asPack: 400, code: "MANIFEST_INVALID"},
	"m13-upper-hex.json":          {generic: 400, asPack: 400, code: "MANIFEST_INVALID"},
	"m15-subject-missing.json":    {generic: 201, asPack: 400},
	"m17-5MiB.json.gz":            {generic: 413, asPack: 413, code: "TOO_LARGE"},
	"m19-dup-layers.json":         {generic: 201, asPack: 400},
	"m21-index-cycle.json":        {generic: 201, asPack: 201, index: true},
	"m23-bom.json":                {generic: 400, asPack: 400, code: "MANIFEST_INVALID"},
	"m25-deep.json":               {generic: 400, asPack: 400, code: "MANIFEST_INVALID"},
}

func TestCorpusManifests(t *testing.T) {
	g := startGatehouse(t)
	g.pushBlob("alice", "alice/x", []byte("{}"))
	g.putManifest("alice", "alice/x", "first", imageManifest, corpusFile(t, "m01-empty-layers.json")).want(t, 201)
	for name, want := range corpusManifests {
		t.Run(name, func(t *testing.T) {
			g := g.in(t)
			mediaType := imageManifest
			if want.index {
				mediaType = imageIndex
			}
			content := corpusFile(t, name)
			r := g.putManifest("alice", "alice/x", "generic", mediaType, content)
			g.settled(r, want.generic, want.code, "generic")

			claims := bytes.Replace(content, []byte("application/vnd.example.pack.v1"), []byte(pack.KindAlgorithm.ArtifactType()), 1)
			r = g.putManifest("alice", "alice/x", "1.0.0", mediaType, claims)
			g.settled(r, want.asPack, "", "1.0.0")
			if got := g.plugins(); len(got) > 0 {
				t.Errorf("it became the pack %q", got)
			}
		})
	}
	if got := g.repositories(); !slices.Equal(got, []string{"alice/x"}) {
		t.Errorf("repositories %q", got)
	}
}

// settled checks the answer to a PUT of alice/x under a tag: what was accepted can be pulled as it was pushed, what was
// refused has no tag. The tag is free again afterwards.
func (g *gatehouse) settled(r reply, status int, code, tag string) {
	g.tb.Helper()
	const path = "/v2/alice/x/manifests/"
	if status != http.StatusCreated {
		if got := r.refused(g.tb, path, status); code != "" && got.Code != code && got.Code != "DIGEST_INVALID" {
			g.tb.Errorf("code %s (%s), want %s", got.Code, got.Detail, code)
		}
		g.get("alice", path+tag).want(g.tb, http.StatusNotFound)
		return
	}
	r.want(g.tb, http.StatusCreated)
	digest := r.header.Get("Docker-Content-Digest")
	if got := g.get("alice", path+tag).want(g.tb, http.StatusOK).header.Get("Docker-Content-Digest"); got != digest || digest == "" {
		g.tb.Errorf("the tag has %q, the push was answered %q", got, digest)
	}
	g.do(call{as: "alice", method: http.MethodDelete, path: path + tag}).want(g.tb, http.StatusAccepted)
}

// TestPackManifestShape takes the manifest of a pack that passes and breaks one thing at a time.
func TestPackManifestShape(t *testing.T) {
	g := startGatehouse(t)
	a, verdict := artifactOf(t, archiveOf(t, algorithm("demo", "1.0.0")))
	if !verdict.Allowed {
		t.Fatal(verdict.Violations)
	}
	other := strings.Repeat("0", 64)
	edit := func(path string, change func(at map[string]any, key string)) func(m map[string]any) {
		return func(m map[string]any) {
			keys := strings.Split(path, "/")
			at := m
			for _, k := range keys[:len(keys)-1] {
				if list, ok := at[k].([]any); ok {
					at = list[0].(map[string]any)
				} else {
					at = at[k].(map[string]any)
				}
			}
			change(at, keys[len(keys)-1])
		}
	}
	drop := func(path string) func(map[string]any) {
		return edit(path, func(at map[string]any, key string) { delete(at, key) })
	}
	set := func(path string, v any) func(map[string]any) {
		return edit(path, func(at map[string]any, key string) { at[key] = v })
	}
	cases := map[string]struct {
		change func(map[string]any)
		tag    string
		status int
		rule   string // "" for a refusal before gate 1
	}{
		"no title":           {drop("layers/annotations"), "1.0.0", 400, "oci.title"},
		"title of another":   {set("layers/annotations", map[string]any{"org.opencontainers.image.title": "x.tar.gz"}), "1.0.0", 400, "publish.title"},
		"no claims":          {drop("annotations"), "1.0.0", 400, "oci.claims"},
		"no content claim":   {drop("annotations/dev.gatehouse.content-digest"), "1.0.0", 400, "oci.claims"},
		"wrong content":      {set("annotations/dev.gatehouse.content-digest", "sha256:"+other), "1.0.0", 400, "digest.content"},
		"wrong tree":         {set("annotations/dev.gatehouse.tree-digest", "sha256:"+other), "1.0.0", 400, "digest.tree"},
		"malformed claim":    {set("annotations/dev.gatehouse.tree-digest", "sha256:0"), "1.0.0", 400, "oci.claims"},
		"claim of no text":   {set("annotations/dev.gatehouse.tree-digest", 7), "1.0.0", 400, ""},
		"another kind":       {set("artifactType", pack.KindEnvironment.ArtifactType()), "1.0.0", 400, "publish.kind.artifact"},
		"unknown kind":       {set("artifactType", "application/vnd.gatehouse.pack.malware.v1"), "1.0.0", 400, "oci.kind"},
		"no artifact type":   {drop("artifactType"), "1.0.0", 400, "oci.kind"},
		"layer media type":   {set("layers/mediaType", "application/zip"), "1.0.0", 400, "oci.mediatype"},
		"config media type":  {set("config/mediaType", "application/vnd.oci.empty.v1+json"), "1.0.0", 400, "oci.mediatype"},
		"tag of another":     {func(map[string]any) {}, "1.0.1", 400, "publish.version.tag"},
		"tag latest":         {func(map[string]any) {}, "latest", 400, "publish.version.tag"},
		"layer not there":    {set("layers/digest", "sha256:"+other), "1.0.0", 404, ""},
		"layer's size":       {set("layers/size", len(a.layer)+1), "1.0.0", 400, ""},
		"layer of size -1":   {set("layers/size", -1), "1.0.0", 400, ""},
		"size in a fraction": {set("layers/size", 1.5), "1.0.0", 400, ""},
		"digest of no text":  {set("layers/digest", 1), "1.0.0", 400, ""},
		"layers of no list":  {set("layers", map[string]any{}), "1.0.0", 400, ""},
		"config is the layer": {func(m map[string]any) {
			m["config"].(map[string]any)["digest"] = m["layers"].([]any)[0].(map[string]any)["digest"]
			m["config"].(map[string]any)["size"] = len(a.layer)
		}, "1.0.0", 400, "digest.config"},
		"foreign layer": {set("layers/urls", []any{"https://example.org/x"}), "1.0.0", 400, "oci.descriptor"},
	}
	g.pushBlob("alice", "alice/demo", a.layer)
	g.pushBlob("alice", "alice/demo", a.config)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := g.in(t)
			r := g.putManifest("alice", "alice/demo", c.tag, imageManifest, changed(t, a.manifest, c.change))
			got := r.refused(t, "/v2/", c.status)
			if rules := got.Decision.rules(); c.rule != "" && !slices.Contains(rules, c.rule) || c.rule == "" && rules != nil {
				t.Errorf("rules %q (%s), want %q", rules, got.Detail, c.rule)
			}
			if got := append(g.plugins(), g.repositories()...); len(got) > 0 {
				t.Errorf("left: %q", got)
			}
		})
	}
	for mediaType, reference := range map[string]string{
		"application/vnd.docker.distribution.manifest.v2+json": "1.0.0",
		imageIndex:    "1.0.0",
		imageManifest: "1.0.0?digest=" + digest512(a.manifest),
	} {
		g.putManifest("alice", "alice/demo", reference, mediaType, changed(t, a.manifest, drop("mediaType"))).refused(t, "/v2/", http.StatusBadRequest)
	}
	// The twin without a fault, by digest first. With a subject and annotations of the publisher's it is the same pack.
	full := changed(t, a.manifest, func(m map[string]any) {
		m["subject"] = map[string]any{"mediaType": imageManifest, "digest": "sha256:" + other, "size": 2}
		m["annotations"].(map[string]any)["org.example.note"] = "kept"
	})
	g.putManifest("alice", "alice/demo", digest.FromBytes(a.manifest).String(), imageManifest, a.manifest).want(t, http.StatusCreated)
	if got := g.plugins(); len(got) > 0 {
		t.Errorf("a manifest by digest made %q", got)
	}
	r := g.putManifest("alice", "alice/demo", "1.0.0", imageManifest, full).want(t, http.StatusCreated)
	if r.header.Get("OCI-Subject") != "sha256:"+other {
		t.Errorf("OCI-Subject %q", r.header.Get("OCI-Subject"))
	}
	if list := g.get("bob", "/v2/alice/demo/referrers/sha256:"+other).want(t, http.StatusOK).body; !bytes.Contains(list, []byte("org.example.note")) || !bytes.Contains(list, []byte(digest.FromBytes(full).String())) {
		t.Errorf("referrers %s", list)
	}
}

func digest512(b []byte) string {
	h := digest.SHA512.New()
	h.Write(b)
	return digest.FromHash(digest.SHA512, h).String()
}

// changed is a JSON object after a change.
func changed(tb testing.TB, src []byte, change func(map[string]any)) []byte {
	tb.Helper()
	var m map[string]any
	if err := json.Unmarshal(src, &m); err != nil {
		tb.Fatal(err)
	}
	change(m)
	out, err := json.Marshal(m)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}
