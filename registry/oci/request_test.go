package oci

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
)

var (
	sum256 = digest.MustParse("sha256:" + strings.Repeat("a", 64))
	sum512 = digest.MustParse("sha512:" + strings.Repeat("b", 128))
)

const session = "0123456789abcdef0123456789abcdef"

func TestParse(t *testing.T) {
	tests := []struct {
		method, path string
		want         Request
	}{
		{"GET", "/v2/", Request{Kind: Ping}},
		{"HEAD", "/v2", Request{Kind: Ping}},
		{"GET", "/v2/_catalog", Request{Kind: CatalogueList}},
		{"GET", "/v2/_catalog?n=3&last=a/b", Request{Kind: CatalogueList, N: 3, Last: "a/b"}},
		{"GET", "/v2/alice/x/blobs/" + sum256.String(), Request{Kind: BlobGet, Repository: "alice/x", Digest: sum256}},
		{"HEAD", "/v2/x/blobs/" + sum512.String(), Request{Kind: BlobHead, Repository: "x", Digest: sum512}},
		{"GET", "/v2/x/blobs/sha256%3A" + sum256.Hex(), Request{Kind: BlobGet, Repository: "x", Digest: sum256}},
		{"DELETE", "/v2/a/b/c/blobs/" + sum256.String(), Request{Kind: BlobDelete, Repository: "a/b/c", Digest: sum256}},
		{"POST", "/v2/x/blobs/uploads/", Request{Kind: UploadStart, Repository: "x"}},
		{"POST", "/v2/x/blobs/uploads", Request{Kind: UploadStart, Repository: "x"}},
		{"POST", "/v2/x/blobs/uploads/?digest-algorithm=sha512", Request{Kind: UploadStart, Repository: "x"}},
		{"POST", "/v2/x/blobs/uploads/?digest=" + sum512.String(), Request{Kind: BlobPut, Repository: "x", Digest: sum512}},
		{"POST", "/v2/x/blobs/uploads/?mount=" + sum256.String() + "&from=bob/y", Request{Kind: BlobMount, Repository: "x", Digest: sum256, From: "bob/y"}},
		{"POST", "/v2/x/blobs/uploads/?mount=" + sum256.String(), Request{Kind: BlobMount, Repository: "x", Digest: sum256}},
		{"GET", "/v2/x/blobs/uploads/" + session, Request{Kind: UploadStatus, Repository: "x", Upload: session}},
		{"PATCH", "/v2/x/blobs/uploads/" + session, Request{Kind: UploadAppend, Repository: "x", Upload: session}},
		{"PUT", "/v2/x/blobs/uploads/" + session + "?digest=" + sum256.String(), Request{Kind: UploadFinish, Repository: "x", Upload: session, Digest: sum256}},
		{"DELETE", "/v2/x/blobs/uploads/" + session, Request{Kind: UploadCancel, Repository: "x", Upload: session}},
		{"GET", "/v2/x/manifests/v1.0", Request{Kind: ManifestGet, Repository: "x", Reference: registry.Reference{Tag: "v1.0"}}},
		{"HEAD", "/v2/x/manifests/" + sum256.String(), Request{Kind: ManifestHead, Repository: "x", Reference: registry.Reference{Digest: sum256}}},
		{"PUT", "/v2/x/manifests/latest?digest=" + sum512.String(), Request{Kind: ManifestPut, Repository: "x", Reference: registry.Reference{Tag: "latest", Digest: sum512}}},
		{"PUT", "/v2/x/manifests/" + sum256.String() + "?tag=a&tag=b", Request{Kind: ManifestPut, Repository: "x", Reference: registry.Reference{Digest: sum256}, Tags: []string{"a", "b"}}},
		{"DELETE", "/v2/x/manifests/a", Request{Kind: ManifestDelete, Repository: "x", Reference: registry.Reference{Tag: "a"}}},
		{"GET", "/v2/x/tags/list?last=b", Request{Kind: TagsList, Repository: "x", Last: "b"}},
		{"GET", "/v2/x/tags/list?n=0", Request{Kind: TagsList, Repository: "x", N: 0}},
		{"GET", "/v2/x/referrers/" + sum256.String() + "?artifactType=a%2Fb", Request{Kind: ReferrersList, Repository: "x", Digest: sum256, ArtifactType: "a/b"}},

		{"GET", "/v2/x/referrers/" + sum256.String() + "?n=7&last=" + sum512.String(), Request{Kind: ReferrersList, Repository: "x", Digest: sum256, N: 7, After: sum512}},

		// Repositories whose names are the words of paths.
		{"GET", "/v2/blobs/blobs/" + sum256.String(), Request{Kind: BlobGet, Repository: "blobs", Digest: sum256}},
		{"GET", "/v2/a/blobs/uploads/tags/list", Request{Kind: TagsList, Repository: "a/blobs/uploads"}},
		{"GET", "/v2/tags/list/manifests/tags", Request{Kind: ManifestGet, Repository: "tags/list", Reference: registry.Reference{Tag: "tags"}}},
		{"GET", "/v2/a/manifests/manifests/list", Request{Kind: ManifestGet, Repository: "a/manifests", Reference: registry.Reference{Tag: "list"}}},
		{"POST", "/v2/a/manifests/blobs/uploads/", Request{Kind: UploadStart, Repository: "a/manifests"}},
		{"PATCH", "/v2/uploads/blobs/uploads/" + session, Request{Kind: UploadAppend, Repository: "uploads", Upload: session}},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			got, err := parse(t, tt.method, tt.path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(tt.path, "?n=") {
				tt.want.N = noLimit
			}
			if diff := cmp.Diff(&tt.want, got, cmp.Comparer(func(a, b digest.Digest) bool { return a == b }), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func parse(t *testing.T, method, path string) (*Request, error) {
	t.Helper()
	u, err := url.ParseRequestURI(path)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(method, u)
}

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		method, path string
		want         registry.Code
	}{
		{"GET", "/", registry.NotFound},
		{"GET", "/v1/", registry.NotFound},
		{"GET", "/v2/x", registry.NotFound},
		{"GET", "/v2/x/tags", registry.NotFound},
		{"GET", "/v2/x/tags/lists", registry.NotFound},
		{"GET", "/v2/x/uploads/" + session, registry.NotFound},
		{"GET", "/v2/_catalog/x", registry.NotFound},
		{"GET", "/v2/Alice/x/tags/list", registry.NameInvalid},
		{"GET", "/v2//x/tags/list", registry.NameInvalid},
		{"GET", "/v2/tags/list", registry.NotFound},
		{"GET", "/v2/a..b/tags/list", registry.NameInvalid},
		{"GET", "/v2/a/../b/tags/list", registry.NameInvalid},
		{"GET", "/v2/a%2Fb/tags/list", registry.NameInvalid},
		{"GET", "/v2/a%2fb/tags/list", registry.NameInvalid},
		{"GET", "/v2/a%00b/tags/list", registry.NameInvalid},
		{"GET", "/v2/" + strings.Repeat("a", 256) + "/tags/list", registry.NameInvalid},
		{"GET", "/v2/x/blobs/latest", registry.DigestInvalid},
		{"GET", "/v2/x/blobs/", registry.DigestInvalid},
		{"GET", "/v2/x/blobs/sha256:abc", registry.DigestInvalid},
		{"GET", "/v2/x/blobs/md5:d41d8cd98f00b204e9800998ecf8427e", registry.DigestInvalid},
		{"GET", "/v2/x/blobs/" + strings.ToUpper(sum256.String()), registry.DigestInvalid},
		{"GET", "/v2/x/referrers/latest", registry.DigestInvalid},
		{"GET", "/v2/x/manifests/-a", registry.TagInvalid},
		{"GET", "/v2/x/manifests/", registry.TagInvalid},
		{"GET", "/v2/x/manifests/" + strings.Repeat("a", 129), registry.TagInvalid},
		{"GET", "/v2/x/referrers/" + sum256.String() + "?last=v1", registry.DigestInvalid},
		{"GET", "/v2/x/referrers/" + sum256.String() + "?n=-1", registry.PageInvalid},
		{"PUT", "/v2/x/manifests/sha256:short", registry.DigestInvalid},
		{"PUT", "/v2/x/manifests/a?digest=", registry.DigestInvalid},
		{"PUT", "/v2/x/manifests/" + sum256.String() + "?tag=a&tag=-b", registry.TagInvalid},
		{"PUT", "/v2/x/manifests/" + sum256.String() + "?tag=" + sum256.String(), registry.TagInvalid},
		{"PUT", "/v2/x/manifests/" + sum256.String() + "?" + strings.Repeat("tag=a&", maxTags+1), registry.TagInvalid},
		{"PUT", "/v2/x/blobs/uploads/" + session, registry.DigestInvalid},
		{"POST", "/v2/x/blobs/uploads/?digest=", registry.DigestInvalid},
		{"POST", "/v2/x/blobs/uploads/?mount=x&from=y", registry.DigestInvalid},
		{"GET", "/v2/x/blobs/uploads/../../../etc", registry.NotFound},
		{"GET", "/v2/x/blobs/uploads/..", registry.BlobUploadUnknown},
		{"GET", "/v2/x/blobs/uploads/" + strings.Repeat("a", 65), registry.BlobUploadUnknown},
		{"GET", "/v2/x/tags/list?n=-1", registry.PageInvalid},
		{"GET", "/v2/x/tags/list?n=many", registry.PageInvalid},
		{"GET", "/v2/x/tags/list?n=99999999999999999999", registry.PageInvalid},
		{"POST", "/v2/", registry.Unsupported},
		{"PUT", "/v2/x/blobs/" + sum256.String(), registry.Unsupported},
		{"PATCH", "/v2/x/manifests/a", registry.Unsupported},
		{"BREW", "/v2/x/tags/list", registry.Unsupported},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			got, err := parse(t, tt.method, tt.path)
			if code := registry.CodeOf(err); code != tt.want {
				t.Errorf("got %+v, %v (code %s), want code %s", got, err, code, tt.want)
			}
			wrongMethod, ok := errors.AsType[*MethodError](err)
			if ok != (tt.want == registry.Unsupported) || (ok && !slices.IsSorted(wrongMethod.Allowed)) {
				t.Errorf("method error %+v", wrongMethod)
			}
		})
	}
}

// TestEveryKindIsReached holds the table of routes and the table of handlers together.
func TestEveryKindIsReached(t *testing.T) {
	reached := map[Kind]bool{BlobPut: true, BlobMount: true} // a POST to uploadsPath, by its query
	for _, byMethod := range methods {
		for _, kind := range byMethod {
			reached[kind] = true
		}
	}
	for kind := range kinds {
		if !reached[kind] || handlers[kind] == nil {
			t.Errorf("kind %d: reached %v, handler %v", kind, reached[kind], handlers[kind] != nil)
		}
	}
}

func TestLocationsParseBack(t *testing.T) {
	q, err := parse(t, "GET", blobLocation("a/b", sum512))
	if err != nil || q.Repository != "a/b" || q.Digest != sum512 {
		t.Errorf("blob: %+v, %v", q, err)
	}
	q, err = parse(t, "PATCH", uploadLocation("a/b", session))
	if err != nil || q.Repository != "a/b" || q.Upload != session {
		t.Errorf("upload: %+v, %v", q, err)
	}
	q, err = parse(t, "GET", manifestLocation("a/b", sum256))
	if err != nil || q.Repository != "a/b" || q.Reference.Digest != sum256 {
		t.Errorf("manifest: %+v, %v", q, err)
	}
}

func TestParseRange(t *testing.T) {
	tests := []struct {
		spec    string
		size    int64
		want    byteRange
		partial bool
		bad     bool
	}{
		{"bytes=0-0", 10, byteRange{0, 1}, true, false},
		{"bytes=2-5", 10, byteRange{2, 4}, true, false},
		{"bytes=2-", 10, byteRange{2, 8}, true, false},
		{"bytes=-3", 10, byteRange{7, 3}, true, false},
		{"bytes=-30", 10, byteRange{0, 10}, true, false},
		{"bytes=8-30", 10, byteRange{8, 2}, true, false},
		{"bytes=8-99999999999999999999", 10, byteRange{8, 2}, true, false},
		{"Bytes=1-1", 10, byteRange{1, 1}, true, false},
		{"bytes=0-1,3-4", 10, byteRange{0, 10}, false, false},
		{"lines=0-1", 10, byteRange{0, 10}, false, false},
		{"bytes=10-", 10, byteRange{}, false, true},
		{"bytes=99999999999999999999-", 10, byteRange{}, false, true},
		{"bytes=5-0", 10, byteRange{}, false, true},
		{"bytes=-0", 10, byteRange{}, false, true},
		{"bytes=-", 10, byteRange{}, false, true},
		{"bytes=", 10, byteRange{}, false, true},
		{"bytes=a-b", 10, byteRange{}, false, true},
		{"bytes=--5", 10, byteRange{}, false, true},
		{"bytes=+1-5", 10, byteRange{}, false, true},
		{"bytes=0-", 0, byteRange{}, false, true},
		{"bytes=-5", 0, byteRange{}, false, true},
	}
	for _, tt := range tests {
		got, partial, err := parseRange(tt.spec, tt.size)
		if tt.bad {
			if registry.CodeOf(err) != registry.RangeInvalid {
				t.Errorf("%q of %d: %v, %v, want RangeInvalid", tt.spec, tt.size, got, err)
			}
		} else if err != nil || got != tt.want || partial != tt.partial {
			t.Errorf("%q of %d: %v, %v, %v, want %v, %v", tt.spec, tt.size, got, partial, err, tt.want, tt.partial)
		}
	}
}

func TestParseContentRange(t *testing.T) {
	for spec, want := range map[string][2]int64{"0-0": {0, 0}, "5-1023": {5, 1023}, "007-8": {7, 8}} {
		if first, last, err := parseContentRange(spec); err != nil || first != want[0] || last != want[1] {
			t.Errorf("%q: %d, %d, %v", spec, first, last, err)
		}
	}
	for _, spec := range []string{"-", "5-", "-5", "5-4", "a-b", "bytes 0-5/6", "bytes=0-5", "0-5/6", "+1-5", "1--5", "0-99999999999999999999", "0-9223372036854775807"} {
		if first, last, err := parseContentRange(spec); registry.CodeOf(err) != registry.BlobUploadInvalid {
			t.Errorf("%q: %d, %d, %v, want BlobUploadInvalid", spec, first, last, err)
		}
	}
}

// FuzzParse: no path and no method makes Parse panic, and what it lets through satisfies the grammars and parses back
// from the paths that answers are built of.
func FuzzParse(f *testing.F) {
	for _, path := range []string{"/v2/", "/v2/a/b/manifests/v1", "/v2/a/blobs/uploads/" + session + "?digest=" + sum256.String(),
		"/v2/x/blobs/uploads/?mount=" + sum256.String() + "&from=y", "/v2/a%2Fb/tags/list", "/v2/x/tags/list?n=5&last=b", "/v2/x/referrers/" + sum512.String()} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost} {
			f.Add(method, path)
		}
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return
		}
		q, err := Parse(method, u)
		if err != nil {
			if registry.CodeOf(err) == registry.Internal {
				t.Errorf("%q %q: %v has no code", method, path, err)
			}
			return
		}
		if q.Kind >= kinds {
			t.Errorf("kind %d", q.Kind)
		}
		if q.Kind != Ping && q.Kind != CatalogueList {
			if err := registry.CheckRepositoryName(q.Repository); err != nil {
				t.Errorf("%q: %v", path, err)
			}
		}
		for _, tag := range append(slices.Clone(q.Tags), q.Reference.Tag) {
			if tag == "" {
				continue
			}
			if ref, err := registry.ParseReference(tag); err != nil || ref.Tag != tag {
				t.Errorf("%q: tag %q: %v", path, tag, err)
			}
		}
		if d := q.Digest; !d.IsZero() {
			if back, err := digest.Parse(d.String()); err != nil || back != d {
				t.Errorf("%q: digest %q: %v", path, d, err)
			}
			u, err := url.ParseRequestURI(blobLocation(q.Repository, d))
			if err != nil {
				t.Fatalf("%q: %v", path, err)
			}
			if back, err := Parse(http.MethodGet, u); err != nil || back.Repository != q.Repository || back.Digest != d {
				t.Errorf("%q: %+v, %v", path, back, err)
			}
		}
		if q.Upload != "" && !validUpload(q.Upload) {
			t.Errorf("%q: upload %q", path, q.Upload)
		}
	})
}
