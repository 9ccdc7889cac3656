package oci_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"runtime"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

func (s *server) putManifest(ref, mediaType, content string) answer {
	s.tb.Helper()
	return s.do(request{method: "PUT", path: "/v2/alice/x/manifests/" + ref, body: content, header: map[string]string{"Content-Type": mediaType}})
}

func TestManifestPut(t *testing.T) {
	s := newServer(t)
	for _, blob := range []string{"{}", "layer"} {
		s.pushBlob("alice/x", blob)
	}
	whole := image("layer", "")
	spaced := "\n " + strings.ReplaceAll(whole, ",", " ,\t") + "\r\n"
	bare := strings.Replace(whole, fmt.Sprintf(`"mediaType":%q,`, mediaTypeImage), "", 1)
	index := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[%s]}`, mediaTypeIndex, descriptorJSON(mediaTypeImage, "not here"))
	missing := image("never pushed", "")
	foreign := strings.Replace(missing, `"size":12}]`, `"size":12,"urls":["https://example.com/x"]}]`, 1)
	tests := []struct {
		name, mediaType, content string
		code                     int
		said                     string // in the body
	}{
		{"image", mediaTypeImage, whole, 201, ""},
		{"spaces and line ends stay", mediaTypeImage, spaced, 201, ""},
		{"parameters of Content-Type are dropped", mediaTypeImage + "; charset=utf-8", whole, 201, ""},
		{"case of Content-Type does not count", "Application/VND.oci.image.manifest.v1+JSON", whole, 201, ""},
		{"no mediaType", mediaTypeImage, bare, 201, ""},
		{"no Content-Type", "", whole, 201, ""},
		{"sparse index", mediaTypeIndex, index, 201, ""},
		{"foreign layer", mediaTypeImage, foreign, 201, ""},
		{"unknown type", "application/vnd.example.v1+json", `{"any": ["thing"]}`, 201, ""},
		{"unknown type, not JSON", "application/vnd.example", "\x00\xff", 201, ""},

		{"neither Content-Type nor mediaType", "", bare, 400, "no Content-Type"},
		{"no media type", "whatever", whole, 400, "no media type"},
		{"other media type", mediaTypeIndex, whole, 400, "mediaType"},
		{"hidden behind an unknown type", "application/json", whole, 400, "mediaType"},
		{"layer unknown", mediaTypeImage, missing, 404, "MANIFEST_BLOB_UNKNOWN"},
		{"no JSON", mediaTypeImage, "hello", 400, "MANIFEST_INVALID"},
		{"empty", mediaTypeImage, "", 400, "MANIFEST_INVALID"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tag := fmt.Sprintf("t%d", i)
			a := s.putManifest(tag, tt.mediaType, tt.content)
			if a.code != tt.code || !strings.Contains(a.body, tt.said) {
				t.Fatalf("status %d, want %d with %q; body %s", a.code, tt.code, tt.said, a.body)
			}
			got := s.do(request{method: "GET", path: "/v2/alice/x/manifests/" + tag})
			if tt.code != 201 {
				if got.code != 404 {
					t.Errorf("it was refused and is there: status %d", got.code)
				}
				return
			}
			checkHeader(t, a, map[string]string{"Location": "/v2/alice/x/manifests/" + sha(tt.content), "Docker-Content-Digest": sha(tt.content), "Oci-Subject": "-", "Oci-Tag": "-"})
			if got.body != tt.content {
				t.Errorf("came back as %q", got.body)
			}
			mediaType, _, _ := strings.Cut(strings.ToLower(tt.mediaType), ";")
			if mediaType == "" {
				mediaType = mediaTypeImage
			}
			checkHeader(t, got, map[string]string{"Content-Type": mediaType, "Docker-Content-Digest": sha(tt.content)})
			if at := s.do(request{method: "GET", path: a.header.Get("Location")}); at.code != 200 || at.body != tt.content {
				t.Errorf("at its Location: status %d, body %q", at.code, at.body)
			}
		})
	}
}

func TestManifestByDigest(t *testing.T) {
	s := newServer(t)
	for _, blob := range []string{"{}", "layer"} {
		s.pushBlob("alice/x", blob)
	}
	manifest := image("layer", "")
	for _, digestOf := range []func(string) string{sha, sha512Of} {
		d := digestOf(manifest)
		a := s.putManifest(d, mediaTypeImage, manifest+" ")
		if a.code != 400 || !strings.Contains(a.body, "DIGEST_INVALID") {
			t.Errorf("%s of other content: status %d: %s", d, a.code, a.body)
		}
		s.must(404, request{method: "GET", path: "/v2/alice/x/manifests/" + d})
		if a = s.putManifest(d, mediaTypeImage, manifest); a.code != 201 {
			t.Fatalf("%s: status %d: %s", d, a.code, a.body)
		}
		checkHeader(t, a, map[string]string{"Docker-Content-Digest": d, "Location": "/v2/alice/x/manifests/" + d})
		if a = s.must(200, request{method: "GET", path: "/v2/alice/x/manifests/" + d}); a.body != manifest {
			t.Errorf("body %q", a.body)
		}
		s.must(404, request{method: "GET", path: "/v2/alice/y/manifests/" + d})
	}
	if a := s.must(200, request{method: "GET", path: "/v2/alice/x/tags/list"}); a.body != `{"name":"alice/x","tags":[]}` {
		t.Errorf("a push by digest made tags: %s", a.body)
	}

	d := sha512Of(manifest)
	a := s.putManifest(d+"?tag=one&tag=two", mediaTypeImage, manifest)
	checkHeader(t, a, map[string]string{"Oci-Tag": "one, two", "Docker-Content-Digest": d})
	a = s.putManifest("three?digest="+d, mediaTypeImage, manifest)
	checkHeader(t, a, map[string]string{"Docker-Content-Digest": d})
	for _, tag := range []string{"one", "two", "three"} {
		a = s.must(200, request{method: "HEAD", path: "/v2/alice/x/manifests/" + tag})
		checkHeader(t, a, map[string]string{"Docker-Content-Digest": d})
	}
	if a = s.putManifest("four?digest="+sha("other"), mediaTypeImage, manifest); a.code != 400 {
		t.Errorf("a tag with another digest: status %d", a.code)
	}
	s.must(404, request{method: "HEAD", path: "/v2/alice/x/manifests/four"})
}

func TestTagMoves(t *testing.T) {
	s := newServer(t)
	first, second := s.pushImage("alice/x", "latest", "one", ""), s.pushImage("alice/x", "latest", "two", "")
	if a := s.must(200, request{method: "GET", path: "/v2/alice/x/manifests/latest"}); a.body != second {
		t.Errorf("latest is %s", a.body)
	}
	s.must(200, request{method: "GET", path: "/v2/alice/x/manifests/" + sha(first)})
	s.must(200, request{method: "GET", path: "/v2/alice/x/manifests/latest", header: map[string]string{"If-None-Match": `"` + sha(first) + `"`}})
}

// TestIndexRing: two indexes that name each other, and one that names itself, are stored and never followed.
func TestIndexRing(t *testing.T) {
	s := newServer(t)
	a := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":%q,"digest":"sha256:%064d","size":1}]}`, mediaTypeIndex, 0)
	b := fmt.Sprintf(`{"schemaVersion":2,"manifests":[%s]}`, descriptorJSON(mediaTypeIndex, a))
	for tag, content := range map[string]string{"a": a, "b": b} {
		if got := s.putManifest(tag, mediaTypeIndex, content); got.code != 201 {
			t.Errorf("%s: status %d: %s", tag, got.code, got.body)
		}
	}
	s.must(202, request{method: "DELETE", path: "/v2/alice/x/manifests/" + sha(a)})
	s.must(200, request{method: "GET", path: "/v2/alice/x/manifests/b"})
}

// TestCorpus pushes the hostile manifests of the corpus as artifacts that are no packs, and then the twin of each that
// is refused, without its fault.
func TestCorpus(t *testing.T) {
	s := newServer(t)
	s.pushBlob("alice/x", "{}")
	corpus := corpusManifests(t)
	twin := string(corpus["m19-dup-layers.json"])
	layer := descriptorJSON("application/vnd.oci.empty.v1+json", "{}")
	twin = strings.Replace(twin, ", "+spaced(layer)+"]", "]", 1)
	want := map[string]struct {
		code int
		said string
		twin string
	}{
		"m01-empty-layers.json":       {201, "", ""},
		"m03-manifest-and-index.json": {400, "MANIFEST_INVALID", twin},
		"m05-json-case.json":          {400, "MANIFEST_INVALID", twin},
		"m07-json-dup.json":           {400, "MANIFEST_INVALID", twin},
		"m09-size-lie.json":           {400, "SIZE_INVALID", twin},
		"m11-sha512-short.json":       {400, "MANIFEST_INVALID", twin},
		"m13-upper-hex.json":          {400, "MANIFEST_INVALID", twin},
		"m15-subject-missing.json":    {201, "", ""},
		"m17-5MiB.json.gz":            {413, "TOO_LARGE", strings.Replace(string(corpus["m17-5MiB.json.gz"]), strings.Repeat("a", 2*limit.MiB), "", 1)},
		"m19-dup-layers.json":         {201, "", ""},
		"m21-index-cycle.json":        {201, "", ""},
		"m23-bom.json":                {400, "MANIFEST_INVALID", strings.TrimPrefix(string(corpus["m23-bom.json"]), "\ufeff")},
		"m25-deep.json":               {400, "MANIFEST_INVALID", twin},
	}
	for name, content := range corpus {
		w, ok := want[name]
		if !ok {
			t.Errorf("%s: what must happen to it is not written down here", name)
			continue
		}
		mediaType := mediaTypeImage
		if strings.Contains(string(content), `"manifests": []`) {
			mediaType = mediaTypeIndex
		}
		tag := name[:3]
		a := s.putManifest(tag, mediaType, string(content))
		if a.code != w.code || !strings.Contains(a.body, w.said) {
			t.Errorf("%s: status %d, want %d %s; body %s", name, a.code, w.code, w.said, a.body)
		}
		if got := s.do(request{method: "HEAD", path: "/v2/alice/x/manifests/" + tag}); (got.code == 200) != (w.code == 201) {
			t.Errorf("%s: answered %d, and a HEAD %d", name, a.code, got.code)
		}
		if w.twin == "" {
			continue
		}
		if w.twin == string(content) {
			t.Errorf("%s: its twin has the fault", name)
		}
		if a := s.putManifest(tag+"-twin", mediaType, w.twin); a.code != 201 {
			t.Errorf("%s: its twin: status %d: %s", name, a.code, a.body)
		}
	}
}

// spaced is the corpus's way to write JSON.
func spaced(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, `":`, `": `), `,"`, `, "`)
}

func corpusManifests(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := fs.Glob(testdata.FS, "corpus/m*")
	if err != nil || len(names) == 0 {
		t.Fatalf("corpus: %d manifests, %v", len(names), err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		content, err := fs.ReadFile(testdata.FS, name)
		if err == nil && strings.HasSuffix(name, ".gz") {
			var zr *gzip.Reader
			if zr, err = gzip.NewReader(bytes.NewReader(content)); err == nil {
				content, err = io.ReadAll(zr)
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[path.Base(name)] = content
	}
	return all
}

// TestTooLargeManifestCostsNoMemory pushes a gigabyte, with and without saying so beforehand.
func TestTooLargeManifestCostsNoMemory(t *testing.T) {
	s := newServer(t)
	for _, length := range []int64{1 << 30, -1} {
		body := &nothing{size: 1 << 30}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/v2/alice/x/manifests/v1", body)
		r.ContentLength = length
		r.SetBasicAuth("alice", password)
		r.Header.Set("Content-Type", mediaTypeImage)
		w := httptest.NewRecorder()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.handler.ServeHTTP(w, r)
		runtime.ReadMemStats(&after)
		if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "4194304") {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 10*limit.Manifest {
			t.Errorf("length %d: %d bytes were allocated", length, got)
		}
		if body.read > 5*limit.Manifest+limit.MiB {
			t.Errorf("length %d: %d bytes were read", length, body.read)
		}
	}
	if n := len(s.files("blobs")); n != 0 {
		t.Errorf("%d blobs are stored", n)
	}
}

// TestLargestManifest: the limit itself is allowed, one byte more is not.
func TestLargestManifest(t *testing.T) {
	s := newServer(t)
	for _, blob := range []string{"{}", "layer"} {
		s.pushBlob("alice/x", blob)
	}
	manifest := image("layer", "")
	manifest += strings.Repeat(" ", limit.Manifest-len(manifest))
	if a := s.putManifest("v1", mediaTypeImage, manifest); a.code != 201 {
		t.Errorf("status %d: %s", a.code, a.body)
	}
	for _, reader := range []io.Reader{nil, io.MultiReader(strings.NewReader(manifest + " "))} {
		s.must(413, request{method: "PUT", path: "/v2/alice/x/manifests/v2", body: manifest + " ", reader: reader, header: map[string]string{"Content-Type": mediaTypeImage}})
	}
}
