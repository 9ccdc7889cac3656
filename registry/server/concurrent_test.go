package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// publishers is how many publish one version at the same time.
const publishers = 64

// rivals makes artifacts of one version, with contents of their own or all with one.
func rivals(tb testing.TB, same bool) []artifact {
	tb.Helper()
	all := make([]artifact, publishers)
	for i := range all {
		if same && i > 0 {
			all[i] = all[0]
			continue
		}
		files := with(algorithm("demo", "1.0.0"), "main.py", fmt.Sprintf("def install():\n    return %d\n", i))
		all[i], _ = artifactOf(tb, archiveOf(tb, files))
	}
	return all
}

// together makes one request for each artifact, all at the same time, and gives the statuses.
func (g *gatehouse) together(all []artifact, request func(artifact) call) []int {
	g.tb.Helper()
	statuses, errs := make([]int, len(all)), make([]error, len(all))
	begin := make(chan struct{})
	var wg sync.WaitGroup
	for i, a := range all {
		c := request(a)
		wg.Go(func() {
			<-begin
			var r reply
			r, errs[i] = g.try(c)
			statuses[i] = r.status
		})
	}
	close(begin)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			g.tb.Fatal(err)
		}
	}
	return statuses
}

// rivalRoutes are the two ways to publish and what the winner is answered.
var rivalRoutes = map[string]struct {
	created int
	publish func(*gatehouse, []artifact) []int
}{
	"oci": {http.StatusCreated, func(g *gatehouse, all []artifact) []int {
		for i, a := range all {
			if i == 0 || !bytes.Equal(a.layer, all[0].layer) {
				g.pushBlob("alice", "alice/demo", a.layer)
				g.pushBlob("alice", "alice/demo", a.config)
			}
		}
		return g.together(all, func(a artifact) call {
			return call{as: "alice", method: http.MethodPut, path: "/v2/alice/demo/manifests/1.0.0", body: a.manifest,
				header: map[string]string{"Content-Type": imageManifest}}
		})
	}},
	"rest": {http.StatusOK, func(g *gatehouse, all []artifact) []int {
		return g.together(all, func(a artifact) call {
			return call{as: "alice", method: http.MethodPost, path: "/api/plugins/publish", body: a.layer,
				header: map[string]string{"Content-Type": "application/gzip"}}
		})
	}},
}

// count tells how often each status came.
func count(statuses []int) map[int]int {
	counts := map[int]int{}
	for _, s := range statuses {
		counts[s]++
	}
	return counts
}

// holdsOnly checks that the registry has one version of the pack, that it is the artifact's, and that its bytes are
// there by every way to them.
func (g *gatehouse) holdsOnly(want artifact) {
	g.tb.Helper()
	var tags struct{ Tags []string }
	g.get("alice", "/v2/alice/demo/tags/list").want(g.tb, http.StatusOK).into(g.tb, &tags)
	if !slices.Equal(tags.Tags, []string{"1.0.0"}) {
		g.tb.Errorf("tags: %q", tags.Tags)
	}
	var info wire.Plugin
	g.get("alice", "/api/plugins/alice/demo").want(g.tb, http.StatusOK).into(g.tb, &info)
	if len(info.Versions) != 1 || info.TreeDigest != want.tree.String() || info.Digest != want.content.String() {
		g.tb.Errorf("the registry has %d versions, content %s, tree %s; want one, %s, %s", len(info.Versions), info.Digest, info.TreeDigest, want.content, want.tree)
	}
	manifest := g.get("alice", "/v2/alice/demo/manifests/1.0.0").want(g.tb, http.StatusOK).body
	if got := descriptor(manifest).Digest.String(); got != info.ManifestDigest {
		g.tb.Errorf("the tag leads to %s, the version has %s", got, info.ManifestDigest)
	}
	parsed, report := pack.ParseArtifact(manifest, rule.Policy{})
	if parsed == nil {
		g.tb.Fatalf("manifest: %v", report.Violations)
	}
	layer := g.get("alice", "/v2/alice/demo/blobs/"+parsed.Layer.Digest.String()).want(g.tb, http.StatusOK).body
	if !bytes.Equal(layer, g.get("alice", "/api/plugins/alice/demo/package").want(g.tb, http.StatusOK).body) {
		g.tb.Error("the two routes give different archives")
	}
	checked, report, err := archive.Check(archive.FromBytes(layer), archive.Options{})
	if err != nil || checked == nil {
		g.tb.Fatal(err, report.Violations)
	}
	defer checked.Close()
	if checked.Listing().Tree != want.tree {
		g.tb.Errorf("the archive has tree %s, want %s", checked.Listing().Tree, want.tree)
	}
	config := g.get("alice", "/v2/alice/demo/blobs/"+parsed.Config.Digest.String()).want(g.tb, http.StatusOK).body
	if !bytes.Equal(config, want.config) {
		g.tb.Error("the config is another one's")
	}
}

// Of many who publish one version with different contents exactly one wins, and its bytes are what everybody reads.
func TestConcurrentPublishOfDifferentContents(t *testing.T) {
	for name, route := range rivalRoutes {
		t.Run(name, func(t *testing.T) {
			g, all := startGatehouse(t), rivals(t, false)
			statuses := route.publish(g, all)
			if n := count(statuses); n[route.created] != 1 || n[http.StatusConflict] != publishers-1 {
				t.Fatalf("statuses %v, want %d once and 409 %d times", n, route.created, publishers-1)
			}
			g.holdsOnly(all[slices.Index(statuses, route.created)])
		})
	}
}

// The same content once more is a conflict over REST. Over OCI the same manifest under the same tag changes nothing and
// is no conflict: a client that lost the first answer may ask again.
func TestConcurrentPublishOfOneContent(t *testing.T) {
	for name, route := range rivalRoutes {
		t.Run(name, func(t *testing.T) {
			g, all := startGatehouse(t), rivals(t, true)
			want := map[int]int{http.StatusOK: 1, http.StatusConflict: publishers - 1}
			if name == "oci" {
				want = map[int]int{http.StatusCreated: publishers}
			}
			if got := count(route.publish(g, all)); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("statuses %v, want %v", got, want)
			}
			g.holdsOnly(all[0])
			var audit struct{ Rows []json.RawMessage }
			g.get("admin", "/api/audit").want(t, http.StatusOK).into(t, &audit)
			published := 0
			for _, row := range audit.Rows {
				if bytes.Contains(row, []byte(`"pack.publish"`)) && bytes.Contains(row, []byte(`alice/demo@1.0.0`)) {
					published++
				}
			}
			// The refusals of one account in one minute are written as that many rows, and counted beyond.
			const written = 20
			if want := map[string]int{"oci": 1, "rest": 1 + written}[name]; published != want {
				t.Errorf("%d audit rows about the version, want %d", published, want)
			}
		})
	}
}
