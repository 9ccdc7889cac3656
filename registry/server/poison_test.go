package server_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
)

// TestManifestUnderAnotherType holds that a version's blobs stay protected when its manifest was pushed before under a
// media type that the registry does not look into.
func TestManifestUnderAnotherType(t *testing.T) {
	g := startGatehouse(t)
	a, _ := artifactOf(t, archiveOf(t, algorithm("victim", "1.0.0")))
	a.manifest = bytes.Replace(a.manifest, []byte(`"mediaType":"`+imageManifest+`",`), nil, 1)
	d := digest.FromBytes(a.manifest).String()
	g.putManifest("alice", "alice/victim", d, "application/json", a.manifest).want(t, http.StatusCreated)
	g.push("alice", "alice", a).want(t, http.StatusCreated)
	layer := "/v2/alice/victim/blobs/" + digest.FromBytes(a.layer).String()
	g.do(call{as: "alice", method: http.MethodDelete, path: layer}).want(t, http.StatusMethodNotAllowed)
	g.do(call{as: "bob", method: http.MethodGet, path: layer}).want(t, http.StatusOK)
	g.putManifest("alice", "alice/victim", d, "application/json", a.manifest).want(t, http.StatusConflict)
}

// TestPackAmongOtherTags holds that a repository with another artifact under a tag does not become a pack's.
func TestPackAmongOtherTags(t *testing.T) {
	g := startGatehouse(t)
	other := []byte(`{"any":"thing"}`)
	g.putManifest("alice", "alice/shadow", "latest", "application/vnd.example+json", other).want(t, http.StatusCreated)
	archive := archiveOf(t, algorithm("shadow", "1.0.0"))
	g.publish("alice", archive).want(t, http.StatusConflict)
	g.do(call{as: "alice", method: http.MethodDelete, path: "/v2/alice/shadow/manifests/latest"}).want(t, http.StatusAccepted)
	g.publish("alice", archive).want(t, http.StatusOK)
}
