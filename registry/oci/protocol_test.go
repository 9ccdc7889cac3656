package oci_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/oci"
)

// TestReads walks the reads of a repository that holds one image under two tags.
func TestReads(t *testing.T) {
	s := newServer(t)
	layer := strings.Repeat("0123456789", 100)
	manifest := s.pushImage("alice/x", "v1", layer, "")
	s.pushImage("alice/x", "v2", layer, "")
	blob, ref, absent := "/v2/alice/x/blobs/"+sha(layer), "/v2/alice/x/manifests/"+sha(manifest), sha("absent")
	etag, manifestTag := `"`+sha(layer)+`"`, `"`+sha(manifest)+`"`
	blobHeader := map[string]string{"Content-Type": "application/octet-stream", "Content-Length": "1000", "Docker-Content-Digest": sha(layer), "Etag": etag, "Accept-Ranges": "bytes"}
	manifestHeader := map[string]string{"Content-Type": mediaTypeImage, "Content-Length": fmt.Sprint(len(manifest)), "Docker-Content-Digest": sha(manifest), "Etag": manifestTag}
	type hd = map[string]string
	tests := []struct {
		name         string
		method, path string
		header       hd
		code         int
		want         hd
		body         string // the whole body, or "~" and a part of it
	}{
		{"ping", "GET", "/v2/", nil, 200, hd{"Docker-Distribution-Api-Version": "registry/2.0", "Content-Type": "application/json"}, "{}"},
		{"ping without slash", "GET", "/v2", nil, 200, nil, "{}"},

		{"blob", "GET", blob, nil, 200, blobHeader, layer},
		{"blob head", "HEAD", blob, nil, 200, blobHeader, ""},
		{"blob of another repository", "GET", strings.Replace(blob, "alice/x", "alice/y", 1), nil, 404, hd{"Docker-Content-Digest": "-", "Etag": "-"}, "~BLOB_UNKNOWN"},
		{"blob unknown", "GET", "/v2/alice/x/blobs/" + absent, nil, 404, nil, "~BLOB_UNKNOWN"},
		{"blob head unknown", "HEAD", "/v2/alice/x/blobs/" + absent, nil, 404, nil, ""},
		{"blob range", "GET", blob, hd{"Range": "bytes=10-19"}, 206, hd{"Content-Range": "bytes 10-19/1000", "Content-Length": "10", "Etag": etag}, "0123456789"},
		{"blob range to the end", "GET", blob, hd{"Range": "bytes=995-"}, 206, hd{"Content-Range": "bytes 995-999/1000"}, "56789"},
		{"blob range beyond the end", "GET", blob, hd{"Range": "bytes=995-2000"}, 206, hd{"Content-Range": "bytes 995-999/1000"}, "56789"},
		{"blob suffix", "GET", blob, hd{"Range": "bytes=-3"}, 206, hd{"Content-Range": "bytes 997-999/1000"}, "789"},
		{"blob unsatisfiable", "GET", blob, hd{"Range": "bytes=1000-"}, 416, hd{"Content-Range": "bytes */1000", "Content-Type": "application/json", "Etag": "-"}, "~RANGE_INVALID"},
		{"blob backwards", "GET", blob, hd{"Range": "bytes=5-0"}, 416, hd{"Content-Range": "bytes */1000"}, "~RANGE_INVALID"},
		{"blob several ranges", "GET", blob, hd{"Range": "bytes=0-1,5-6"}, 200, hd{"Content-Range": "-"}, layer},
		{"blob head ignores ranges", "HEAD", blob, hd{"Range": "bytes=10-19"}, 200, blobHeader, ""},
		{"blob range of the same", "GET", blob, hd{"Range": "bytes=0-0", "If-Range": etag}, 206, nil, "0"},
		{"blob range of another", "GET", blob, hd{"Range": "bytes=0-0", "If-Range": `"sha256:other"`}, 200, nil, layer},
		{"blob known", "GET", blob, hd{"If-None-Match": etag}, 304, hd{"Etag": etag, "Content-Length": "-"}, ""},
		{"blob known in a list", "GET", blob, hd{"If-None-Match": `"a", W/` + etag}, 304, nil, ""},
		{"blob known as anything", "HEAD", blob, hd{"If-None-Match": "*"}, 304, nil, ""},
		{"blob known beats range", "GET", blob, hd{"If-None-Match": etag, "Range": "bytes=5000-"}, 304, nil, ""},
		{"blob not known", "GET", blob, hd{"If-None-Match": `"sha256:other"`}, 200, nil, layer},

		{"manifest by tag", "GET", "/v2/alice/x/manifests/v1", hd{"Accept": "application/vnd.other"}, 200, manifestHeader, manifest},
		{"manifest by digest", "GET", ref, nil, 200, manifestHeader, manifest},
		{"manifest head by tag", "HEAD", "/v2/alice/x/manifests/v2", nil, 200, manifestHeader, ""},
		{"manifest head by digest", "HEAD", ref, nil, 200, manifestHeader, ""},
		{"manifest known", "GET", "/v2/alice/x/manifests/v1", hd{"If-None-Match": manifestTag}, 304, hd{"Docker-Content-Digest": sha(manifest)}, ""},
		{"manifest unknown tag", "GET", "/v2/alice/x/manifests/v3", nil, 404, nil, "~MANIFEST_UNKNOWN"},
		{"manifest unknown digest", "HEAD", "/v2/alice/x/manifests/" + absent, nil, 404, nil, ""},
		{"manifest of an unknown repository", "GET", "/v2/alice/none/manifests/v1", nil, 404, nil, "~NAME_UNKNOWN"},
		{"manifest bytes are no blob of the repository", "GET", "/v2/alice/x/blobs/" + sha(manifest), nil, 404, nil, "~BLOB_UNKNOWN"},
		{"manifest by a bad digest", "GET", "/v2/alice/x/manifests/sha256:baddigeststring", nil, 400, nil, "~DIGEST_INVALID"},

		{"tags", "GET", "/v2/alice/x/tags/list", nil, 200, hd{"Content-Type": "application/json", "Link": "-"}, `{"name":"alice/x","tags":["v1","v2"]}`},
		{"tags of an unknown repository", "GET", "/v2/alice/none/tags/list", nil, 404, nil, "~NAME_UNKNOWN"},
		{"catalogue", "GET", "/v2/_catalog", nil, 200, nil, `{"repositories":["alice/x"]}`},
		{"no referrers", "GET", "/v2/alice/x/referrers/" + absent, nil, 200, hd{"Content-Type": mediaTypeIndex, "Oci-Filters-Applied": "-"}, `{"schemaVersion":2,"mediaType":"` + mediaTypeIndex + `","manifests":[]}`},
		{"no referrers in no repository", "GET", "/v2/alice/none/referrers/" + absent + "?artifactType=a/b", nil, 200, hd{"Oci-Filters-Applied": "artifactType"}, "~\"manifests\":[]"},

		{"tags head", "HEAD", "/v2/alice/x/tags/list", nil, 200, hd{"Content-Type": "application/json", "Content-Length": "37"}, ""},
		{"catalogue head", "HEAD", "/v2/_catalog", nil, 200, nil, ""},
		{"referrers head", "HEAD", "/v2/alice/x/referrers/" + absent, nil, 200, hd{"Content-Type": mediaTypeIndex}, ""},

		{"not a route", "GET", "/v2/alice/x", nil, 404, nil, "~NOT_FOUND"},
		{"wrong method", "PUT", blob, nil, 405, hd{"Allow": "DELETE, GET, HEAD"}, "~UNSUPPORTED"},
		{"escaped slash", "GET", "/v2/alice%2Fx/tags/list", nil, 400, nil, "~NAME_INVALID"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := s.do(request{user: "vera", method: tt.method, path: tt.path, header: tt.header})
			if a.code != tt.code {
				t.Errorf("status %d, want %d", a.code, tt.code)
			}
			checkHeader(t, a, tt.want)
			checkHeader(t, a, hd{"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"})
			if part, ok := strings.CutPrefix(tt.body, "~"); ok && strings.Contains(a.body, part) {
				return
			}
			if a.body != tt.body {
				t.Errorf("body %.300q, want %.300q", a.body, tt.body)
			}
		})
	}
}

// everyRoute lists a request of every kind.
func everyRoute(repository string) []request {
	blob, upload := "/v2/"+repository+"/blobs/"+sha("x"), "/v2/"+repository+"/blobs/uploads/"+strings.Repeat("0", 32)
	manifest := "/v2/" + repository + "/manifests/v1"
	return []request{
		{method: "GET", path: "/v2/"}, {method: "GET", path: "/v2/_catalog"},
		{method: "GET", path: blob}, {method: "HEAD", path: blob}, {method: "DELETE", path: blob},
		{method: "POST", path: "/v2/" + repository + "/blobs/uploads/"},
		{method: "POST", path: "/v2/" + repository + "/blobs/uploads/?digest=" + sha("x"), body: "x"},
		{method: "POST", path: "/v2/" + repository + "/blobs/uploads/?from=alice/x&mount=" + sha("x")},
		{method: "GET", path: upload}, {method: "PATCH", path: upload, body: "x"},
		{method: "PUT", path: upload + "?digest=" + sha("x"), body: "x"}, {method: "DELETE", path: upload},
		{method: "GET", path: manifest}, {method: "HEAD", path: manifest},
		{method: "PUT", path: manifest, body: image("x", "")}, {method: "DELETE", path: manifest},
		{method: "GET", path: "/v2/" + repository + "/tags/list"},
		{method: "GET", path: "/v2/" + repository + "/referrers/" + sha("x")},
	}
}

func TestStrangersGetTheChallengeEverywhere(t *testing.T) {
	s := newServer(t)
	s.pushImage("alice/x", "v1", "x", "")
	paths := append(everyRoute("alice/x"), request{method: "GET", path: "/v2/Not//a/route"}, request{method: "BREW", path: "/v2/"})
	for _, q := range paths {
		for _, header := range []map[string]string{nil, {"Authorization": "Basic YWxpY2U6d3Jvbmc="}} {
			q.user, q.header = "-", header
			a := s.do(q)
			if a.code != http.StatusUnauthorized || a.header.Get("Www-Authenticate") != `Basic realm="Gatehouse"` {
				t.Errorf("%s %s: status %d, challenge %q", q.method, q.path, a.code, a.header.Get("Www-Authenticate"))
			}
			if q.method != "HEAD" && !strings.Contains(a.body, "UNAUTHORIZED") {
				t.Errorf("%s %s: body %q", q.method, q.path, a.body)
			}
		}
	}
	if n := len(s.files("uploads")); n > 0 {
		t.Errorf("%d uploads were started by strangers", n)
	}
}

func TestWritesNeedTheOwner(t *testing.T) {
	s := newServer(t)
	s.pushImage("alice/x", "v1", "x", "")
	for _, user := range []string{"bob", "vera"} {
		for _, q := range everyRoute("alice/x") {
			q.user = user
			a := s.do(q)
			if read := q.method == "GET" || q.method == "HEAD"; !read && a.code != http.StatusForbidden {
				t.Errorf("%s: %s %s: status %d, want 403", user, q.method, q.path, a.code)
			} else if read && (a.code == http.StatusForbidden) != strings.Contains(q.path, "/uploads/") {
				t.Errorf("%s: %s %s: status %d", user, q.method, q.path, a.code)
			}
		}
	}
	if a := s.do(request{method: "GET", path: "/v2/alice/x/manifests/v1"}); a.code != 200 {
		t.Errorf("the image is gone: status %d", a.code)
	}
}

func TestPrincipalThatCantBeTold(t *testing.T) {
	s := newServer(t, func(o *oci.Options, _ *registry.Settings) {
		o.Principal = func(*http.Request) (auth.Principal, error) {
			return auth.Principal{}, &registry.Error{Code: registry.TooManyRequests, RetryAfter: time.Minute}
		}
	})
	for _, q := range everyRoute("alice/x") {
		if a := s.do(q); a.code != http.StatusTooManyRequests || a.header.Get("Retry-After") != "60" {
			t.Errorf("%s %s: status %d, Retry-After %q", q.method, q.path, a.code, a.header.Get("Retry-After"))
		}
	}
}

func TestTagsPages(t *testing.T) {
	s := newServer(t)
	s.pushImage("alice/x", "v0", "x", "")
	var want []string
	for i := range 25 {
		tag := fmt.Sprintf("v%d", i)
		s.pushImage("alice/x", tag, "x", "")
		want = append(want, tag)
	}
	slices.Sort(want)
	if got := s.walk(t, "/v2/alice/x/tags/list?n=10", "tags"); !slices.Equal(slices.Concat(got...), want) || len(got) != 3 {
		t.Errorf("pages %v", got)
	}
	for n, pages := range map[int]int{25: 1, 24: 2, 1: 25, 100: 1} {
		if got := s.walk(t, fmt.Sprintf("/v2/alice/x/tags/list?n=%d", n), "tags"); !slices.Equal(slices.Concat(got...), want) || len(got) != pages {
			t.Errorf("n=%d: pages %v, want %d", n, got, pages)
		}
	}
	a := s.must(200, request{method: "GET", path: "/v2/alice/x/tags/list?n=0"})
	if a.body != `{"name":"alice/x","tags":[]}` || a.header.Get("Link") != "" {
		t.Errorf("n=0: %s, Link %q", a.body, a.header.Get("Link"))
	}
	a = s.must(200, request{method: "GET", path: "/v2/alice/x/tags/list?last=v8"})
	if a.body != `{"name":"alice/x","tags":["v9"]}` {
		t.Errorf("last=v8: %s", a.body)
	}
	a = s.must(200, request{method: "GET", path: "/v2/alice/x/tags/list?last=zz"})
	if a.body != `{"name":"alice/x","tags":[]}` {
		t.Errorf("last=zz: %s", a.body)
	}
	s.must(400, request{method: "GET", path: "/v2/alice/x/tags/list?n=x"})
}

// walk follows the Links of a list and gives its pages.
func (s *server) walk(t *testing.T, path, field string) [][]string {
	t.Helper()
	var pages [][]string
	for path != "" {
		a := s.must(200, request{method: "GET", path: path})
		var page map[string]any
		if err := json.Unmarshal([]byte(a.body), &page); err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, v := range page[field].([]any) {
			list = append(list, v.(string))
		}
		pages = append(pages, list)
		path = next(t, a)
	}
	return pages
}

// next is the path of the next page, "" at the last one.
func next(t *testing.T, a answer) string {
	t.Helper()
	link := a.header.Get("Link")
	if link == "" {
		return ""
	}
	path, ok := strings.CutSuffix(link, `>; rel="next"`)
	if _, err := url.ParseRequestURI(path[1:]); !ok || err != nil || path[0] != '<' {
		t.Fatalf("Link %q", link)
	}
	return path[1:]
}

func TestCataloguePages(t *testing.T) {
	s := newServer(t)
	want := []string{"alice/a", "alice/a/b", "alice/b", "bob/a", "zoe/z"}
	for _, name := range []string{"zoe/z", "alice/b", "bob/a", "alice/a", "alice/a/b"} {
		s.pushImage(name, "v1", "x", "")
	}
	s.pushBlob("alice/blobs-only", "x")
	s.must(404, request{method: "GET", path: "/v2/alice/blobs-only/tags/list"})
	if diff := cmp.Diff([][]string{want[:2], want[2:4], want[4:]}, s.walk(t, "/v2/_catalog?n=2", "repositories")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := s.walk(t, "/v2/_catalog", "repositories"); len(got) != 1 || !slices.Equal(got[0], want) {
		t.Errorf("whole catalogue: %v", got)
	}
}

func TestReferrers(t *testing.T) {
	s := newServer(t)
	subject := s.pushImage("alice/x", "v1", "x", "")
	toSubject := `"subject":` + fmt.Sprintf(`{"mediaType":%q,"digest":%q,"size":%d},`, mediaTypeImage, sha(subject), len(subject))
	signature := s.pushImage("alice/x", "", "sig", toSubject+`"artifactType":"example/signature","annotations":{"by":"alice"},`)
	plain := s.pushImage("alice/x", "sbom", "sbom", toSubject)
	s.pushImage("alice/y", "", "other repository", toSubject)
	index := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,%s"manifests":[]}`, mediaTypeIndex, toSubject)
	a := s.must(201, request{method: "PUT", path: "/v2/alice/x/manifests/list", body: index, header: map[string]string{"Content-Type": mediaTypeIndex}})
	checkHeader(t, a, map[string]string{"Oci-Subject": sha(subject), "Docker-Content-Digest": sha(index)})

	type entry struct {
		MediaType    string            `json:"mediaType"`
		Digest       string            `json:"digest"`
		Size         int               `json:"size"`
		ArtifactType *string           `json:"artifactType"`
		Annotations  map[string]string `json:"annotations"`
	}
	list := func(query string) ([]entry, answer) {
		a := s.must(200, request{method: "GET", path: "/v2/alice/x/referrers/" + sha(subject) + query})
		var body struct {
			SchemaVersion int     `json:"schemaVersion"`
			MediaType     string  `json:"mediaType"`
			Manifests     []entry `json:"manifests"`
		}
		if err := json.Unmarshal([]byte(a.body), &body); err != nil || body.SchemaVersion != 2 || body.MediaType != mediaTypeIndex {
			t.Fatalf("%s: %v", a.body, err)
		}
		return body.Manifests, a
	}
	text := func(s string) *string { return &s }
	want := []entry{
		{mediaTypeImage, sha(signature), len(signature), text("example/signature"), map[string]string{"by": "alice"}},
		{mediaTypeImage, sha(plain), len(plain), text("application/vnd.oci.empty.v1+json"), nil},
		{mediaTypeIndex, sha(index), len(index), nil, nil},
	}
	slices.SortFunc(want, func(a, b entry) int { return strings.Compare(a.Digest, b.Digest) })
	got, a := list("")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	checkHeader(t, a, map[string]string{"Content-Type": mediaTypeIndex, "Oci-Filters-Applied": "-"})

	got, a = list("?artifactType=example%2Fsignature")
	if len(got) != 1 || got[0].Digest != sha(signature) {
		t.Errorf("filtered: %+v", got)
	}
	checkHeader(t, a, map[string]string{"Oci-Filters-Applied": "artifactType"})

	var paged []entry
	pages := 0
	for query := "?n=2"; query != ""; pages++ {
		got, a = list(query)
		paged = append(paged, got...)
		_, query, _ = strings.Cut(next(t, a), "?")
		if query != "" {
			query = "?" + query
		}
	}
	if diff := cmp.Diff(want, paged); diff != "" || pages != 2 {
		t.Errorf("%d pages (-want +got):\n%s", pages, diff)
	}
	got, a = list("?n=1&artifactType=example%2Fsignature")
	if len(got) != 1 || a.header.Get("Link") != "" {
		t.Errorf("one page of one type: %+v, Link %q", got, a.header.Get("Link"))
	}
	s.must(400, request{method: "GET", path: "/v2/alice/x/referrers/" + sha(subject) + "?last=x"})

	s.must(202, request{method: "DELETE", path: "/v2/alice/x/manifests/" + sha(signature)})
	if got, _ = list(""); len(got) != 2 {
		t.Errorf("after a delete: %+v", got)
	}
	s.must(202, request{method: "DELETE", path: "/v2/alice/x/manifests/" + sha(subject)})
	if got, _ = list(""); len(got) != 2 {
		t.Errorf("after the subject's delete: %+v", got)
	}
}

// TestReferrersWithLargeAnnotations: a page ends before its annotations fill memory.
func TestReferrersWithLargeAnnotations(t *testing.T) {
	s := newServer(t)
	subject := fmt.Sprintf(`"subject":{"mediaType":%q,"digest":%q,"size":1},`, mediaTypeImage, sha("subject"))
	for i := range 5 {
		s.pushImage("alice/x", "", "layer", subject+fmt.Sprintf(`"annotations":{"n":"%d","large":%q},`, i, strings.Repeat("a", 1500<<10)))
	}
	seen := map[string]bool{}
	pages := 0
	for path := "/v2/alice/x/referrers/" + sha("subject"); path != ""; pages++ {
		a := s.must(200, request{method: "GET", path: path})
		if len(a.body) > 5<<20 {
			t.Errorf("a page has %d bytes", len(a.body))
		}
		var body struct {
			Manifests []struct{ Digest string }
		}
		if err := json.Unmarshal([]byte(a.body), &body); err != nil {
			t.Fatal(err)
		}
		for _, m := range body.Manifests {
			seen[m.Digest] = true
		}
		path = next(t, a)
	}
	if pages != 3 || len(seen) != 5 {
		t.Errorf("%d pages with %d referrers, want 3 with 5", pages, len(seen))
	}
}

func TestDeletes(t *testing.T) {
	s := newServer(t)
	manifest := s.pushImage("alice/x", "v1", "layer", "")
	s.pushImage("alice/x", "v2", "layer", "")
	blob := "/v2/alice/x/blobs/" + sha("layer")

	a := s.must(405, request{method: "DELETE", path: blob})
	if !strings.Contains(a.body, "UNSUPPORTED") || !strings.Contains(a.body, "1 manifest") {
		t.Errorf("delete of a blob that is named: %s", a.body)
	}
	s.must(202, request{method: "DELETE", path: "/v2/alice/x/manifests/v1"})
	s.must(404, request{method: "GET", path: "/v2/alice/x/manifests/v1"})
	s.must(200, request{method: "GET", path: "/v2/alice/x/manifests/" + sha(manifest)})
	s.must(202, request{method: "DELETE", path: "/v2/alice/x/manifests/" + sha(manifest)})
	for _, ref := range []string{"v2", sha(manifest)} {
		s.must(404, request{method: "GET", path: "/v2/alice/x/manifests/" + ref})
		s.must(404, request{method: "DELETE", path: "/v2/alice/x/manifests/" + ref})
	}
	s.must(200, request{method: "GET", path: blob})
	s.must(202, request{method: "DELETE", path: blob})
	s.must(404, request{method: "GET", path: blob})
	s.must(404, request{method: "HEAD", path: blob})
	s.must(404, request{method: "DELETE", path: blob})
	s.must(404, request{method: "GET", path: "/v2/alice/x/tags/list"}) // nothing of it is left to see
}
