package mirror_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client/mirror"
)

// fill gives a server two repositories with one of everything, and lists what must be the same afterwards.
func fill(g *gatehouse) map[string][]string {
	amd, arm := g.image("team/app", "", "amd64"), g.image("team/app", "", "arm64")
	index := g.manifest("team/app", "v1", ociIndex, map[string]any{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []desc{amd, arm}})
	outer := g.manifest("team/app", "nested", ociIndex, map[string]any{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []desc{index}})
	note := g.image("team/app", "", "note", subject(index))
	noteOfNote := g.image("team/app", "", "note of note", subject(note))
	noteOfChild := g.image("team/app", "", "note of arm64", subject(arm))
	docker := g.manifest("team/app", "docker", dockerImage, map[string]any{"schemaVersion": 2, "mediaType": dockerImage,
		"config": g.blob("team/app", "application/vnd.docker.container.image.v1+json", []byte("{}")), "layers": []desc{}})
	g.manifest("team/app", "docker-list", dockerList, map[string]any{"schemaVersion": 2, "mediaType": dockerList, "manifests": []desc{docker}})
	g.manifest("team/app", "odd", "application/vnd.test.odd", []byte("no JSON at all\x00"))
	g.image("team/app", "v1-again", "amd64")
	g.image("team/other", "latest", "amd64")
	return map[string][]string{
		"team/app": {"v1", "nested", "docker", "docker-list", "odd", "v1-again", amd["digest"].(string), arm["digest"].(string), outer["digest"].(string),
			note["digest"].(string), noteOfNote["digest"].(string), noteOfChild["digest"].(string)},
		"team/other": {"latest"},
	}
}

func TestWholeRegistry(t *testing.T) {
	a, b := start(t), start(t)
	want := fill(a)
	dry := run(t, a.place(""), b.place(""), mirror.Options{DryRun: true})
	b.do(http.MethodGet, "/v2/team/app/tags/list", "", nil, http.StatusNotFound)
	report := run(t, a.place(""), b.place(""), quick())
	clean(t, report)
	for repository, references := range want {
		for _, reference := range references {
			same(t, a, b, repository, reference)
		}
	}
	if report.Repositories != 2 || report.Tags != 7 || report.Mounted == 0 {
		t.Errorf("report %+v, want 2 repositories, 7 tags and blobs mounted from one to the other", report)
	}
	if dry.Blobs != report.Blobs || dry.Bytes != report.Bytes || dry.Mounted != report.Mounted {
		t.Errorf("the dry run said %+v, then it was %+v", dry, report)
	}
	again := run(t, a.place(""), b.place(""), quick())
	clean(t, again)
	if again.Manifests != 0 || again.Blobs != 0 || again.Bytes != 0 || again.Mounted != 0 {
		t.Errorf("a second run copied again: %+v", again)
	}
}

func TestNamedRepositories(t *testing.T) {
	a, b := start(t), start(t)
	fill(a)
	opt := quick()
	opt.Repositories = []string{"team/other"}
	clean(t, run(t, a.place(""), b.place(""), opt))
	same(t, a, b, "team/other", "latest")
	b.do(http.MethodGet, "/v2/team/app/tags/list", "", nil, http.StatusNotFound)
	clean(t, run(t, a.place("team/other"), b.place("else/where"), quick()))
	b.do(http.MethodGet, "/v2/else/where/manifests/latest", "", nil, http.StatusOK)
}

func TestLayoutFolder(t *testing.T) {
	a, b := start(t), start(t)
	want := fill(a)
	dir := filepath.Join(t.TempDir(), "layouts")
	clean(t, run(t, a.place(""), mirror.Place{Dir: dir}, quick()))
	clean(t, run(t, mirror.Place{Dir: dir}, b.place(""), quick()))
	for repository, references := range want {
		for _, reference := range references {
			same(t, a, b, repository, reference)
		}
	}
	again := run(t, a.place(""), mirror.Place{Dir: dir}, quick())
	if again.Blobs != 0 || again.Manifests != 0 {
		t.Errorf("a second run copied again: %+v", again)
	}
	one := filepath.Join(t.TempDir(), "one")
	clean(t, run(t, a.place("team/app"), mirror.Place{Dir: one}, quick()))
	clean(t, run(t, mirror.Place{Dir: one}, b.place("moved/app"), quick()))
	same(t, a, b, "team/app", "nested")
	b.do(http.MethodGet, "/v2/moved/app/manifests/nested", "", nil, http.StatusOK)
	if _, err := mirror.Run(t.Context(), mirror.Place{Dir: one}, b.place(""), quick()); registry.CodeOf(err) != registry.Invalid {
		t.Errorf("a layout without a name into a whole registry: %v, want Invalid", err)
	}
}

// noReferrers is a registry of old: it has no referrers API.
func noReferrers(w http.ResponseWriter, r *http.Request) bool {
	if strings.Contains(r.URL.Path, "/referrers/") {
		http.NotFound(w, r)
		return true
	}
	return false
}

// What refers to a manifest can be found at a destination without the referrers API: under the tag that stands in for it.
func TestDestinationWithoutReferrersAPI(t *testing.T) {
	a, b := start(t), start(t)
	app := a.image("team/app", "v1", "app")
	one, two := a.image("team/app", "", "one", subject(app)), a.image("team/app", "", "two", subject(app))
	to := b.place("team/app", front(t, b, noReferrers))
	clean(t, run(t, a.place("team/app"), to, quick()))
	tag := strings.Replace(app["digest"].(string), ":", "-", 1)
	listed := func() string {
		_, body := b.do(http.MethodGet, "/v2/team/app/manifests/"+tag, "", nil, http.StatusOK)
		return string(body)
	}
	if index := listed(); !strings.Contains(index, one["digest"].(string)) || !strings.Contains(index, two["digest"].(string)) || !strings.Contains(index, "application/vnd.test.note") {
		t.Errorf("the index under %s is %s", tag, index)
	}
	before := listed()
	clean(t, run(t, a.place("team/app"), to, quick()))
	if after := listed(); after != before {
		t.Errorf("a second run made %s of %s", after, before)
	}
	three := a.image("team/app", "", "three", subject(app))
	clean(t, run(t, a.place("team/app"), to, quick()))
	if index := listed(); !strings.Contains(index, three["digest"].(string)) || !strings.Contains(index, one["digest"].(string)) {
		t.Errorf("with one more the index is %s", index)
	}
}

// A source without the referrers API lists them under that tag, and so they come along; in a pack repository, which takes no
// such tags, the destination lists them itself.
func TestSourceWithoutReferrersAPI(t *testing.T) {
	a, b := start(t), start(t)
	app := a.image("team/app", "v1", "app")
	note := a.image("team/app", "", "note", subject(app))
	tag := strings.Replace(app["digest"].(string), ":", "-", 1)
	a.manifest("team/app", tag, ociIndex, map[string]any{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []desc{note}})
	source := a.place("team/app", front(t, a, noReferrers))
	clean(t, run(t, source, b.place("team/app"), quick()))
	same(t, a, b, "team/app", tag)
	same(t, a, b, "team/app", note["digest"].(string))
	refusing := front(t, b, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, tag) {
			w.WriteHeader(http.StatusForbidden)
			text(`{"errors":[{"code":"DENIED","message":"no such tags here"}]}`)(w, r)
			return true
		}
		return false
	})
	clean(t, run(t, source, b.place("team/second", refusing), quick()))
	_, list := b.do(http.MethodGet, "/v2/team/second/referrers/"+app["digest"].(string), "", nil, http.StatusOK)
	if !strings.Contains(string(list), note["digest"].(string)) {
		t.Errorf("the referrers are %s", list)
	}
}

// A layout's folder is somebody's: no link in it leads out.
func TestLayoutWithLinks(t *testing.T) {
	b := start(t)
	dir, outside := t.TempDir(), t.TempDir()
	content := []byte(`{"schemaVersion":2,"mediaType":"` + ociIndex + `","manifests":[]}`)
	d := digest.FromBytes(content)
	write(t, filepath.Join(outside, "secret"), content)
	write(t, filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`))
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []desc{{"mediaType": ociIndex, "digest": d, "size": len(content),
		"annotations": map[string]string{"org.opencontainers.image.ref.name": "v1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "index.json"), index)
	if err := os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "blobs", "sha256", d.Hex())); err != nil {
		t.Fatal(err)
	}
	report := run(t, mirror.Place{Dir: dir}, b.place("team/app"), quick())
	if len(report.Failed) != 1 {
		t.Errorf("report %+v, want the link refused", report)
	}
	b.do(http.MethodGet, "/v2/team/app/manifests/v1", "", nil, http.StatusNotFound)
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The children of an index that the source lacks stay away; the index comes as it is.
func TestSparseIndex(t *testing.T) {
	a, b := start(t), start(t)
	there := a.image("team/app", "", "amd64")
	gone := desc{"mediaType": ociManifest, "digest": digest.FromBytes([]byte("gone")).String(), "size": 4}
	a.manifest("team/app", "v1", ociIndex, map[string]any{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []desc{there, gone}})
	report := run(t, a.place("team/app"), b.place("team/app"), quick())
	if len(report.Sparse) != 1 || report.Sparse[0].Reference != gone["digest"] || len(report.Failed) != 0 {
		t.Errorf("report %+v, want the one child that is not there", report)
	}
	same(t, a, b, "team/app", "v1")
	same(t, a, b, "team/app", there["digest"].(string))
}

// What the destination's gate refuses is reported with its violations, and the rest goes on.
func TestRefusedPack(t *testing.T) {
	a, b := start(t), start(t)
	a.image("team/app", "v1", "fine")
	source := front(t, a, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/v2/team/bad/tags/list":
			text(`{"name":"team/bad","tags":["1.0.0"]}`)(w, r)
		case r.URL.Path == "/v2/_catalog":
			text(`{"repositories":["team/bad","team/app"]}`)(w, r)
		case strings.HasPrefix(r.URL.Path, "/v2/team/bad/blobs/"):
			if strings.HasSuffix(r.URL.Path, digest.FromBytes([]byte("{}")).String()) {
				text("{}")(w, r)
			} else {
				text("no archive")(w, r)
			}
		case strings.HasPrefix(r.URL.Path, "/v2/team/bad/manifests/"):
			w.Header().Set("Content-Type", ociManifest)
			text("%s", badPack)(w, r)
		case strings.HasPrefix(r.URL.Path, "/v2/team/bad/referrers/"):
			text(`{"manifests":[]}`)(w, r)
		default:
			return false
		}
		return true
	})
	report := run(t, a.place("", source), b.place(""), quick())
	if len(report.Refused) != 1 || report.Refused[0].Reference != "1.0.0" || report.Refused[0].Decision == nil || len(report.Refused[0].Decision.Violations) == 0 {
		t.Errorf("refused %+v, want 1.0.0 with violations", report.Refused)
	}
	if len(report.Failed) != 0 {
		t.Errorf("failed: %+v", report.Failed)
	}
	same(t, a, b, "team/app", "v1")
}

// A tag that moves while it is copied is copied again; both sides agree afterwards.
func TestTagMoves(t *testing.T) {
	a, b := start(t), start(t)
	a.image("team/app", "latest", "old")
	var once sync.Once
	source := front(t, a, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/blobs/") {
			once.Do(func() { a.image("team/app", "latest", "new") })
		}
		return false
	})
	clean(t, run(t, a.place("team/app", source), b.place("team/app"), quick()))
	same(t, a, b, "team/app", "latest")
}

// Whenever a copy ends, running it again ends right, and what came before is not copied again.
func TestInterrupted(t *testing.T) {
	a, b := start(t), start(t)
	want := fill(a)
	for stop := int64(1); ; stop += 7 {
		ctx, cancel := context.WithCancel(t.Context())
		var n atomic.Int64
		through := front(t, b, func(http.ResponseWriter, *http.Request) bool {
			if n.Add(1) == stop {
				cancel()
			}
			return false
		})
		_, err := mirror.Run(ctx, a.place(""), b.place("", through), quick())
		cancel()
		if err == nil {
			break
		}
		if stop > 2000 {
			t.Fatal("a copy never came to its end")
		}
	}
	for repository, references := range want {
		for _, reference := range references {
			same(t, a, b, repository, reference)
		}
	}
}

// badPack claims to be a pack and is none.
var badPack = `{"schemaVersion":2,"mediaType":"` + ociManifest + `","config":{"mediaType":"` + pack.MediaTypeConfig +
	`","digest":"` + digest.FromBytes([]byte("{}")).String() + `","size":2},"layers":[{"mediaType":"` + pack.MediaTypeLayer + `","digest":"` +
	digest.FromBytes([]byte("no archive")).String() + `","size":10}]}`
