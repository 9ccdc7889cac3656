package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/blobfault"
)

// TestRedirectToStore fetches blobs from a registry over S3 that redirects large downloads, and from one that can't.
func TestRedirectToStore(t *testing.T) {
	const over = 40_000
	for name, open := range map[string]func(*testing.T, *blobfault.Plan) failingStore{"S3": openFailingBucket, "folder": openFailingFolder} {
		t.Run(name, func(t *testing.T) {
			g := startGatehouse(t, func(s *setup) {
				s.config.RedirectOver = over
				s.change = func(d *registry.Deps) { d.Blobs = open(t, &blobfault.Plan{}).BlobStore }
			})
			files := recipePack(t, "large")
			files["notes.txt"] = incompressible()
			a, verdict := artifactOf(t, archiveOf(t, files))
			if status := g.pushed("alice", "alice", a); !verdict.Allowed || status != http.StatusCreated {
				t.Fatalf("status %d, %v", status, verdict.Violations)
			}
			id := "alice/" + a.repository
			blob := func(b []byte) string { return "/v2/" + id + "/blobs/" + digest.FromBytes(b).String() }
			if len(a.layer) <= over || len(a.config) > over {
				t.Fatalf("the layer has %d bytes, the config %d", len(a.layer), len(a.config))
			}
			large := g.get("bob", blob(a.layer))
			if name == "folder" {
				large.want(t, http.StatusOK)
				return
			}
			location := large.want(t, http.StatusTemporaryRedirect).header.Get("Location")
			if got := fetched(t, location); got != string(a.layer) {
				t.Errorf("the store's address gives %d bytes, want the layer's %d", len(got), len(a.layer))
			}
			g.get("bob", blob(a.config)).want(t, http.StatusOK)
			known := map[string]string{"If-None-Match": `"` + digest.FromBytes(a.layer).String() + `"`}
			if r := g.do(call{as: "bob", method: http.MethodGet, path: blob(a.layer), header: known}); r.status != http.StatusNotModified {
				t.Errorf("a blob that the client says it has: status %d, want 304", r.status)
			}
			g.do(call{as: "bob", method: http.MethodHead, path: blob(a.layer)}).want(t, http.StatusOK)
			if got := g.get("bob", "/api/plugins/"+id+"/package").want(t, http.StatusOK).body; string(got) != string(a.layer) {
				t.Error("the package of the REST interface is not the layer")
			}
			for who, r := range map[string]reply{
				"nobody":                  g.get("", blob(a.layer)),
				"of another repository":   g.get("bob", strings.Replace(blob(a.layer), id, "alice/other", 1)),
				"of a digest that is not": g.get("bob", blob([]byte("absent"))),
			} {
				if r.status < 400 || r.header.Get("Location") != "" {
					t.Errorf("%s: status %d, location %q", who, r.status, r.header.Get("Location"))
				}
			}
		})
	}
}

// fetched is what an address gives to who has no credentials.
func fetched(t *testing.T, address string) string {
	t.Helper()
	r, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatal(fmt.Errorf("status %d: %w", r.StatusCode, err))
	}
	return string(body)
}
