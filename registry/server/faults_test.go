package server_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/dialect"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
)

// errInjected is what a failing store answers.
var errInjected = errors.New("injected failure of a store")

// moment is when a step fails.
type moment uint8

const (
	before moment = iota // nothing of it happened
	after                // all of it happened, and its answer was lost
)

// faults counts the steps of the stores and lets one of them fail.
type faults struct {
	meta registry.MetaStore // the real one, which never fails

	mu    sync.Mutex
	left  int // steps until the one that fails; negative: none does
	when  moment
	fired string // the step that failed, "" while none did
}

// arm lets the n-th step from now fail, counted from 0.
func (f *faults) arm(n int, when moment) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.when, f.fired = n, when, ""
}

// disarm gives the step that failed.
func (f *faults) disarm() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = -1
	return f.fired
}

// step runs do, which may be the step that fails.
func (f *faults) step(name string, do func() error) error {
	f.mu.Lock()
	now := f.left == 0
	when := f.when
	if f.left >= 0 {
		f.left--
	}
	if now {
		f.fired = name
	}
	f.mu.Unlock()
	if now && when == before {
		return errInjected
	}
	err := do()
	if now && err == nil {
		return errInjected
	}
	return err
}

// stepValue is step for what gives a value.
func stepValue[T any](f *faults, name string, do func() (T, error)) (v T, err error) {
	err = f.step(name, func() (err error) {
		v, err = do()
		return err
	})
	return v, err
}

// faultyBlobs is a real blob store whose steps may fail.
type faultyBlobs struct {
	registry.BlobStore
	f *faults
}

func (b faultyBlobs) Put(ctx context.Context, want digest.Descriptor, r io.Reader) error {
	return b.f.step("blobs.Put", func() error { return b.BlobStore.Put(ctx, want, r) })
}

func (b faultyBlobs) CreateUpload(ctx context.Context, id string) error {
	return b.f.step("blobs.CreateUpload", func() error { return b.BlobStore.CreateUpload(ctx, id) })
}

func (b faultyBlobs) UploadSize(ctx context.Context, id string) (int64, error) {
	return stepValue(b.f, "blobs.UploadSize", func() (int64, error) { return b.BlobStore.UploadSize(ctx, id) })
}

func (b faultyBlobs) AppendUpload(ctx context.Context, id string, offset int64, r io.Reader, max int64) (int64, error) {
	return stepValue(b.f, "blobs.AppendUpload", func() (int64, error) { return b.BlobStore.AppendUpload(ctx, id, offset, r, max) })
}

func (b faultyBlobs) CommitUpload(ctx context.Context, id string, want digest.Digest) (digest.Descriptor, error) {
	return stepValue(b.f, "blobs.CommitUpload", func() (digest.Descriptor, error) { return b.BlobStore.CommitUpload(ctx, id, want) })
}

func (b faultyBlobs) AbortUpload(ctx context.Context, id string) error {
	return b.f.step("blobs.AbortUpload", func() error { return b.BlobStore.AbortUpload(ctx, id) })
}

func (b faultyBlobs) Open(ctx context.Context, d digest.Digest) (registry.Blob, int64, error) {
	return b.open("blobs.Open", func() (registry.Blob, int64, error) { return b.BlobStore.Open(ctx, d) })
}

func (b faultyBlobs) OpenUpload(ctx context.Context, id string) (registry.Blob, int64, error) {
	return b.open("blobs.OpenUpload", func() (registry.Blob, int64, error) { return b.BlobStore.OpenUpload(ctx, id) })
}

func (b faultyBlobs) open(name string, do func() (registry.Blob, int64, error)) (blob registry.Blob, size int64, err error) {
	err = b.f.step(name, func() (err error) {
		blob, size, err = do()
		return err
	})
	if err != nil {
		if blob != nil {
			blob.Close()
		}
		return nil, 0, err
	}
	return faultyBlob{blob, b.f}, size, nil
}

// faultyBlob fails while it is read.
type faultyBlob struct {
	registry.Blob
	f *faults
}

func (b faultyBlob) Read(p []byte) (n int, err error) {
	eof := false
	err = b.f.step("blob.Read", func() (err error) {
		n, err = b.Blob.Read(p)
		eof = err == io.EOF
		if eof {
			return nil
		}
		return err
	})
	if err == nil && eof {
		err = io.EOF
	}
	return n, err
}

// faultyMeta is a real metadata store whose transactions, their steps and their commits may fail.
type faultyMeta struct {
	registry.MetaStore
	f *faults
}

func (m faultyMeta) View(ctx context.Context, fn func(registry.Tx) error) error {
	return m.f.step("View", func() error {
		return m.MetaStore.View(ctx, func(tx registry.Tx) error { return fn(faultyTx{tx, m.f}) })
	})
}

func (m faultyMeta) Update(ctx context.Context, fn func(registry.Tx) error) error {
	return m.f.step("Update", func() error {
		return m.MetaStore.Update(ctx, func(tx registry.Tx) error {
			if err := fn(faultyTx{tx, m.f}); err != nil {
				return err
			}
			return m.f.step("commit", func() error { return nil })
		})
	})
}

// faultyTx has a step for each row that a publish or a submission reads or writes.
type faultyTx struct {
	registry.Tx
	f *faults
}

func (t faultyTx) TokenByHash(h [32]byte) (registry.Token, error) {
	return stepValue(t.f, "TokenByHash", func() (registry.Token, error) { return t.Tx.TokenByHash(h) })
}
func (t faultyTx) Account(name string) (registry.Account, error) {
	return stepValue(t.f, "Account", func() (registry.Account, error) { return t.Tx.Account(name) })
}
func (t faultyTx) Versions(r string) ([]registry.Version, error) {
	return stepValue(t.f, "Versions", func() ([]registry.Version, error) { return t.Tx.Versions(r) })
}
func (t faultyTx) Version(r, v string) (registry.Version, error) {
	return stepValue(t.f, "Version", func() (registry.Version, error) { return t.Tx.Version(r, v) })
}
func (t faultyTx) VersionsByContent(d digest.Digest) ([]registry.Version, error) {
	return stepValue(t.f, "VersionsByContent", func() ([]registry.Version, error) { return t.Tx.VersionsByContent(d) })
}
func (t faultyTx) AllVersions(yield func(registry.Version) error) error {
	return t.f.step("AllVersions", func() error { return t.Tx.AllVersions(yield) })
}
func (t faultyTx) PackByFold(owner, fold string) (registry.Repository, error) {
	return stepValue(t.f, "PackByFold", func() (registry.Repository, error) { return t.Tx.PackByFold(owner, fold) })
}
func (t faultyTx) RecipeHolder(d dialect.Dialect, id string) (registry.RecipeID, error) {
	return stepValue(t.f, "RecipeHolder", func() (registry.RecipeID, error) { return t.Tx.RecipeHolder(d, id) })
}
func (t faultyTx) Snapshots(d dialect.Dialect) ([]registry.Snapshot, error) {
	return stepValue(t.f, "Snapshots", func() ([]registry.Snapshot, error) { return t.Tx.Snapshots(d) })
}
func (t faultyTx) LinkedBlob(r string, d digest.Digest) (digest.Descriptor, error) {
	return stepValue(t.f, "LinkedBlob", func() (digest.Descriptor, error) { return t.Tx.LinkedBlob(r, d) })
}
func (t faultyTx) EnsureRepository(r registry.Repository) error {
	return t.f.step("EnsureRepository", func() error { return t.Tx.EnsureRepository(r) })
}
func (t faultyTx) SetPackRepository(name, packName, fold, kind string) error {
	return t.f.step("SetPackRepository", func() error { return t.Tx.SetPackRepository(name, packName, fold, kind) })
}
func (t faultyTx) TakeRecipeID(r registry.RecipeID) error {
	return t.f.step("TakeRecipeID", func() error { return t.Tx.TakeRecipeID(r) })
}
func (t faultyTx) LinkBlob(r string, d digest.Descriptor, at time.Time) error {
	return t.f.step("LinkBlob", func() error { return t.Tx.LinkBlob(r, d, at) })
}
func (t faultyTx) PutSmall(d digest.Digest, content []byte, at time.Time) error {
	return t.f.step("PutSmall", func() error { return t.Tx.PutSmall(d, content, at) })
}
func (t faultyTx) Small(d digest.Digest) ([]byte, error) {
	return stepValue(t.f, "Small", func() ([]byte, error) { return t.Tx.Small(d) })
}
func (t faultyTx) PutManifest(m registry.Manifest) error {
	return t.f.step("PutManifest", func() error { return t.Tx.PutManifest(m) })
}
func (t faultyTx) InsertVersion(v registry.Version) error {
	return t.f.step("InsertVersion", func() error { return t.Tx.InsertVersion(v) })
}
func (t faultyTx) PutTag(tag registry.Tag) error {
	return t.f.step("PutTag", func() error { return t.Tx.PutTag(tag) })
}
func (t faultyTx) InsertAudit(a registry.AuditRow) error {
	return t.f.step("InsertAudit", func() error { return t.Tx.InsertAudit(a) })
}
func (t faultyTx) Ledger(seq int64, limit int) ([]registry.LedgerRow, error) {
	return stepValue(t.f, "Ledger", func() ([]registry.LedgerRow, error) { return t.Tx.Ledger(seq, limit) })
}
func (t faultyTx) LeasedGPUs(account string, now time.Time) (int, error) {
	return stepValue(t.f, "LeasedGPUs", func() (int, error) { return t.Tx.LeasedGPUs(account, now) })
}
func (t faultyTx) InsertJob(j registry.Job) error {
	return t.f.step("InsertJob", func() error { return t.Tx.InsertJob(j) })
}
func (t faultyTx) Preview(id string) (registry.Preview, error) {
	return stepValue(t.f, "Preview", func() (registry.Preview, error) { return t.Tx.Preview(id) })
}
func (t faultyTx) InsertPreview(p registry.Preview) error {
	return t.f.step("InsertPreview", func() error { return t.Tx.InsertPreview(p) })
}
func (t faultyTx) JobByKey(account, key string) (registry.Job, error) {
	return stepValue(t.f, "JobByKey", func() (registry.Job, error) { return t.Tx.JobByKey(account, key) })
}
func (t faultyTx) MarkPreviewCommitted(id, job string) error {
	return t.f.step("MarkPreviewCommitted", func() error { return t.Tx.MarkPreviewCommitted(id, job) })
}

// faultyLedger is a real ledger file whose appends may fail.
type faultyLedger struct {
	registry.LedgerFile
	f *faults
}

func (l faultyLedger) Append(rows []registry.LedgerRow) error {
	return l.f.step("ledger.Append", func() error { return l.LedgerFile.Append(rows) })
}

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
				musts := []string{"InsertVersion", "PutTag", "commit", "Update", "ledger.Append", "TakeRecipeID", "PutSmall"}
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
