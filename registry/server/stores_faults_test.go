package server_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/internal/testservice"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/blobfault"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/s3"
)

// Requests to a store that fails are sent again at once.
func init() { minio.DefaultRetryUnit = time.Millisecond }

// failingStore is a real blob store whose calls fail as the plan says.
type failingStore struct {
	registry.BlobStore
	plan *blobfault.Plan
	left func() []string // what lies there besides blobs
}

// openFailing are the stores whose every call is failed, and the ways in which that happens.
var openFailing = map[string]struct {
	open  func(t *testing.T, plan *blobfault.Plan) failingStore
	kinds []blobfault.Kind
}{
	"folder": {openFailingFolder, blobfault.DiskKinds},
	"S3":     {openFailingBucket, []blobfault.Kind{blobfault.Reset, blobfault.LostAnswer, blobfault.ErrorIn200, blobfault.Full, blobfault.CutBody}},
}

func openFailingFolder(t *testing.T, plan *blobfault.Plan) failingStore {
	t.Helper()
	dir := t.TempDir()
	store, err := fs.OpenWith(dir, plan.Disk)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return failingStore{store, plan, func() (names []string) {
		for _, folder := range []string{"uploads", "tmp"} {
			entries, err := os.ReadDir(filepath.Join(dir, folder))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				names = append(names, folder+"/"+e.Name())
			}
		}
		return names
	}}
}

func openFailingBucket(t *testing.T, plan *blobfault.Plan) failingStore {
	t.Helper()
	b := testservice.S3(t)
	store, err := s3.Open(t.Context(), s3.Options{
		Bucket: b.Name, Endpoint: b.Endpoint, Region: b.Region, PathStyle: true, AccessKey: b.AccessKey, SecretKey: b.SecretKey, Transport: plan.Stuck,
	})
	if err != nil {
		t.Fatal(err)
	}
	return failingStore{store, plan, func() (names []string) {
		for u, err := range store.Uploads(context.Background()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, "uploads/"+u.ID)
		}
		return names
	}}
}

// startOver runs a server over a failing store.
func startOver(t *testing.T, open func(*testing.T, *blobfault.Plan) failingStore) (*gatehouse, failingStore) {
	t.Helper()
	var store failingStore
	g := startGatehouse(t, func(s *setup) {
		s.change = func(d *registry.Deps) {
			store = open(t, &blobfault.Plan{})
			d.Blobs = store.BlobStore
		}
	})
	return g, store
}

// TestPublishOverFailingCalls fails every call to the disk, and every request to the S3 store, of a publish in turn, by both
// ways in (invariant 3): the version is then wholly there or wholly absent, there when the answer was a success, the
// answer says that trying again may help, it does, and nothing is left behind.
func TestPublishOverFailingCalls(t *testing.T) {
	for name, s := range openFailing {
		for _, way := range []string{"REST", "OCI", "OCI in chunks"} {
			for _, kind := range s.kinds {
				if name == "S3" && way == "OCI in chunks" && kind != blobfault.LostAnswer && kind != blobfault.Full {
					continue // fifty requests each, of the sorts that fail in every way above
				}
				t.Run(fmt.Sprint(name, " ", way, " ", kind), func(t *testing.T) {
					t.Parallel()
					g, store := startOver(t, s.open)
					calls := g.failCalls(t, store, way, kind)
					if len(calls) == 0 {
						t.Error("no call failed")
					}
					t.Logf("%d calls failed", len(calls))
					g.leavesNothing(t, store, kind)
				})
			}
		}
	}
}

// failCalls publishes new packs, the n-th with its n-th call failing, until one comes through. It gives the calls.
func (g *gatehouse) failCalls(t *testing.T, store failingStore, way string, kind blobfault.Kind) (calls []string) {
	t.Helper()
	for n := 0; n < 200; n++ {
		files := recipePack(t, fmt.Sprint("p", n))
		files["notes.txt"] = incompressible()
		a, verdict := artifactOf(t, archiveOf(t, files))
		if !verdict.Allowed {
			t.Fatal(verdict.Violations)
		}
		store.plan.Arm(n, kind)
		status := g.sendBy(way, a)
		call := store.plan.Disarm()
		if call == "" {
			if status >= 300 {
				t.Errorf("without a failing call: status %d", status)
			}
			return calls
		}
		calls = append(calls, call)
		what := fmt.Sprintf("call %d (%s) fails by %s, status %d", n, call, kind, status)
		g.faults.take() // the server says so in its log
		id := "alice/" + a.repository
		there := g.wholeOrAbsent(a, id)
		switch {
		case !there && status < 300:
			t.Errorf("%s: the version is absent", what)
		case status >= 300 && status < 500:
			t.Errorf("%s: blames the client", what)
		case status >= 300 && status != http.StatusServiceUnavailable && (kind == blobfault.NoSpace || kind >= blobfault.Reset):
			t.Errorf("%s: does not say that trying again may help", what)
		}
		want := http.StatusCreated
		if way == "REST" {
			want = http.StatusOK
			if there {
				want = http.StatusConflict // it says that the bytes are the same
			}
		}
		if got := g.sendBy(way, a); got != want {
			t.Errorf("%s: again %d, want %d", what, got, want)
		}
		if !g.wholeOrAbsent(a, id) {
			t.Errorf("%s: trying again did not bring it", what)
		}
	}
	t.Fatal("no end of calls")
	return nil
}

// sendBy publishes an artifact as alice and gives the status of the first request that fails, or of the last.
func (g *gatehouse) sendBy(way string, a artifact) int {
	g.tb.Helper()
	switch way {
	case "REST":
		return g.publish("alice", a.layer).status
	case "OCI":
		return g.pushed("alice", "alice", a)
	}
	repository := "alice/" + a.repository
	for _, b := range [][]byte{a.layer, a.config} {
		if status := g.uploaded(repository, b); status >= 300 {
			return status
		}
	}
	return g.putManifest("alice", repository, a.tag, imageManifest, a.manifest).status
}

// uploaded sends a blob in two chunks and gives the status of the first request that fails, or of the last.
func (g *gatehouse) uploaded(repository string, b []byte) int {
	g.tb.Helper()
	r := g.do(call{as: "alice", method: http.MethodPost, path: "/v2/" + repository + "/blobs/uploads/"})
	half := len(b) / 2
	for i, chunk := range [][]byte{b[:half], b[half:]} {
		if r.status >= 300 {
			return r.status
		}
		at := strings.TrimPrefix(r.header.Get("Location"), g.url)
		r = g.do(call{as: "alice", method: http.MethodPatch, path: at, body: chunk, header: map[string]string{
			"Content-Type": "application/octet-stream", "Content-Range": fmt.Sprintf("%d-%d", i*half, i*half+len(chunk)-1),
		}})
	}
	if r.status >= 300 {
		return r.status
	}
	at := strings.TrimPrefix(r.header.Get("Location"), g.url)
	mark := "?"
	if strings.Contains(at, "?") {
		mark = "&"
	}
	return g.do(call{as: "alice", method: http.MethodPut, path: at + mark + "digest=" + digest.FromBytes(b).String()}).status
}

// leavesNothing lets everything expire, and verifies what stays.
func (g *gatehouse) leavesNothing(t *testing.T, store failingStore, kind blobfault.Kind) {
	t.Helper()
	g.ahead.Add(int64(50 * time.Hour))
	if _, err := g.server.Service().Expire(t.Context()); err != nil {
		t.Error(err)
	}
	left := store.left()
	if kind == blobfault.Kill {
		left = slices.DeleteFunc(left, func(name string) bool { return strings.HasPrefix(name, "tmp/") }) // the next process removes it
	}
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	for b, err := range store.All(t.Context()) {
		if err == nil {
			err = blobstore.Verify(t.Context(), store, digest.Descriptor{Digest: b.Digest, Size: b.Size})
		}
		if err != nil {
			t.Errorf("blob %s: %v", b.Digest, err)
		}
	}
}
