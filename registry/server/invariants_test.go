package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/testdata"
)

// TestVersionsAreImmutable tries everything that could change a version after its publish was answered (invariant 1).
func TestVersionsAreImmutable(t *testing.T) {
	g := startGatehouse(t)
	a, _ := artifactOf(t, archiveOf(t, algorithm("Demo", "1.0")))
	other, _ := artifactOf(t, archiveOf(t, with(algorithm("Demo", "1.0"), "main.py", "def install():\n    return 2\n")))
	g.push("alice", "alice", a).want(t, 201)
	resolves := func(what string) {
		t.Helper()
		if got := g.get("bob", "/v2/alice/demo/manifests/1.0").want(t, 200).body; !bytes.Equal(got, a.manifest) {
			t.Fatalf("after %s the version is %s", what, got)
		}
		if got := g.get("bob", "/api/plugins/alice/Demo/package?version=1.0").want(t, 200).body; !bytes.Equal(got, a.layer) {
			t.Fatalf("after %s the package has other bytes", what)
		}
	}
	resolves("the publish")
	if got := g.publish("alice", a.layer).refused(t, "/api/", 409); !strings.Contains(got.Detail, "the same") || !strings.Contains(got.Detail, a.tree.String()) {
		t.Errorf("the same bytes: %q", got.Detail)
	}
	if got := g.publish("alice", other.layer).refused(t, "/api/", 409); !strings.Contains(got.Detail, "differ") || !strings.Contains(got.Detail, a.tree.String()) || !strings.Contains(got.Detail, other.tree.String()) {
		t.Errorf("other bytes: %q", got.Detail)
	}
	g.push("alice", "alice", a).want(t, 201) // a client that lost the first answer
	resolves("the same push")
	if got := g.push("alice", "alice", other).refused(t, "/v2/", 409); !slices.Equal(got.Decision.rules(), []string{"publish.version.taken"}) {
		t.Errorf("another push: %q", got.Decision.rules())
	}
	byDigest := "/v2/alice/demo/manifests/" + digest.FromBytes(other.manifest).String() + "?tag=1.0"
	g.do(call{as: "alice", method: "PUT", path: byDigest, body: other.manifest, header: map[string]string{"Content-Type": imageManifest}}).refused(t, "/v2/", 409)
	resolves("other pushes")

	g.pushBlob("alice", "alice/demo", []byte("{}"))
	generic := corpusFile(t, "m01-empty-layers.json")
	g.putManifest("alice", "alice/demo", "1.0", imageManifest, generic).refused(t, "/v2/", 409)
	g.putManifest("alice", "alice/demo", "latest", imageManifest, generic).refused(t, "/v2/", 403)
	g.putManifest("admin", "alice/demo", "1.0", imageManifest, generic).refused(t, "/v2/", 409)
	g.putManifest("alice", "alice/demo", "sha256-"+strings.Repeat("0", 64)+".sig", imageManifest, generic).want(t, 201)
	for _, path := range []string{"manifests/1.0", "manifests/" + digest.FromBytes(a.manifest).String(), "blobs/" + digest.FromBytes(a.layer).String(), "blobs/" + digest.FromBytes(a.config).String()} {
		for _, as := range []string{"alice", "admin"} {
			g.do(call{as: as, method: "DELETE", path: "/v2/alice/demo/" + path}).refused(t, "/v2/", 405)
		}
	}
	resolves("artifacts and deletes")

	for version, rule := range map[string]string{"1.0.0": "publish.version.equivalent", "v1.0": "publish.version.equivalent", "01.0": "publish.version.equivalent"} {
		if got := g.publish("alice", archiveOf(t, algorithm("Demo", version))).refused(t, "/api/", 409); !slices.Equal(got.Decision.rules(), []string{rule}) || !strings.Contains(got.Detail, `"1.0"`) {
			t.Errorf("version %s: %q, %q", version, got.Decision.rules(), got.Detail)
		}
	}
	for _, name := range []string{"demo", "DEMO", "de.mo", "de_mo", "de-mo"} {
		r := g.publish("alice", archiveOf(t, algorithm(name, "2.0")))
		if clash := strings.EqualFold(name, "demo"); clash != (r.status == 409) || !clash && r.status != 200 {
			t.Errorf("a pack %s beside Demo: status %d: %.200s", name, r.status, r.body)
		}
		if name == "de.mo" {
			break // the names after it are taken for it, as the next lines say
		}
	}
	for _, name := range []string{"de_mo", "de-mo"} {
		if got := g.publish("alice", archiveOf(t, algorithm(name, "2.0"))).refused(t, "/api/", 409); !strings.Contains(got.Detail, `"de.mo"`) {
			t.Errorf("%s: %q", name, got.Detail)
		}
	}
	kind := with(algorithm("Demo", "2.0"), "plugin.yaml", strings.Replace(algorithm("Demo", "2.0")["plugin.yaml"], "kind: algorithm", "kind: environment", 1))
	if got := g.publish("alice", archiveOf(t, kind)).refused(t, "/api/", 409); !slices.Contains(got.Decision.rules(), "publish.kind.fixed") {
		t.Errorf("another kind: %q", got.Decision.rules())
	}
	g.send("admin", "PATCH", "/api/plugins/alice/Demo", map[string]any{"enabled": false}).want(t, 200)
	resolves("disabling")
}

// TestVersionsOfTheCorpus publishes every line of versions.txt below an account of its own: accepted under the tag that
// versions.expect states, or refused for its rule, alike by both ways in.
func TestVersionsOfTheCorpus(t *testing.T) {
	g := startGatehouse(t)
	src, err := testdata.FS.ReadFile("corpus/versions.expect")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(src)) {
		if !strings.HasPrefix(line, `"`) {
			continue
		}
		var version, verdict, what, tag string
		if _, err := fmt.Sscanf(line, "%q %s %s tag %s", &version, &verdict, &what, &tag); err != nil && verdict != "refuse" {
			t.Fatalf("%q: %v", line, err)
		}
		n++
		owner := fmt.Sprint("line", n)
		g.addAccount(owner, "operator")
		files := algorithm("demo", "x")
		quoted, err := json.Marshal(version)
		if err != nil {
			t.Fatal(err)
		}
		files["plugin.yaml"] = strings.Replace(files["plugin.yaml"], `version: "x"`, "version: "+string(quoted), 1)
		r := g.publish(owner, archiveOf(t, files))
		if verdict == "refuse" {
			if got := r.refused(t, "/api/", 400); !slices.Contains(got.Decision.rules(), what) {
				t.Errorf("%q: rules %q, want %s", version, got.Decision.rules(), what)
			}
			continue
		}
		var p wire.Plugin
		r.want(t, 200).into(t, &p)
		if p.Version != tag || p.Reference != owner+"/demo:"+tag {
			t.Errorf("%q: version %q at %s, want the tag %q", version, p.Version, p.Reference, tag)
		}
		g.get(owner, "/v2/"+owner+"/demo/manifests/"+tag).want(t, 200)
	}
	if n < 30 {
		t.Errorf("only %d versions", n)
	}
}

// TestStoredMetadataComesFromTheArchive pushes configs that differ from what the archive gives (invariant 5).
func TestStoredMetadataComesFromTheArchive(t *testing.T) {
	g := startGatehouse(t)
	layer := archiveOf(t, algorithm("demo", "1.0.0"))
	a, _ := artifactOf(t, layer)
	lies := map[string][]byte{
		"another summary": bytes.Replace(a.config, []byte(`"test"`), []byte(`"best"`), 1),
		"a blank more":    append([]byte(" "), a.config...),
		"a line end":      append(slices.Clone(a.config), '\n'),
		"another file":    bytes.Replace(a.config, []byte(`"main.py"`), []byte(`"mail.py"`), 1),
		"another digest":  bytes.Replace(a.config, []byte(a.tree.String()), []byte(digest.FromBytes(nil).String()), 1),
		"another order":   reordered(t, a.config),
		"a key more":      append(bytes.TrimSuffix(slices.Clone(a.config), []byte("}")), `,"zz":1}`...),
		"nothing":         []byte("{}"),
		"no JSON":         []byte("x"),
		"no bytes":        {},
	}
	for what, config := range lies {
		lie := a
		lie.config = config
		lie.manifest = changed(t, a.manifest, func(m map[string]any) {
			c := m["config"].(map[string]any)
			c["digest"], c["size"] = digest.FromBytes(config).String(), len(config)
		})
		if bytes.Equal(config, a.config) {
			t.Fatalf("%s: it is no lie", what)
		}
		if got := g.push("alice", "alice", lie).refused(t, "/v2/", 400); !slices.Equal(got.Decision.rules(), []string{"digest.config"}) {
			t.Errorf("%s: rules %q", what, got.Decision.rules())
		}
		if got := g.plugins(); len(got) > 0 {
			t.Fatalf("%s: %q", what, got)
		}
	}
	g.push("alice", "alice", a).want(t, 201)
	byREST := g.published("bob", algorithm("demo", "1.0.0"))
	var byOCI wire.Plugin
	g.get("bob", "/api/plugins/alice/demo").want(t, 200).into(t, &byOCI)
	if !jsonEqual(t, byOCI.Manifest, byREST.Manifest) || byOCI.Summary != "test" || byOCI.Digest != byREST.Digest || byOCI.TreeDigest != byREST.TreeDigest || byOCI.Files != byREST.Files {
		t.Errorf("OCI %+v, REST %+v", byOCI, byREST)
	}
}

// reordered is a JSON object whose first two members changed places.
func reordered(tb testing.TB, src []byte) []byte {
	tb.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal(src, &m); err != nil {
		tb.Fatal(err)
	}
	out := []byte("{")
	for _, k := range []string{"treeDigest", "manifest", "files", "dialect", "contentDigest"} {
		out = fmt.Appendf(out, "%q:%s,", k, m[k])
	}
	return append(out[:len(out)-1], '}')
}

// TestTwinsAreWarned publishes two trees with one content digest: no refusal, which would let one owner block another,
// but a warning, and each version keeps its own tree.
func TestTwinsAreWarned(t *testing.T) {
	g := startGatehouse(t)
	// The content digest is over path NUL bytes NUL: the end of one file can be another file.
	one := with(algorithm("demo", "1.0.0"), "a.txt", "1\x00b.txt\x002")
	two := with(algorithm("demo", "1.0.0"), "a.txt", "1", "b.txt", "2")
	first, second := g.published("alice", one), g.published("bob", two)
	if first.Digest != second.Digest || first.TreeDigest == second.TreeDigest {
		t.Fatalf("no twins: %s %s, %s %s", first.Digest, first.TreeDigest, second.Digest, second.TreeDigest)
	}
	if len(second.Warnings) != 1 || !strings.Contains(second.Warnings[0], "digest.twin") || !strings.Contains(second.Warnings[0], first.TreeDigest) || len(first.Warnings) != 0 {
		t.Errorf("warnings %q and %q", first.Warnings, second.Warnings)
	}
}

// TestNothingIsExecuted publishes a pack whose every way of running would leave a file (invariant 7). What the server's
// packages could run code with, TestWhoMayImportWhat keeps from them.
func TestNothingIsExecuted(t *testing.T) {
	g := startGatehouse(t)
	sentinel := filepath.Join(t.TempDir(), "ran")
	code := fmt.Sprintf("open(%q, 'w').write('ran')\ndef install():\n    pass\n", sentinel)
	files := with(algorithm("evil", "1.0.0"), "main.py", code, "setup.py", code, "conftest.py", code, "evil.pth", "import os; "+code, "run.sh", "#!/bin/sh\ntouch "+sentinel+"\n", "Makefile", "all:\n\ttouch "+sentinel+"\n")
	p := g.published("alice", files)
	id := g.submitted("alice", jobSpec(t, "forge", "a", pinned(p)))
	for _, path := range []string{"/api/plugins/alice/evil", "/api/plugins/alice/evil/package", "/api/jobs/" + id + "/receipt", "/api/extensions", "/api/recipes"} {
		g.get("alice", path).want(t, 200)
	}
	if _, err := os.Stat(sentinel); !os.IsNotExist(err) {
		t.Errorf("pack content ran: %v", err)
	}
	yaml := with(algorithm("evil2", "1.0.0"), "plugin.yaml", string(corpusFile(t, "y17-tag-exec.yaml")))
	g.publish("alice", archiveOf(t, yaml)).refused(t, "/api/", 400)
}

// TestUploadSessionsExpire lets sessions outlive their time, with the registry's clock.
func TestUploadSessionsExpire(t *testing.T) {
	g := startGatehouse(t)
	start := func() string {
		return g.do(call{as: "alice", method: "POST", path: "/v2/alice/x/blobs/uploads/"}).want(t, 202).header.Get("Location")
	}
	patch := func(at, body string) reply {
		return g.do(call{as: "alice", method: "PATCH", path: at, body: []byte(body)})
	}
	old := start()
	patch(old, "some bytes").want(t, 202)
	g.ahead.Add(int64(23 * time.Hour))
	young := start()
	patch(old, " more").want(t, 202)
	g.ahead.Add(int64(2 * time.Hour))
	patch(old, " too late").refused(t, "/v2/", 404)
	patch(young, "by").want(t, 202)
	if got := len(g.staging()); got != 2 {
		t.Errorf("%d sessions before they are swept, want 2", got)
	}
	if n, err := g.server.Service().Expire(t.Context()); n != 1 || err != nil {
		t.Errorf("expired %d, %v; want 1", n, err)
	}
	if got := len(g.staging()); got != 1 {
		t.Errorf("%d sessions after, want the young one", got)
	}
	patch(young, "tes").want(t, 202)
	g.do(call{as: "alice", method: "PUT", path: young + "?digest=" + digest.FromBytes([]byte("bytes")).String()}).want(t, 201)
	if got := g.staging(); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	if got := g.repositories(); len(got) > 0 {
		t.Errorf("blobs alone made %q", got)
	}
}

// TestAudit reads what the log says of successes and refusals, and who may.
func TestAudit(t *testing.T) {
	g := startGatehouse(t)
	g.published("alice", algorithm("demo", "1.0.0"))
	g.publish("alice", archiveOf(t, with(algorithm("demo", "1.0.1"), "main.py", "x = (\n", "torch.py", ""))).refused(t, "/api/", 400)
	g.do(call{as: "bob", method: "POST", path: "/api/plugins/publish?owner=" + strings.Repeat("x", 5000) + "%0Ay", body: []byte("x")}).refused(t, "/api/", 403)
	g.submit("alice", jobSpec(t, "forge", "a", plugin("no/thing", "1", digest.FromBytes(nil).String()))).refused(t, "/api/", 422)
	var log struct {
		Rows []struct{ Account, Action, Subject, Outcome, Detail string }
	}
	g.get("audrey", "/api/audit").want(t, 200).into(t, &log)
	find := func(account, action, subject, outcome string) {
		t.Helper()
		for _, r := range log.Rows {
			if r.Account == account && r.Action == action && strings.Contains(r.Subject, subject) && r.Outcome == outcome {
				return
			}
		}
		t.Errorf("no row %s %s %s %s in %+v", account, action, subject, outcome, log.Rows)
	}
	find("alice", "pack.publish", "alice/demo@1.0.0", "ok")
	find("alice", "pack.publish", "alice/demo@1.0.1", "MANIFEST_INVALID")
	find("bob", "content:write", "packs of", "DENIED")
	find("alice", "job.submit", "a", "ADMISSION_DENIED")
	for _, r := range log.Rows {
		if len(r.Subject) > 1000 || len(r.Detail) > 5000 || strings.ContainsAny(r.Subject, "\n\x00") {
			t.Errorf("a row of %d and %d bytes: %.100q", len(r.Subject), len(r.Detail), r.Subject)
		}
	}
}
