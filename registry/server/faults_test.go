package server_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// startFaulty runs a server over stores that can be made to fail.
func startFaulty(tb testing.TB) (*gatehouse, *faults) {
	tb.Helper()
	f := &faults{left: -1}
	g := startGatehouse(tb, func(s *setup) {
		s.change = func(d *registry.Deps) {
			f.meta = d.Meta
			d.Blobs, d.Meta, d.Ledger = faultyBlobs{d.Blobs, f}, faultyMeta{d.Meta, f}, faultyLedger{d.Ledger, f}
		}
	})
	return g, f
}

// eachStep calls try with one step of it failing, the next one each time, until it comes through without reaching the
// step. try gives the status of its first answer. It gives the steps that failed.
func eachStep(t *testing.T, g *gatehouse, f *faults, when moment, try func(n int) int, checkAfter func(n int, step string, status int)) []string {
	t.Helper()
	var steps []string
	for n := 0; ; n++ {
		// What the registry remembers of the try before must not make this one shorter.
		if err := f.meta.Update(t.Context(), func(tx registry.Tx) error { return tx.PutSetting("try", fmt.Sprint(n)) }); err != nil {
			t.Fatal(err)
		}
		f.arm(n, when)
		status := try(n)
		step := f.disarm()
		if step == "" {
			return steps
		}
		steps = append(steps, step)
		g.faults.take() // the server says so in its log
		if status >= 400 && status < 500 {
			t.Errorf("step %d %s: status %d blames the client", n, step, status)
		}
		checkAfter(n, step, status)
		if n > 500 {
			t.Fatal("no end of steps")
		}
	}
}

// wholeOrAbsent checks a version: everything of it is there, or nothing is. It reports which.
func (g *gatehouse) wholeOrAbsent(a artifact, id string) bool {
	g.tb.Helper()
	info := g.get("bob", "/api/plugins/"+id)
	listed := slices.ContainsFunc(g.plugins(), func(p string) bool { return strings.HasPrefix(p, id+"@") })
	visible := slices.Contains(g.repositories(), id)
	tag := g.get("bob", "/v2/"+id+"/manifests/"+a.tag)
	if info.status == http.StatusNotFound {
		if listed || visible || tag.status != http.StatusNotFound {
			g.tb.Errorf("%s is half there: listed %t, repository %t, tag %d", id, listed, visible, tag.status)
		}
		return false
	}
	var p wire.Plugin
	info.want(g.tb, http.StatusOK).into(g.tb, &p)
	manifest := tag.want(g.tb, http.StatusOK).body
	if !listed || !visible || digest.FromBytes(manifest).String() != p.ManifestDigest || p.Digest != a.content.String() || p.TreeDigest != a.tree.String() {
		g.tb.Errorf("%s is half there: listed %t, repository %t, %+v", id, listed, visible, p)
	}
	var m struct {
		Config struct{ Digest string }
		Layers []struct{ Digest string }
	}
	reply{body: manifest}.into(g.tb, &m)
	for _, d := range []string{m.Config.Digest, m.Layers[0].Digest} {
		if got := g.get("bob", "/v2/"+id+"/blobs/"+d).want(g.tb, http.StatusOK).body; digest.FromBytes(got).String() != d {
			g.tb.Errorf("%s: blob %s has other bytes", id, d)
		}
	}
	if got := g.get("bob", "/api/plugins/"+id+"/package").want(g.tb, http.StatusOK).body; digest.FromBytes(got).String() != m.Layers[0].Digest {
		g.tb.Errorf("%s: the package is not the layer", id)
	}
	return true
}

// recipePack is a recipe of its own name: it takes more steps than other kinds.
func recipePack(tb testing.TB, name string) map[string]string {
	files := ownPack(tb, "tiny-sft")
	for _, f := range []string{"plugin.yaml", "recipe.yaml"} {
		files[f] = strings.Replace(files[f], "name: tiny-sft", "name: "+name, 1)
	}
	return files
}

// incompressible is text that makes an archive's layer too large to lie beside its row.
func incompressible() string {
	b := make([]byte, 40<<10)
	rand.NewChaCha8([32]byte{}).Read(b)
	return hex.EncodeToString(b)
}

// TestPublishOverFailingStores fails every step of a publish in turn, by both ways in (invariant 3): the version is then
// wholly there or wholly absent, there when the answer was a success, and trying again brings it.
func TestPublishOverFailingStores(t *testing.T) {
	for _, way := range []string{"REST", "OCI", "REST large", "OCI large"} {
		for _, when := range []moment{before, after} {
			t.Run(fmt.Sprint(way, " ", [...]string{"before", "after"}[when]), func(t *testing.T) {
				way, large := strings.CutSuffix(way, " large")
				g, f := startFaulty(t)
				send := func(a artifact, again bool) int {
					if way == "REST" {
						return g.publish("alice", a.layer).status
					}
					return g.pushed("alice", "alice", a)
				}
				artifacts := map[int]artifact{}
				steps := eachStep(t, g, f, when, func(n int) int {
					files := recipePack(t, fmt.Sprint("p", n))
					if large {
						files["notes.txt"] = incompressible()
					}
					a, verdict := artifactOf(t, archiveOf(t, files))
					if !verdict.Allowed {
						t.Fatal(verdict.Violations)
					}
					artifacts[n] = a
					return send(a, false)
				}, func(n int, step string, status int) {
					a := artifacts[n]
					id := "alice/" + a.repository
					there := g.wholeOrAbsent(a, id)
					if !there && status < 300 {
						t.Errorf("step %d %s: status %d, and the version is absent", n, step, status)
					}
					want := http.StatusOK
					switch {
					case way == "OCI":
						want = http.StatusCreated
					case there:
						want = http.StatusConflict // it says that the bytes are the same
					}
					if got := send(a, true); got != want {
						t.Errorf("step %d %s: status %d, again %d, want %d", n, step, status, got, want)
					}
					if !g.wholeOrAbsent(a, id) {
						t.Errorf("step %d %s: trying again did not bring it", n, step)
					}
				})
				t.Logf("%d steps failed: %s", len(steps), strings.Join(steps, " "))
				musts := []string{"InsertVersion", "PutTag", "commit", "Update", "ledger.Append", "TakeClientID", "PutShelved", "PutCatalogueStamp", "PutSmall"}
				switch {
				case large && way == "REST":
					musts = append(musts, "blobs.AppendUpload", "blobs.CommitUpload")
				case large:
					musts = append(musts, "blobs.Put")
				}
				for _, must := range musts {
					if !slices.Contains(steps, must) {
						t.Errorf("%s never failed", must)
					}
				}
				g.ahead.Add(int64(25 * time.Hour))
				if _, err := g.server.Service().Expire(t.Context()); err != nil {
					t.Error(err)
				}
				if got := g.staging(); len(got) > 0 {
					t.Errorf("left in staging after they expired: %q", got)
				}
				g.ledgerIsWhole(len(artifacts))
			})
		}
	}
}

// pushed pushes an artifact and gives the status of the first request that fails, or of the last.
func (g *gatehouse) pushed(as, owner string, a artifact) int {
	g.tb.Helper()
	repository := owner + "/" + a.repository
	for _, b := range [][]byte{a.layer, a.config} {
		r := g.do(call{as: as, method: http.MethodPost, path: "/v2/" + repository + "/blobs/uploads/?digest=" + digest.FromBytes(b).String(), body: b})
		if r.status >= 300 {
			return r.status
		}
	}
	return g.putManifest(as, repository, a.tag, imageManifest, a.manifest).status
}

// ledgerIsWhole requires that the ledger file has so many rows.
func (g *gatehouse) ledgerIsWhole(want int) {
	g.tb.Helper()
	content, err := os.ReadFile(filepath.Join(g.data, "ledger.jsonl"))
	if err != nil {
		g.tb.Fatal(err)
	}
	if got := bytes.Count(content, []byte(`"manifest":"`)); got != want {
		g.tb.Errorf("the ledger file has %d rows, want %d", got, want)
	}
}

// TestLedgerCatchesUp loses an append to the ledger file: the publish counts all the same, and the next one, or the next
// start, brings the file up to date.
func TestLedgerCatchesUp(t *testing.T) {
	g, f := startFaulty(t)
	g.published("alice", algorithm("one", "1.0.0"))
	g.ledgerIsWhole(1)
	lose := func(name string) {
		for n := 0; ; n++ {
			f.arm(n, before)
			status := g.publish("alice", archiveOf(t, algorithm(name+fmt.Sprint(n), "1.0.0"))).status
			if step := f.disarm(); step == "ledger.Append" {
				if status != http.StatusOK {
					t.Errorf("a lost append: status %d", status)
				}
				break
			}
			g.faults.take()
		}
		if lines := g.faults.take(); len(lines) != 1 || !strings.Contains(lines[0], "ledger") {
			t.Errorf("logged %q", lines)
		}
	}
	lose("a")
	g.ledgerIsWhole(1) // the steps before the append lost theirs, too
	g.published("alice", algorithm("two", "1.0.0"))
	known := len(g.plugins())
	g.ledgerIsWhole(known)
	lose("b")
	g.ledgerIsWhole(known)
	published := len(g.plugins())
	if err := g.server.Close(); err != nil { // the process ends; Run has nothing in flight
		t.Fatal(err)
	}
	again := openGatehouseIn(t, g)
	g.ledgerIsWhole(published)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSubmissionOverFailingStores fails every step of a submission in turn: there is one job, or none, and with the same
// key a commit brings one and no more.
func TestSubmissionOverFailingStores(t *testing.T) {
	for _, when := range []moment{before, after} {
		g, f := startFaulty(t)
		p := g.published("alice", tuneplaneAlgorithm("tuned", "1.0.0"))
		spec := jobSpec(t, dialect.TunePlane, "a", pinned(p))
		pv := g.previewed("alice", spec)
		jobs := 0
		steps := eachStep(t, g, f, when, func(int) int { return g.commit("alice", pv, "preview:"+pv.ID).status }, func(n int, step string, status int) {
			got := len(g.jobs("alice"))
			if got > jobs+1 || status < 300 && got == jobs {
				t.Errorf("step %d %s: status %d, %d jobs after %d", n, step, status, got, jobs)
			}
			g.commit("alice", pv, "preview:"+pv.ID).want(t, http.StatusOK)
			if got := len(g.jobs("alice")); got != jobs+1 {
				t.Errorf("step %d %s: %d jobs of one preview", n, step, got-jobs)
			}
			jobs++
			pv = g.previewed("alice", spec)
		})
		t.Logf("%d steps failed: %s", len(steps), strings.Join(steps, " "))
		if !slices.Contains(steps, "InsertJob") || !slices.Contains(steps, "commit") {
			t.Errorf("steps %q", steps)
		}
	}
}
