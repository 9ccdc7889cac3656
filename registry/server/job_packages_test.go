package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// append sends bytes of a package at an offset.
func (g *gatehouse) append(u upload, offset int, piece string) reply {
	g.tb.Helper()
	return g.do(call{as: "alice", method: "PATCH", path: "/api/submissions/uploads/" + u.ID, body: []byte(piece), header: map[string]string{
		"X-Upload-Token": u.Token, "Upload-Offset": fmt.Sprint(offset),
	}})
}

// held asks how far an upload has come.
func (g *gatehouse) held(u upload) string {
	g.tb.Helper()
	r := g.do(call{as: "alice", method: "HEAD", path: "/api/submissions/uploads/" + u.ID, header: map[string]string{"X-Upload-Token": u.Token}}).want(g.tb, 204)
	return r.header.Get("Upload-Offset") + "/" + r.header.Get("Upload-Length")
}

// TestResumedPackage brings a package piece by piece, as our own client does after a lost connection.
func TestResumedPackage(t *testing.T) {
	g := startGatehouse(t)
	content := string(archiveOf(t, map[string]string{"experiments/a/config.yaml": "x: 1\n", "experiments/a/data.bin": incompressible()}))
	u, size := g.startPackage("alice", content), len(content)
	if got := g.held(u); got != fmt.Sprintf("0/%d", size) {
		t.Errorf("at first %s", got)
	}
	g.append(u, 5, content[5:10]).refused(t, "/api/", 416)
	g.append(u, 0, content[:1000]).want(t, 204)
	g.append(u, 0, content[:1000]).refused(t, "/api/", 416)
	g.append(upload{u.ID, "other"}, 1000, content[1000:]).refused(t, "/api/", 403)
	if got := g.held(u); got != fmt.Sprintf("1000/%d", size) {
		t.Errorf("after the first piece %s", got)
	}
	source := g.append(u, 1000, content[1000:]).want(t, 200).body
	if got := g.held(u); got != fmt.Sprintf("%d/%d", size, size) {
		t.Errorf("in the end %s", got)
	}
	g.append(u, 1000, content[1000:]).want(t, 200) // the answer was lost: once more
	spec := jobSpec(t, dialect.TunePlane, "a")
	var pv preview
	g.do(call{as: "alice", method: "POST", path: "/api/submissions/previews", body: []byte(previewBody(spec, `,"source":`+string(source)))}).want(t, 200).into(t, &pv)
	var job wire.Submitted
	g.commit("alice", pv, "k").want(t, 200).into(t, &job)
	if got := g.get("alice", "/api/jobs/"+job.RunID+"/package").want(t, 200); string(got.body) != content {
		t.Errorf("the package has %d bytes, %d were sent", len(got.body), size)
	}
	// Another experiment's package is refused where the spec is known.
	other := previewBody(jobSpec(t, dialect.TunePlane, "b"), `,"source":`+string(source))
	if got := g.do(call{as: "alice", method: "POST", path: "/api/submissions/previews", body: []byte(other)}).refused(t, "/api/", 422); !slices.Contains(got.Decision.rules(), "jobpackage.outside") {
		t.Errorf("rules %q", got.Decision.rules())
	}
	// What is damaged on the way is told so and begins anew; so does what has other bytes than were announced.
	u = g.startPackage("alice", content)
	g.append(u, 0, content[:size-1]).want(t, 204)
	g.append(u, size-1, "?").refused(t, "/api/", 400)
	if got := g.held(u); got != fmt.Sprintf("0/%d", size) {
		t.Errorf("after damage %s", got)
	}
	g.append(u, 0, content+"more").refused(t, "/api/", 413)
}

// TestRefusedPackage: a package that breaks a rule makes no job, no blob and no session, by every way in.
func TestRefusedPackage(t *testing.T) {
	var blobs registry.BlobStore
	g := startGatehouse(t, func(s *setup) { s.change = func(d *registry.Deps) { blobs = d.Blobs } })
	large := incompressible()
	for what, c := range map[string]struct {
		files map[string]string
		rule  string
	}{
		"the platform's spec": {map[string]string{"experiments/a/config.yaml": large, ".starforge/jobspec.json": "{}"}, "jobpackage.reserved"},
		"outside":             {map[string]string{"experiments/a/config.yaml": large, "secrets.txt": "x"}, "jobpackage.outside"},
		"no experiment":       {map[string]string{"common/a.py": large}, "jobpackage.experiment"},
		"parent":              {map[string]string{"experiments/a/config.yaml": large, "experiments/a/../../x": ""}, "archive.path.parent"},
	} {
		content := string(archiveOf(t, c.files))
		meta := `{"exp":"experiments/a","profile":"h200","spec":` + jobSpec(t, dialect.Forge, "a") + `}`
		got := g.do(call{as: "alice", method: "POST", path: "/api/jobs", body: []byte(content), header: map[string]string{"X-Forge-Meta": meta}}).refused(t, "/api/", 422)
		if !slices.Contains(got.Decision.rules(), c.rule) || !strings.Contains(got.Detail, c.rule) {
			t.Errorf("%s: rules %q, want %s: %s", what, got.Decision.rules(), c.rule, got.Detail)
		}
		u := g.startPackage("alice", content)
		put := g.putPackage("alice", u, content)
		if strings.HasPrefix(c.rule, "archive.") || c.rule == "jobpackage.reserved" {
			put.refused(t, "/api/", 422)
			g.append(u, 0, content).refused(t, "/api/", 422)
			if got := g.held(u); !strings.HasPrefix(got, "0/") {
				t.Errorf("%s: the upload holds %s", what, got)
			}
		} else {
			source := put.want(t, 200).body // the spec is not known yet
			body := previewBody(jobSpec(t, dialect.TunePlane, "a"), `,"source":`+string(source))
			g.do(call{as: "alice", method: "POST", path: "/api/submissions/previews", body: []byte(body)}).refused(t, "/api/", 422)
		}
		if blobs, err := filepath.Glob(filepath.Join(g.data, "blobs", "sha256", "*", digest.FromBytes([]byte(content)).Hex())); err != nil || len(blobs) > 0 && put.status != 200 {
			t.Errorf("%s: left behind %v, %v", what, blobs, err)
		}
	}
	if jobs := g.jobs("alice"); len(jobs) > 0 {
		t.Errorf("jobs %+v", jobs)
	}
	for session, err := range blobs.Uploads(t.Context()) {
		t.Errorf("session %v is left, %v", session, err)
	}
}

// TestJobLists pages through the jobs of an account and of all, and reads what one came with.
func TestJobLists(t *testing.T) {
	g := startGatehouse(t)
	for i := range 5 {
		as := []string{"alice", "bob"}[i%2]
		g.submitted(as, jobSpec(t, dialect.Forge, fmt.Sprint("e", i)))
	}
	names := func(as, query string) (list []string) {
		var page wire.JobList
		g.get(as, "/api/jobs"+query).want(t, 200).into(t, &page)
		for _, j := range page.Jobs {
			list = append(list, j.Name)
		}
		slices.Sort(list)
		return list
	}
	for what, c := range map[string]struct {
		as, query string
		want      []string
	}{
		"own":           {"alice", "", []string{"e0", "e2", "e4"}},
		"own by name":   {"alice", "?account=alice", []string{"e0", "e2", "e4"}},
		"another's":     {"audrey", "?account=bob", []string{"e1", "e3"}},
		"all":           {"admin", "?all=true", []string{"e0", "e1", "e2", "e3", "e4"}},
		"stopped":       {"alice", "?status=stopped", nil},
		"behind no job": {"alice", "?before=run-x", nil},
	} {
		if got := names(c.as, c.query); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	g.get("alice", "/api/jobs?all=true").refused(t, "/api/", 403)
	var seen []string
	for before := ""; ; {
		var page wire.JobList
		g.get("admin", "/api/jobs?all=true&limit=2&before="+before).want(t, 200).into(t, &page)
		if len(page.Jobs) == 0 {
			break
		}
		for _, j := range page.Jobs {
			seen, before = append(seen, j.Name), j.RunID
		}
	}
	if slices.Sort(seen); !slices.Equal(seen, []string{"e0", "e1", "e2", "e3", "e4"}) {
		t.Errorf("page by page %q", seen)
	}
}

// TestMetaIsKept submits as both clients do, and as older ones of tuneplane did, with what a sweep says beside the spec.
func TestMetaIsKept(t *testing.T) {
	g := startGatehouse(t)
	for header, d := range map[string]dialect.Dialect{"X-Forge-Meta": dialect.Forge, "X-TunePlane-Meta": dialect.TunePlane} {
		meta := `{"exp": "experiments/a", "profile": "h200", "git_commit": "abc", "sweep_id": "sweep-a", "sweep_params": {"lr": "0.1"}, "later": [1], "spec": ` + jobSpec(t, d, "a") + `}`
		var job wire.Submitted
		g.do(call{as: "alice", method: "POST", path: "/api/jobs", body: []byte(jobPackage(t, "a")), header: map[string]string{header: meta}}).want(t, 200).into(t, &job)
		var row wire.Job
		g.get("alice", "/api/job?id="+job.RunID).want(t, 200).into(t, &row)
		want := `{"exp":"experiments/a","profile":"h200","git_commit":"abc","sweep_id":"sweep-a","sweep_params":{"lr":"0.1"},"later":[1]}`
		if row.Dialect != d || !jsonEqual(t, row.Meta, []byte(want)) {
			t.Errorf("%s: kept %s", header, row.Meta)
		}
		var dec struct {
			Allowed bool
			Value   json.RawMessage
		}
		g.get("alice", "/api/jobs/"+job.RunID+"/decision").want(t, 200).into(t, &dec)
		if !dec.Allowed || len(dec.Value) == 0 {
			t.Errorf("decision %+v", dec)
		}
	}
	both := map[string]string{"X-Forge-Meta": `{"spec":{}}`, "X-TunePlane-Meta": `{"spec":{}}`}
	g.do(call{as: "alice", method: http.MethodPost, path: "/api/jobs", header: both}).refused(t, "/api/", 422)
}
