package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/server"
)

// lines reads an answer of JSON lines.
func (r reply) lines(tb testing.TB) []wire.UpkeepLine {
	tb.Helper()
	var list []wire.UpkeepLine
	for text := range bytes.Lines(r.body) {
		var l wire.UpkeepLine
		if err := json.Unmarshal(text, &l); err != nil {
			tb.Fatalf("line %q: %v", text, err)
		}
		list = append(list, l)
	}
	if len(list) == 0 {
		tb.Fatal("an answer without a line")
	}
	return list
}

// TestQuotaOverHTTP holds that clients of the distribution protocol are told of a quota in its own form, before their bytes
// are taken.
func TestQuotaOverHTTP(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t, func(s *setup) { s.config.Quota = server.Quota{Bytes: 1000} })
	body := bytes.Repeat([]byte("x"), 900)
	g.pushBlob("alice", "alice/app", body)
	more := bytes.Repeat([]byte("y"), 900)
	r := g.do(call{as: "alice", method: http.MethodPost, path: "/v2/alice/app/blobs/uploads/?digest=" + digest.FromBytes(more).String(), body: more}).want(t, http.StatusForbidden)
	if !strings.Contains(string(r.body), `"DENIED"`) || !strings.Contains(string(r.body), "may hold 1000 bytes, holds 900") {
		t.Errorf("the refusal is %s", r.body)
	}
	for _, as := range []string{"alice", "audrey", "vera"} {
		g.send(as, http.MethodPut, "/api/admin/owners/alice/quota", registry.Quota{Bytes: 5000}).want(t, http.StatusForbidden)
	}
	var l registry.OwnerLimit
	g.send("admin", http.MethodPut, "/api/admin/owners/alice/quota", registry.Quota{Bytes: 5000}).want(t, http.StatusOK).into(t, &l)
	if l.Bytes != 900 || l.Limit.Bytes != 5000 || l.Default {
		t.Errorf("the quota is %+v", l)
	}
	g.send("admin", http.MethodPut, "/api/admin/owners/alice/quota", map[string]int{"bytes": -1}).want(t, http.StatusUnprocessableEntity)
	g.pushBlob("alice", "alice/app", more)
	g.do(call{as: "admin", method: http.MethodDelete, path: "/api/admin/owners/alice/quota"}).want(t, http.StatusOK)
	var owners wire.Owners
	g.get("admin", "/api/admin/owners").want(t, http.StatusOK).into(t, &owners)
	if len(owners.Owners) != 1 || owners.Owners[0].Owner != "alice" || !owners.Owners[0].Default || owners.Owners[0].Limit.Bytes != 1000 {
		t.Errorf("owners: %+v", owners)
	}
}

// TestUpkeepOverHTTP walks a collection and a check as an administrator's program sees them, and a pull of what is damaged.
func TestUpkeepOverHTTP(t *testing.T) {
	t.Parallel()
	g := startGatehouse(t)
	content := bytes.Repeat([]byte("large content\n"), 4000)
	d := digest.FromBytes(content)
	g.pushBlob("alice", "alice/app", content)
	for _, path := range []string{"/api/gc", "/api/admin/fsck"} {
		g.send("alice", http.MethodPost, path, struct{}{}).want(t, http.StatusForbidden)
		g.do(call{method: http.MethodPost, path: path}).want(t, http.StatusUnauthorized)
	}
	g.ahead.Store(int64(registry.DefaultSettings().Collection.Grace) + 1e9)
	dry := g.send("admin", http.MethodPost, "/api/gc", wire.Collect{DryRun: true}).want(t, http.StatusOK).lines(t)
	if len(dry) != 2 || dry[0].Removal == nil || dry[0].Removal.Digest != d || dry[1].Collected == nil || dry[1].Collected.Links != 1 {
		t.Errorf("a dry run answers %+v", dry)
	}
	if sound := g.send("admin", http.MethodPost, "/api/admin/fsck", wire.Fsck{}).want(t, http.StatusOK).lines(t); len(sound) != 1 || sound[0].Checked == nil || sound[0].Checked.Damage != 0 {
		t.Errorf("a check of a sound registry answers %+v", sound)
	}
	good := filepath.Join(t.TempDir(), "blobs", "sha256")
	if err := os.MkdirAll(good, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(g.data, "blobs", "sha256", d.Hex()[:2], d.Hex()), filepath.Join(good, d.Hex())); err != nil {
		t.Fatal(err)
	}
	r := g.get("alice", "/v2/alice/app/blobs/"+d.String()).want(t, http.StatusInternalServerError)
	if !strings.Contains(string(r.body), `"DAMAGED"`) || !strings.Contains(string(r.body), "administrator") {
		t.Errorf("a pull of what is gone answers %s", r.body)
	}
	found := g.send("admin", http.MethodPost, "/api/admin/fsck", wire.Fsck{}).want(t, http.StatusOK).lines(t)
	if len(found) != 2 || found[0].Finding == nil || found[0].Finding.Kind != registry.FindingMissing || found[1].Checked.Whole() {
		t.Errorf("a check answers %+v", found)
	}
	g.send("admin", http.MethodPost, "/api/admin/fsck", wire.Fsck{From: filepath.Join(g.data, "absent")}).want(t, http.StatusNotFound)
	mended := g.send("admin", http.MethodPost, "/api/admin/fsck", wire.Fsck{From: filepath.Dir(filepath.Dir(good))}).want(t, http.StatusOK).lines(t)
	if last := mended[len(mended)-1].Checked; last == nil || !last.Whole() || last.Repaired != 1 {
		t.Errorf("a repair answers %+v", mended)
	}
	if got := g.get("alice", "/v2/alice/app/blobs/"+d.String()).want(t, http.StatusOK); !bytes.Equal(got.body, content) {
		t.Error("the repaired blob has other bytes")
	}
	var state registry.ScrubState
	g.get("admin", "/api/admin/scrub").want(t, http.StatusOK).into(t, &state)
	gone := g.send("admin", http.MethodPost, "/api/gc", wire.Collect{}).want(t, http.StatusOK).lines(t)
	if last := gone[len(gone)-1].Collected; last == nil || last.Links != 1 {
		t.Errorf("a collection answers %+v", gone)
	}
	g.faults.take() // what was damaged is in the log, as it should be
}

// TestRepairFromAnotherRegistry fetches what is gone, blobs and manifests, by digest from a second registry.
func TestRepairFromAnotherRegistry(t *testing.T) {
	t.Parallel()
	broken, sound := startGatehouse(t), startGatehouse(t)
	layer := bytes.Repeat([]byte("a layer that lies in a file\n"), 4000)
	filler := strings.Repeat("annotation ", 4000)
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config":      map[string]any{"mediaType": "application/vnd.example", "digest": digest.FromBytes(layer).String(), "size": len(layer)},
		"layers":      []any{},
		"annotations": map[string]string{"filler": filler}})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []*gatehouse{broken, sound} {
		g.pushBlob("alice", "alice/app", layer)
		g.putManifest("alice", "alice/app", "v1", "application/vnd.oci.image.manifest.v1+json", manifest).want(t, http.StatusCreated)
	}
	if err := os.RemoveAll(filepath.Join(broken.data, "blobs", "sha256")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(broken.data, "blobs", "sha256"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, d := range []digest.Digest{digest.FromBytes(layer), digest.FromBytes(manifest)} {
		if err := os.MkdirAll(filepath.Join(broken.data, "blobs", "sha256", d.Hex()[:2]), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	from := strings.Replace(sound.url, "http://", "http://vera:"+sound.tokens["vera"]+"@", 1)
	lines := broken.send("admin", http.MethodPost, "/api/admin/fsck", wire.Fsck{From: from}).want(t, http.StatusOK).lines(t)
	if last := lines[len(lines)-1].Checked; last == nil || last.Damage != 2 || !last.Whole() {
		t.Errorf("a repair answers %+v", lines)
	}
	if got := broken.get("alice", "/v2/alice/app/manifests/v1").want(t, http.StatusOK); !bytes.Equal(got.body, manifest) {
		t.Error("the repaired manifest has other bytes")
	}
	broken.faults.take()
}

// TestPushMendsVersion holds that a version whose manifest, config and archive the store lost is mended by a client that
// pushes the very same artifact, and names what it did before.
func TestPushMendsVersion(t *testing.T) {
	t.Parallel()
	var meta registry.MetaStore
	g := startGatehouse(t, func(s *setup) { s.change = func(d *registry.Deps) { meta = d.Meta } })
	a, _ := artifactOf(t, archiveOf(t, algorithm("Demo", "1.0")))
	g.push("alice", "alice", a).want(t, http.StatusCreated)
	const path = "/v2/alice/demo/manifests/1.0"
	for what, lose := range map[string]func(registry.Tx, []byte) error{
		"lost": func(tx registry.Tx, b []byte) error { return tx.DeleteSmall(digest.FromBytes(b)) },
		"damaged": func(tx registry.Tx, b []byte) error {
			return tx.PutSmall(digest.FromBytes(b), bytes.Repeat([]byte("x"), len(b)), time.Now())
		},
	} {
		err := meta.Update(t.Context(), func(tx registry.Tx) error {
			return errors.Join(lose(tx, a.manifest), lose(tx, a.config), lose(tx, a.layer))
		})
		if err != nil {
			t.Fatal(err)
		}
		if what == "lost" { // damage is not seen by a server that has the good bytes in memory
			g.do(call{as: "alice", method: http.MethodHead, path: path}).want(t, http.StatusNotFound)
		}
		g.push("alice", "alice", a).want(t, http.StatusCreated)
		g.do(call{as: "alice", method: http.MethodHead, path: path}).want(t, http.StatusOK)
		checked := g.send("admin", http.MethodPost, "/api/admin/fsck", wire.Fsck{}).want(t, http.StatusOK).lines(t)
		if len(checked) != 1 || checked[0].Checked == nil || checked[0].Checked.Damage != 0 {
			t.Errorf("%s, then pushed again: the check answers %+v", what, checked)
		}
		if got := g.get("bob", path).want(t, http.StatusOK); !bytes.Equal(got.body, a.manifest) {
			t.Errorf("%s, then pushed again: the version has the manifest %s", what, got.body)
		}
	}
}
