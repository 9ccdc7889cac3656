package mirror_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/client/mirror"
	"github.com/gatehouse-registry/gatehouse/registry/server/servertest"
)

// gatehouse is a server that runs over real stores, seen as a client sees it.
type gatehouse struct {
	t     *testing.T
	url   string
	token string
}

func start(t *testing.T) *gatehouse {
	t.Helper()
	s := servertest.Start(t)
	return &gatehouse{t: t, url: s.URL, token: s.Token}
}

// do makes a request as the administrator and gives the body of an answer with one of the statuses.
func (g *gatehouse) do(method, path, contentType string, body []byte, want ...int) (*http.Response, []byte) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.SetBasicAuth("admin", g.token)
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "*/*")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, status := range want {
		if res.StatusCode == status {
			return res, answer
		}
	}
	g.t.Fatalf("%s %s: %s %s, want %v", method, path, res.Status, answer, want)
	return nil, nil
}

// desc is a descriptor in a manifest that a test makes.
type desc map[string]any

// blob stores a blob and describes it.
func (g *gatehouse) blob(repository, mediaType string, content []byte) desc {
	g.t.Helper()
	d := digest.FromBytes(content)
	g.do(http.MethodPost, "/v2/"+repository+"/blobs/uploads/?digest="+d.String(), "application/octet-stream", content, http.StatusCreated)
	return desc{"mediaType": mediaType, "digest": d.String(), "size": len(content)}
}

// manifest stores a document under a tag, or by digest when tag is "", and describes it.
func (g *gatehouse) manifest(repository, tag, mediaType string, document any) desc {
	g.t.Helper()
	content, raw := document.([]byte)
	if !raw {
		var err error
		if content, err = json.MarshalIndent(document, "", "   "); err != nil { // an unusual form: bytes must stay
			g.t.Fatal(err)
		}
	}
	d := digest.FromBytes(content)
	reference := tag
	if tag == "" {
		reference = d.String()
	}
	g.do(http.MethodPut, "/v2/"+repository+"/manifests/"+reference, mediaType, content, http.StatusCreated)
	return desc{"mediaType": mediaType, "digest": d.String(), "size": len(content)}
}

// Media types.
const (
	ociManifest = "application/vnd.oci.image.manifest.v1+json"
	ociIndex    = "application/vnd.oci.image.index.v1+json"
	dockerImage = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList  = "application/vnd.docker.distribution.manifest.list.v2+json"
	layerType   = "application/vnd.oci.image.layer.v1.tar+gzip"
	configType  = "application/vnd.oci.image.config.v1+json"
)

// image stores an image of one layer; extra fields go into its manifest.
func (g *gatehouse) image(repository, tag, content string, extra ...func(map[string]any)) desc {
	g.t.Helper()
	m := map[string]any{"schemaVersion": 2, "mediaType": ociManifest,
		"config": g.blob(repository, configType, []byte(`{"of":"`+content+`"}`)), "layers": []desc{g.blob(repository, layerType, []byte("layer "+content))}}
	for _, e := range extra {
		e(m)
	}
	return g.manifest(repository, tag, ociManifest, m)
}

func subject(d desc) func(map[string]any) {
	return func(m map[string]any) {
		m["subject"], m["artifactType"] = d, "application/vnd.test.note"
	}
}

// place is the server as a side of a copy, at another address when via is set.
func (g *gatehouse) place(repository string, via ...string) mirror.Place {
	g.t.Helper()
	address := g.url
	if len(via) > 0 {
		address = via[0]
	}
	p, err := mirror.ParsePlace(address+"/"+repository, false)
	if err != nil {
		g.t.Fatal(err)
	}
	p.Credential = auth.StaticCredential(p.Base.Host, auth.Credential{Username: "admin", Password: g.token})
	return p
}

// quick are options for tests: what may pass is tried again soon.
func quick() mirror.Options {
	return mirror.Options{Pause: time.Millisecond, Stall: 20 * time.Second}
}

// run copies and fails the test on an error of the whole run.
func run(t *testing.T, from, to mirror.Place, opt mirror.Options) mirror.Report {
	t.Helper()
	report, err := mirror.Run(t.Context(), from, to, opt)
	if err != nil {
		t.Fatalf("%v\n%+v", err, report)
	}
	return report
}

// clean fails the test when a report names something that was not copied.
func clean(t *testing.T, r mirror.Report) {
	t.Helper()
	for _, p := range [][]mirror.Problem{r.Refused, r.Conflicts, r.Failed, r.Sparse} {
		for _, one := range p {
			t.Errorf("not copied: %s (%s)", one, one.Code)
		}
	}
}

// same fails the test unless both servers give the same bytes with the same type under a reference.
func same(t *testing.T, a, b *gatehouse, repository, reference string) {
	t.Helper()
	path := "/v2/" + repository + "/manifests/" + reference
	resA, bodyA := a.do(http.MethodGet, path, "", nil, http.StatusOK)
	resB, bodyB := b.do(http.MethodGet, path, "", nil, http.StatusOK)
	if !bytes.Equal(bodyA, bodyB) || resA.Header.Get("Content-Type") != resB.Header.Get("Content-Type") {
		t.Errorf("%s:%s differs: %s %q, %s %q", repository, reference, resA.Header.Get("Content-Type"), bodyA, resB.Header.Get("Content-Type"), bodyB)
	}
}

// front stands before a server and may answer in its place: answer gives true when it did.
func front(t *testing.T, g *gatehouse, answer func(w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	target, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// hostile is a registry that answers as it likes.
func hostile(t *testing.T, answers map[string]http.HandlerFunc) mirror.Place {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for prefix, answer := range answers {
			if strings.HasPrefix(r.URL.Path, prefix) {
				answer(w, r)
				return
			}
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	p, err := mirror.ParsePlace(s.URL, false)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func text(format string, args ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, format, args...) }
}
