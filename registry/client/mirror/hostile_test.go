package mirror_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client/mirror"
)

// A list that leads back to itself, or on and on, ends.
func TestEndlessLists(t *testing.T) {
	link := func(w http.ResponseWriter, target string) { w.Header().Set("Link", "<"+target+`>; rel="next"`) }
	var page atomic.Int64
	for name, answers := range map[string]map[string]http.HandlerFunc{
		"the catalogue is its own next page": {"/v2/_catalog": func(w http.ResponseWriter, r *http.Request) {
			link(w, "/v2/_catalog?n=1000&last=x")
			text(`{"repositories":[]}`)(w, r)
		}},
		"two pages of tags follow each other": {"/v2/team/app/tags/list": func(w http.ResponseWriter, r *http.Request) {
			next := "/v2/team/app/tags/list?page=a"
			if r.URL.Query().Get("page") == "a" {
				next = "/v2/team/app/tags/list?page=b"
			}
			link(w, next)
			text(`{"tags":[]}`)(w, r)
		}, "/v2/_catalog": text(`{"repositories":["team/app"]}`)},
		"empty pages without end": {"/v2/team/app/tags/list": func(w http.ResponseWriter, r *http.Request) {
			link(w, fmt.Sprintf("/v2/team/app/tags/list?page=%d", page.Add(1)))
			text(`{"tags":[]}`)(w, r)
		}, "/v2/_catalog": text(`{"repositories":["team/app"]}`)},
		"the next page is not of the protocol": {"/v2/_catalog": func(w http.ResponseWriter, r *http.Request) {
			link(w, "/etc/passwd")
			text(`{"repositories":[]}`)(w, r)
		}},
		"a page is larger than any": {"/v2/_catalog": func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte(`{"repositories":["`))
			for line := strings.Repeat("x", 1<<20); ; {
				if _, err := w.Write([]byte(line)); err != nil {
					return
				}
			}
		}},
		"a repository's name leads out": {"/v2/_catalog": text(`{"repositories":["../../etc"]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := mirror.Run(t.Context(), hostile(t, answers), mirror.Place{Dir: t.TempDir()}, quick())
			if err == nil && len(report.Failed) == 0 {
				t.Errorf("the copy ended as if all were well: %+v", report)
			}
		})
	}
}

// A source without end of referrers that refer to each other is a source of bounded size.
func TestEndlessReferrers(t *testing.T) {
	var n atomic.Int64
	answers := map[string]http.HandlerFunc{
		"/v2/_catalog":              text(`{"repositories":["team/app"]}`),
		"/v2/team/app/tags/list":    text(`{"tags":["v1"]}`),
		"/v2/team/app/manifests/v1": text(`{}`),
		"/v2/team/app/referrers/": func(w http.ResponseWriter, r *http.Request) {
			next := n.Add(1)
			w.Header().Set("Link", fmt.Sprintf(`</v2/team/app/referrers/x?page=%d>; rel="next"`, next))
			entries := make([]string, 20_000)
			for i := range entries {
				entries[i] = fmt.Sprintf(`{"digest":"sha256:%x","size":2}`, sha256.Sum256(fmt.Append(nil, next, i)))
			}
			text(`{"manifests":[%s]}`, strings.Join(entries, ","))(w, r)
		},
	}
	report := run(t, hostile(t, answers), mirror.Place{Dir: t.TempDir()}, quick())
	if len(report.Failed) != 1 || report.Failed[0].Code != registry.TooLarge {
		t.Errorf("report %+v, want one failure, too large", report)
	}
}

// lie gives a source with one image whose parts answers may replace.
func lie(t *testing.T, replace func(part string, w http.ResponseWriter, r *http.Request) bool) (*gatehouse, mirror.Place) {
	a := start(t)
	image := a.image("team/app", "v1", "true")
	layer := digest.FromBytes([]byte("layer true")).String()
	return a, a.place("team/app", front(t, a, func(w http.ResponseWriter, r *http.Request) bool {
		part := ""
		switch {
		case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, layer):
			part = "layer"
		case r.Method == http.MethodGet && (strings.HasSuffix(r.URL.Path, "/manifests/v1") || strings.HasSuffix(r.URL.Path, image["digest"].(string))):
			part = "manifest"
		}
		return part != "" && replace(part, w, r)
	}))
}

// Bytes that are not those of their digest never become a tag, and the layer never a blob, of the destination.
func TestWrongBytes(t *testing.T) {
	for name, replace := range map[string]func(string, http.ResponseWriter, *http.Request) bool{
		"other bytes": func(part string, w http.ResponseWriter, r *http.Request) bool {
			if part == "layer" {
				text("layer lies")(w, r)
			}
			return part == "layer"
		},
		"more bytes": func(part string, w http.ResponseWriter, r *http.Request) bool {
			if part == "layer" {
				text("layer true and more")(w, r)
			}
			return part == "layer"
		},
		"fewer bytes": func(part string, w http.ResponseWriter, r *http.Request) bool {
			if part == "layer" {
				text("layer")(w, r)
			}
			return part == "layer"
		},
		"cut off": func(part string, w http.ResponseWriter, r *http.Request) bool {
			if part == "layer" {
				w.Header().Set("Content-Length", "10")
				text("lay")(w, r)
			}
			return part == "layer"
		},
		"a manifest of another digest": func(part string, w http.ResponseWriter, r *http.Request) bool {
			if part == "manifest" {
				w.Header().Set("Docker-Content-Digest", digest.FromBytes(nil).String())
				text(`{"schemaVersion":2}`)(w, r)
			}
			return part == "manifest"
		},
		"a manifest beyond the limit": func(part string, w http.ResponseWriter, r *http.Request) bool {
			if part == "manifest" {
				text("%s", strings.Repeat(" ", 5<<20))(w, r)
			}
			return part == "manifest"
		},
		"a manifest that is no document": func(part string, w http.ResponseWriter, r *http.Request) bool {
			if part == "manifest" {
				w.Header().Set("Content-Type", ociManifest)
				text("<html>")(w, r)
			}
			return part == "manifest"
		},
		"a descriptor of negative size": func(part string, w http.ResponseWriter, r *http.Request) bool {
			if part == "manifest" {
				w.Header().Set("Content-Type", ociManifest)
				text(`{"config":{"digest":"%s","size":-1}}`, digest.FromBytes(nil))(w, r)
			}
			return part == "manifest"
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, source := lie(t, replace)
			b := start(t)
			opt := quick()
			opt.Attempts = 2
			report := run(t, source, b.place("team/app"), opt)
			if len(report.Failed) != 1 || report.Tags != 0 {
				t.Errorf("report %+v, want one failure", report)
			}
			b.do(http.MethodHead, "/v2/team/app/manifests/v1", "", nil, http.StatusNotFound)
			b.do(http.MethodHead, "/v2/team/app/blobs/"+digest.FromBytes([]byte("layer lies")).String(), "", nil, http.StatusNotFound)
		})
	}
}

// A source that falls silent is given up, in its headers as in its bytes.
func TestSilentSource(t *testing.T) {
	for _, where := range []string{"layer", "manifest"} {
		t.Run(where, func(t *testing.T) {
			release := make(chan struct{})
			_, source := lie(t, func(part string, w http.ResponseWriter, r *http.Request) bool {
				if part != where {
					return false
				}
				if part == "layer" {
					w.Header().Set("Content-Length", "10")
					text("lay")(w, r)
					w.(http.Flusher).Flush()
				}
				select {
				case <-release:
				case <-r.Context().Done():
				}
				return true
			})
			defer close(release)
			opt := quick()
			opt.Attempts, opt.Stall = 2, 50*time.Millisecond
			report := run(t, source, start(t).place("team/app"), opt)
			if len(report.Failed) != 1 {
				t.Errorf("report %+v, want one failure", report)
			}
		})
	}
}

// A server that is busy is asked again when it says, and not for ever.
func TestBusyServers(t *testing.T) {
	a, b := start(t), start(t)
	want := fill(a)
	var mu sync.Mutex
	refused := map[string]bool{}
	busy := func(status int) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			path, _, _ := strings.Cut(r.URL.Path, "/uploads/") // each upload has an address of its own
			key := r.Host + r.Method + path
			if refused[key] {
				return false
			}
			refused[key] = true
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(status)
			return true
		}
	}
	opt := quick()
	clean(t, run(t, a.place("", front(t, a, busy(http.StatusTooManyRequests))), b.place("", front(t, b, busy(http.StatusServiceUnavailable))), opt))
	for repository, references := range want {
		for _, reference := range references {
			same(t, a, b, repository, reference)
		}
	}

	var asked atomic.Int64
	never := front(t, a, func(w http.ResponseWriter, r *http.Request) bool {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	if _, err := mirror.Run(t.Context(), a.place("", never), b.place(""), opt); registry.CodeOf(err) != registry.Unavailable {
		t.Errorf("a source that is always busy: %v, want Unavailable", err)
	}
	if n := asked.Load(); n != 6 {
		t.Errorf("a source that is always busy was asked %d times, want 6", n)
	}
	late := front(t, a, func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Retry-After", "86400")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	if _, err := mirror.Run(t.Context(), a.place("", late), b.place(""), opt); registry.CodeOf(err) != registry.TooManyRequests {
		t.Errorf("a source that asks to wait for a day: %v, want TooManyRequests at once", err)
	}
}

// Credentials stay at the registry: neither a download's redirect nor an upload's address takes them elsewhere.
func TestCredentialsStay(t *testing.T) {
	var leaked atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			leaked.Add(1)
		}
		switch r.Method {
		case http.MethodGet:
			text("layer true")(w, r)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	}))
	defer elsewhere.Close()
	var redirected atomic.Int64
	_, source := lie(t, func(part string, w http.ResponseWriter, r *http.Request) bool {
		if part == "layer" {
			redirected.Add(1)
			http.Redirect(w, r, elsewhere.URL+"/signed", http.StatusTemporaryRedirect)
		}
		return part == "layer"
	})
	b := start(t)
	clean(t, run(t, source, b.place("team/app"), quick()))
	b.do(http.MethodHead, "/v2/team/app/manifests/v1", "", nil, http.StatusOK)
	var sent atomic.Int64
	away := front(t, b, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/blobs/uploads/") || r.Header.Get("Authorization") == "" {
			return false
		}
		sent.Add(1)
		w.Header().Set("Location", elsewhere.URL+"/upload")
		w.WriteHeader(http.StatusAccepted)
		return true
	})
	report := run(t, source, b.place("team/second", away), quick())
	if len(report.Failed)+len(report.Refused) != 1 {
		t.Errorf("report %+v: the blobs went elsewhere, so the manifest can't be stored", report)
	}
	if redirected.Load() == 0 || sent.Load() == 0 || leaked.Load() != 0 {
		t.Errorf("%d redirects, %d uploads elsewhere, %d with credentials; want some, some, none", redirected.Load(), sent.Load(), leaked.Load())
	}
}

// Who is not let in is told so once.
func TestNotSignedIn(t *testing.T) {
	a, b := start(t), start(t)
	fill(a)
	to := b.place("")
	to.Credential = auth.StaticCredential(to.Base.Host, auth.Credential{Username: "admin", Password: "wrong"})
	if _, err := mirror.Run(t.Context(), a.place(""), to, quick()); registry.CodeOf(err) != registry.Unauthorized {
		t.Errorf("a wrong password: %v, want Unauthorized", err)
	}
	to.Credential = nil
	if _, err := mirror.Run(t.Context(), a.place(""), to, quick()); registry.CodeOf(err) != registry.Unauthorized {
		t.Errorf("no password: %v, want Unauthorized", err)
	}
}

func TestParsePlace(t *testing.T) {
	for in, want := range map[string]string{
		"registry.example.org":         "https://registry.example.org",
		"registry.example.org:5000/a":  "registry.example.org:5000/a",
		"http://registry.example.org/": "http://registry.example.org",
		"127.0.0.1:5000":               "http://127.0.0.1:5000",
		"[::1]:5000":                   "http://[::1]:5000",
		"localhost/a/b/c":              "localhost/a/b/c",
		"docker.io/library/alpine":     "registry-1.docker.io/library/alpine",
		"oci:./there":                  "oci:there",
	} {
		if p, err := mirror.ParsePlace(in, false); err != nil || p.String() != want {
			t.Errorf("ParsePlace(%q) = %s, %v; want %s", in, p, err, want)
		}
	}
	for _, in := range []string{"", "oci:", "ftp://host/x", "host/UPPER", "user:secret@host/a", "http://host?x", "host/a/../b", "host/a:tag"} {
		if p, err := mirror.ParsePlace(in, false); err == nil {
			t.Errorf("ParsePlace(%q) = %s, want an error", in, p)
		}
	}
}

// A repository that is closed to us, or that only the catalogue knows, keeps nothing else from being copied.
func TestClosedRepositories(t *testing.T) {
	a, b := start(t), start(t)
	a.image("team/app", "v1", "fine")
	for tag := range 20 {
		a.image("team/shut", fmt.Sprint("v", tag), fmt.Sprint("shut ", tag))
	}
	a.image("team/unreadable", "v1", "unreadable")
	source := front(t, a, func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.URL.Path == "/v2/_catalog":
			text(`{"repositories":["team/app","team/empty","team/shut","team/unreadable"]}`)(w, r)
		case strings.HasPrefix(r.URL.Path, "/v2/team/unreadable/"):
			w.WriteHeader(http.StatusUnauthorized)
		default:
			return false
		}
		return true
	})
	var asked atomic.Int64
	target := front(t, b, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.Path, "/v2/team/shut/") {
			return false
		}
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
		text(`{"errors":[{"code":"DENIED","message":"not here"}]}`)(w, r)
		return true
	})
	opt := quick()
	opt.Jobs = 1
	report := run(t, a.place("", source), b.place("", target), opt)
	same(t, a, b, "team/app", "v1")
	if len(report.Sparse) != 1 || report.Sparse[0].Repository != "team/empty" {
		t.Errorf("sparse: %+v, want team/empty", report.Sparse)
	}
	if len(report.Failed) != 1 || report.Failed[0].Repository != "team/unreadable" || report.Failed[0].Code != registry.Unauthorized {
		t.Errorf("failed: %+v, want team/unreadable", report.Failed)
	}
	if len(report.Refused) == 0 || len(report.Refused) > 3 || report.Refused[0].Repository != "team/shut" || asked.Load() > 6 {
		t.Errorf("refused: %+v after %d requests, want team/shut, and few requests", report.Refused, asked.Load())
	}
}
