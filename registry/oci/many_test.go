package oci_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/digest"
)

// Ten thousand uploads that are begun and left cost neither files nor memory, and each of them still works.
func TestTenThousandOpenUploads(t *testing.T) {
	const open = 10_000
	s := newServer(t)
	before := heap()
	at := make([]string, open)
	for i := range at {
		at[i] = s.start("alice/x")
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("%d open uploads hold %d bytes of memory", open, grown)
	}
	if left := s.files("uploads"); len(left) > 0 {
		t.Errorf("%d files for uploads without a byte", len(left))
	}
	for i := 0; i < open; i += open / 10 {
		content := fmt.Sprintf("blob of upload %d", i)
		checkHeader(t, s.must(204, request{method: "GET", path: at[i]}), map[string]string{"Location": at[i]})
		s.must(202, request{method: "PATCH", path: at[i], body: content})
		s.must(201, request{method: "PUT", path: at[i] + "?digest=" + sha(content)})
		s.checkBlob(t, "alice/x", content)
		s.must(404, request{method: "PUT", path: at[i] + "?digest=" + sha(content)})
	}
	seen := make(map[string]bool, open)
	for _, a := range at {
		if seen[a] {
			t.Fatalf("the address %s was given twice", a)
		}
		seen[a] = true
	}
}

// heap is how much memory is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// layers is a manifest that names n layers.
func layers(n int, layer func(i int) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"schemaVersion":2,"mediaType":%q,"config":%s,"layers":[`, mediaTypeImage, descriptorJSON("application/vnd.oci.empty.v1+json", "{}"))
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(layer(i))
	}
	b.WriteString("]}")
	return b.String()
}

// A manifest of a hundred thousand layers is too large, and is refused as such; twenty thousand are taken, byte for byte, when
// they are there, and refused in few words when they are not.
func TestHundredThousandLayers(t *testing.T) {
	s := newServer(t)
	for _, blob := range []string{"{}", "layer"} {
		s.pushBlob("alice/x", blob)
	}
	there := descriptorJSON("a/b", "layer")
	absent := func(i int) string {
		return fmt.Sprintf(`{"mediaType":"a/b","digest":%q,"size":1}`, digest.FromBytes(fmt.Append(nil, i)))
	}
	a := s.putManifest("v1", mediaTypeImage, layers(100_000, absent))
	if a.code != http.StatusRequestEntityTooLarge || !strings.Contains(a.body, "TOO_LARGE") {
		t.Errorf("100,000 layers: status %d: %.300s", a.code, a.body)
	}
	const most = limit.JSONNodes / 5 // a layer has four values
	whole := layers(most, func(int) string { return there })
	s.must(201, request{method: "PUT", path: "/v2/alice/x/manifests/v1", body: whole, header: map[string]string{"Content-Type": mediaTypeImage}})
	if got := s.must(200, request{method: "GET", path: "/v2/alice/x/manifests/v1"}); got.body != whole {
		t.Errorf("a manifest of %d layers came back with %d bytes, want %d", most, len(got.body), len(whole))
	}
	a = s.putManifest("v2", mediaTypeImage, layers(most, absent))
	if a.code != http.StatusNotFound || !strings.Contains(a.body, "MANIFEST_BLOB_UNKNOWN") || len(a.body) > 64<<10 {
		t.Errorf("%d layers that are not there: status %d, a body of %d bytes: %.300s", most, a.code, len(a.body), a.body)
	}
	s.must(404, request{method: "GET", path: "/v2/alice/x/manifests/v2"})
}

// An index of indexes is kept byte for byte at every level, and pulled by digest all the way down.
func TestIndexOfIndexes(t *testing.T) {
	s := newServer(t)
	content, mediaType := s.pushImage("alice/x", "", "layer", ""), mediaTypeImage
	const levels = 20
	all := []string{content}
	for range levels {
		content = fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[%s]}`, mediaTypeIndex, descriptorJSON(mediaType, content))
		mediaType = mediaTypeIndex
		if a := s.putManifest("v1", mediaTypeIndex, content); a.code != http.StatusCreated {
			t.Fatalf("status %d: %s", a.code, a.body)
		}
		all = append(all, content)
	}
	for _, want := range all {
		if got := s.must(200, request{method: "GET", path: "/v2/alice/x/manifests/" + sha(want)}); got.body != want {
			t.Errorf("%s came back as %q", sha(want), got.body)
		}
	}
	if got := s.must(200, request{method: "GET", path: "/v2/alice/x/manifests/v1"}); got.body != content {
		t.Errorf("the tag names %q", got.body)
	}
}
