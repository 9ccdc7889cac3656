package server

import (
	"net/http"
	"testing"
)

func TestRemote(t *testing.T) {
	trusted, err := newProxies([]string{"10.0.0.0/8", "192.0.2.7", "2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		peer   string
		header http.Header
		want   string
	}{
		"nobody trusted between":   {"203.0.113.9:1", nil, "203.0.113.9"},
		"a stranger's word":        {"203.0.113.9:1", http.Header{"X-Forwarded-For": {"198.51.100.1"}}, "203.0.113.9"},
		"a proxy's word":           {"10.1.2.3:1", http.Header{"X-Forwarded-For": {"198.51.100.1"}}, "198.51.100.1"},
		"one machine":              {"192.0.2.7:1", http.Header{"X-Forwarded-For": {"198.51.100.1"}}, "198.51.100.1"},
		"not its neighbour":        {"192.0.2.8:1", http.Header{"X-Forwarded-For": {"198.51.100.1"}}, "192.0.2.8"},
		"what the client wrote":    {"10.1.2.3:1", http.Header{"X-Forwarded-For": {"127.0.0.1, 198.51.100.1"}}, "198.51.100.1"},
		"what it wrote before":     {"10.1.2.3:1", http.Header{"X-Forwarded-For": {"127.0.0.1", "198.51.100.1"}}, "198.51.100.1"},
		"two proxies":              {"10.1.2.3:1", http.Header{"X-Forwarded-For": {"1.1.1.1, 198.51.100.1, 10.9.9.9"}}, "198.51.100.1"},
		"proxies alone":            {"10.1.2.3:1", http.Header{"X-Forwarded-For": {"10.7.7.7, 10.9.9.9"}}, "10.7.7.7"},
		"no word":                  {"10.1.2.3:1", nil, "10.1.2.3"},
		"nonsense":                 {"10.1.2.3:1", http.Header{"X-Forwarded-For": {"198.51.100.1, nonsense"}}, "10.1.2.3"},
		"nonsense behind a proxy":  {"10.1.2.3:1", http.Header{"X-Forwarded-For": {"nonsense, 10.9.9.9"}}, "10.9.9.9"},
		"mapped":                   {"[::ffff:10.1.2.3]:1", http.Header{"X-Forwarded-For": {"::ffff:198.51.100.1"}}, "198.51.100.1"},
		"forwarded":                {"10.1.2.3:1", http.Header{"Forwarded": {"for=1.1.1.1, proto=https;for=198.51.100.1;by=x"}}, "198.51.100.1"},
		"forwarded with a port":    {"10.1.2.3:1", http.Header{"Forwarded": {`For="198.51.100.1:4711"`}}, "198.51.100.1"},
		"forwarded, six":           {"[2001:db8::1]:1", http.Header{"Forwarded": {`for="[2001:db9::17]:4711"`}}, "2001:db9::17"},
		"forwarded, six, no port":  {"[2001:db8::1]:1", http.Header{"Forwarded": {`for="[2001:db9::17]"`}}, "2001:db9::17"},
		"forwarded, hidden":        {"10.1.2.3:1", http.Header{"Forwarded": {"for=_secret"}}, "10.1.2.3"},
		"forwarded, empty element": {"10.1.2.3:1", http.Header{"Forwarded": {"for=1.1.1.1,"}}, "10.1.2.3"},
		"no address at all":        {"pipe", http.Header{"X-Forwarded-For": {"198.51.100.1"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &http.Request{RemoteAddr: tc.peer, Header: tc.header}
			if got := remoteText(trusted.remote(r)); got != tc.want {
				t.Errorf("remote %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzForwarded(f *testing.F) {
	trusted, err := newProxies([]string{"10.0.0.0/8"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("1.1.1.1, 10.2.3.4", `for="[::1]:3";by=x`)
	f.Add(",,", "for=,for")
	f.Fuzz(func(t *testing.T, list, forwarded string) {
		for _, h := range []http.Header{{"X-Forwarded-For": {list}}, {"Forwarded": {forwarded}}} {
			if ip := trusted.remote(&http.Request{RemoteAddr: "10.1.2.3:1", Header: h}); !ip.IsValid() || ip.Zone() != "" {
				t.Errorf("%v gives the address %v", h, ip)
			}
		}
	})
}

func TestClassOf(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		want         class
		transfer     bool
	}{
		{"GET", "/v2/", classPing, false}, {"GET", "/v2", classPing, false}, {"GET", "/v2/token", classToken, false},
		{"GET", "/v2/_catalog", classCatalogue, false}, {"GET", "/v2/a/b/blobs/sha256:x", classBlob, true}, {"HEAD", "/v2/a/b/blobs/sha256:x", classBlob, false},
		{"POST", "/v2/a/b/blobs/uploads/", classUpload, true}, {"PATCH", "/v2/a/b/blobs/uploads/1", classUpload, true}, {"GET", "/v2/a/b/blobs/uploads/1", classUpload, false},
		{"PUT", "/v2/a/b/manifests/v1", classManifest, false}, {"GET", "/v2/a/b/tags/list", classTags, false}, {"GET", "/v2/a/b/referrers/x", classReferrers, false},
		{"GET", "/v2/a", classOther, false}, {"GET", "/v2//", classOther, false}, {"GET", "/v2/a/b/c/d", classOther, false},
		{"POST", "/api/plugins/publish", classPublish, true}, {"GET", "/api/plugins/a/b/package", classPackage, true}, {"POST", "/api/jobs", classSubmission, false},
		{"PUT", "/api/submissions/uploads/1", classSubmission, true}, {"PATCH", "/api/submissions/uploads/1", classSubmission, true},
		{"HEAD", "/api/submissions/uploads/1", classSubmission, false}, {"GET", "/api/jobs/1/package", classSubmission, true}, {"GET", "/api/whoami", classAPI, false}, {"GET", "/readyz", classHealth, false},
		{"GET", "/metrics", classScrape, false}, {"GET", "/", classOther, false}, {"GET", "", classOther, false}, {"GET", "/v2x", classOther, false},
	} {
		if got, transfer := classOf(tc.method, tc.path); got != tc.want || transfer != tc.transfer {
			t.Errorf("%s %s: %s, transfer %v; want %s, %v", tc.method, tc.path, got, transfer, tc.want, tc.transfer)
		}
	}
}
