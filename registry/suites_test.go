package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/suite"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/auth"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
)

// shopFiles are an environment with a small file and one that lies in the BlobStore.
func shopFiles() map[string]string {
	return map[string]string{
		"manifest.json": `{"schema": "forge/environment/v1", "protocol": "openenv", "verifier": {"kind": "plugin", "ref": "alice/judge"}}`,
		"tasks.jsonl":   `{"id": "t1", "prompt": "p"}`,
		"large.bin":     string(large("an environment")),
	}
}

// pusher pushes a version of an environment of alice's, by whichever replica.
type pusher struct {
	w       *world
	name    string
	version string
}

// alice makes her account with a token, once.
func (w *world) alice() auth.Principal {
	p := auth.Principal{Account: "alice", Role: auth.Operator, TokenID: "0123456789abcdef"}
	find := func(tx registry.Tx) error {
		_, err := tx.Account(p.Account)
		return err
	}
	if w.bare.View(context.Background(), find) == nil {
		return p
	}
	err := w.bare.Update(context.Background(), func(tx registry.Tx) error {
		if find(tx) == nil {
			return nil
		}
		if err := tx.InsertAccount(registry.Account{Name: p.Account, Role: p.Role, CreatedAt: time.Now()}); err != nil {
			return err
		}
		return tx.InsertToken(registry.Token{ID: p.TokenID, Account: p.Account, Hash: [32]byte{1}, CreatedAt: time.Now()})
	})
	w.must("make the account", err)
	return p
}

// put uploads one file. index.json seals.
func (p pusher) put(ctx context.Context, s *registry.Service, file, text string) error {
	_, ticket, err := s.TicketFor(ctx, p.w.alice(), registry.SuiteUpload{Kind: suite.Environment, Name: p.name, Version: p.version, File: file})
	if err != nil {
		return err
	}
	_, _, err = s.PutSuiteFile(ctx, ticket, int64(len(text)), strings.NewReader(text))
	return err
}

func (p pusher) files(ctx context.Context, s *registry.Service, files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := p.put(ctx, s, name, files[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (p pusher) seal(ctx context.Context, s *registry.Service, files map[string]string) error {
	return p.put(ctx, s, suite.IndexFile, sealOf(files))
}

func (p pusher) all(ctx context.Context, s *registry.Service, files map[string]string) error {
	return errors.Join(p.files(ctx, s, files), p.seal(ctx, s, files))
}

// sealOf is the index of files.
func sealOf(files map[string]string) string {
	rows := []map[string]any{}
	for name, text := range files {
		rows = append(rows, map[string]any{"name": name, "size": len(text), "sha256": digest.FromBytes([]byte(text)).Hex()})
	}
	text, err := json.Marshal(map[string]any{"files": rows})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (p pusher) id() registry.SuiteID { return registry.EnvironmentID("alice", p.name) }

// keeps holds that the version is there with exactly the files, each of which can be read.
func (p pusher) keeps(s *registry.Service, files map[string]string) error {
	u, index, err := s.SuiteFilesOf(context.Background(), p.w.alice(), p.id(), p.version)
	if err != nil {
		return err
	}
	if len(index) != len(files) {
		return fmt.Errorf("%d files, want %d", len(index), len(files))
	}
	for _, f := range index {
		if digest.FromBytes([]byte(files[f.Name])) != f.Digest {
			return fmt.Errorf("%s is %s, not what was pushed", f.Name, f.Digest)
		}
	}
	return pull(s, u.Repository, p.version)
}

// absent holds that nobody sees the version.
func (p pusher) absent(s *registry.Service) error {
	if _, err := s.Suite(context.Background(), root, p.id(), p.version); registry.CodeOf(err) != registry.NotFound {
		return fmt.Errorf("the version is there: %w", err)
	}
	names, err := s.Repositories(context.Background(), root, "", -1)
	if err == nil && slices.Contains(names, "alice/environments/"+p.name) {
		err = errors.New("its repository is listed")
	}
	return err
}

// whole holds that nothing is damaged and every count is right.
func (w *world) whole() {
	w.t.Helper()
	report, err := w.janitor.Fsck(context.Background(), root, registry.FsckOptions{})
	w.must("fsck", err)
	if report.Damage > 0 {
		w.t.Errorf("fsck finds damage: %+v", report)
	}
}

// TestSealAgainstUpload runs an upload of another content for a file at every step of the seal by another replica, and the seal
// at every step of such an upload: one of the two is acknowledged, never both, and what is sealed is what the index says.
func TestSealAgainstUpload(t *testing.T) {
	t.Parallel()
	everyEngine(t, registry.DefaultSettings(), func(t *testing.T, w *world) {
		files := shopFiles()
		for name, run := range map[string]func(p pusher, at int) (seal, upload error, reached bool){
			"inside-seal": func(p pusher, at int) (seal, upload error, reached bool) {
				s := &steps{at: at, do: func() { upload = p.put(context.Background(), w.other, "large.bin", string(large("another"))) }}
				seal = p.seal(s.context(), w.janitor, files)
				return seal, upload, s.reached
			},
			"inside-upload": func(p pusher, at int) (seal, upload error, reached bool) {
				s := &steps{at: at, do: func() { seal = p.seal(context.Background(), w.other, files) }}
				upload = p.put(s.context(), w.janitor, "large.bin", string(large("another")))
				return seal, upload, s.reached
			},
		} {
			for at := 0; ; at++ {
				p := pusher{w, fmt.Sprintf("%s-%d", name, at), "v1"}
				w.must("push", p.files(context.Background(), w.janitor, files))
				seal, upload, reached := run(p, at)
				if !reached {
					if at < 2 {
						t.Errorf("%s: %d steps: the test looks at nothing", name, at)
					}
					break
				}
				if (seal == nil) == (upload == nil) {
					t.Errorf("%s at step %d: seal %v, upload %v: want exactly one acknowledged", name, at, seal, upload)
				}
				if seal == nil {
					w.must("what was sealed", p.keeps(w.other, files))
				} else {
					w.must("what was not sealed", p.absent(w.other))
				}
			}
		}
		w.whole()
	})
}

// TestSealsAtOnce has two replicas seal one version at once, with one index and with two: one version comes of it, and a client
// that asked for it is told so.
func TestSealsAtOnce(t *testing.T) {
	t.Parallel()
	everyEngine(t, registry.DefaultSettings(), func(t *testing.T, w *world) {
		for round := range 8 {
			p := pusher{w, fmt.Sprintf("twice-%d", round), "v1"}
			files := shopFiles()
			w.must("push", p.files(context.Background(), w.janitor, files))
			fewer := maps.Clone(files)
			if round%2 == 1 {
				delete(fewer, "large.bin")
			}
			tickets := make([]string, 2)
			for i := range tickets {
				var err error
				_, tickets[i], err = w.other.TicketFor(context.Background(), w.alice(), registry.SuiteUpload{Kind: suite.Environment, Name: p.name, Version: "v1", File: suite.IndexFile})
				w.must("ticket", err)
			}
			errs := make([]error, 2)
			var seals sync.WaitGroup
			for i, s := range []*registry.Service{w.janitor, w.other} {
				seals.Go(func() {
					text := sealOf([]map[string]string{files, fewer}[i])
					_, _, errs[i] = s.PutSuiteFile(context.Background(), tickets[i], int64(len(text)), strings.NewReader(text))
				})
			}
			seals.Wait()
			same := round%2 == 0
			switch {
			case same && (errs[0] != nil || errs[1] != nil):
				t.Errorf("the same seal twice: %v", errs)
			case !same && (errs[0] == nil) == (errs[1] == nil):
				t.Errorf("two seals: %v, want exactly one acknowledged", errs)
			}
			want := files
			if errs[0] != nil {
				want = fewer
			}
			w.must("what was sealed", p.keeps(w.janitor, want))
		}
	})
}

// TestKilledPush kills a push at every step of an upload and of the seal. The version is wholly there or wholly absent, and the
// same push goes on where it was.
func TestKilledPush(t *testing.T) {
	t.Parallel()
	everyEngine(t, eager(), func(t *testing.T, w *world) {
		files := shopFiles()
		killed := 0
		for at := 0; ; at++ {
			p := pusher{w, fmt.Sprintf("killed-%d", at), "v1"}
			s := &steps{at: at, dead: true}
			err := p.all(s.context(), w.other, files)
			if !s.reached {
				w.must("an unkilled push", err)
				break
			}
			killed++
			if p.absent(w.janitor) != nil {
				w.must(fmt.Sprintf("killed at step %d", at), p.keeps(w.janitor, files))
			} else if err == nil {
				t.Errorf("killed at step %d: acknowledged, but absent", at)
			}
			w.collect()
			if p.absent(w.janitor) == nil {
				w.must("push again", p.files(context.Background(), w.other, files))
				w.must("seal again", p.seal(context.Background(), w.other, files))
			}
			w.collect()
			w.must("after all", p.keeps(w.other, files))
		}
		if killed < 10 {
			t.Errorf("the push had %d steps: the test looks at nothing", killed)
		}
		w.whole()
	})
}

// TestCollectionLeavesUploads runs a collection that thinks nothing too young at every step of a push. What was uploaded stays
// until it expires; then it goes, and its owner is charged no more.
func TestCollectionLeavesUploads(t *testing.T) {
	t.Parallel()
	everyEngine(t, eager(), func(t *testing.T, w *world) {
		files := shopFiles()
		for at := 0; ; at++ {
			p := pusher{w, fmt.Sprintf("collected-%d", at), "v1"}
			s := &steps{at: at, do: func() { w.collect() }}
			err := p.all(s.context(), w.other, files)
			for tries := 0; err != nil && again(err) && tries < 3; tries++ { // a client pushes what it is told to push again
				err = p.all(context.Background(), w.other, files)
			}
			w.must("push", err)
			w.collect()
			w.must("what was pushed", p.keeps(w.other, files))
			if !s.reached {
				break
			}
		}
		before, err := w.janitor.OwnerQuota(context.Background(), root, "alice")
		w.must("usage", err)
		p := pusher{w, "given-up", "v1"}
		own := maps.Clone(files)
		own["own.bin"] = string(large("nobody else's"))
		w.must("push", p.files(context.Background(), w.other, own))
		w.pass(23 * time.Hour)
		w.must("one file more", p.put(context.Background(), w.other, "late.txt", "late"))
		w.pass(2 * time.Hour)
		w.collect()
		during, err := w.janitor.OwnerQuota(context.Background(), root, "alice")
		w.must("usage", err)
		if during.Bytes <= before.Bytes {
			t.Errorf("an upload that lives costs nothing: %d bytes, %d before it", during.Bytes, before.Bytes)
		}
		w.pass(48 * time.Hour)
		w.collect()
		w.collect()
		after, err := w.janitor.OwnerQuota(context.Background(), root, "alice")
		w.must("usage", err)
		if after.Bytes != before.Bytes {
			t.Errorf("an upload that expired costs %d bytes", after.Bytes-before.Bytes)
		}
		if err := pullBlob(w.other, "alice/environments/given-up", digest.FromBytes([]byte(own["own.bin"]))); registry.CodeOf(err) != registry.BlobUnknown {
			t.Errorf("an upload that expired is still there: %v", err)
		}
		if err := p.seal(context.Background(), w.other, own); registry.CodeOf(err) != registry.Invalid || !strings.Contains(err.Error(), "expired") {
			t.Errorf("the seal of what expired: %v", err)
		}
		w.whole()
	})
}

// TestSuiteQuota uploads from two replicas at once and holds that unsealed files count, and that no owner gets more than its
// limit.
func TestSuiteQuota(t *testing.T) {
	t.Parallel()
	everyEngine(t, registry.DefaultSettings(), func(t *testing.T, w *world) {
		const limit = 10 * 41_000
		_, err := w.janitor.SetOwnerQuota(context.Background(), root, "alice", &registry.Quota{Bytes: limit})
		w.must("set the quota", err)
		w.alice()
		var uploads sync.WaitGroup
		refused := make([]error, 40)
		for i := range refused {
			uploads.Go(func() {
				p := pusher{w, fmt.Sprintf("quota-%d", i%3), "v1"}
				refused[i] = p.put(context.Background(), []*registry.Service{w.janitor, w.other}[i%2], fmt.Sprintf("f%d", i), string(large(fmt.Sprintf("content %d", i))))
			})
		}
		uploads.Wait()
		kept := 0
		for i, err := range refused {
			switch {
			case err == nil:
				kept++
			case registry.CodeOf(err) != registry.Denied || !strings.Contains(err.Error(), "quota"):
				t.Errorf("upload %d: %v", i, err)
			}
		}
		used, err := w.janitor.OwnerQuota(context.Background(), root, "alice")
		w.must("usage", err)
		if used.Bytes > limit || used.Bytes < limit/2 || kept == 0 || kept == len(refused) {
			t.Errorf("charged %d bytes of %d, %d uploads kept", used.Bytes, limit, kept)
		}
	})
}

// TestSuiteLedger holds that a version which the exported ledger knows is taken, though the store was restored from before it.
func TestSuiteLedger(t *testing.T) {
	t.Parallel()
	w := newSQLiteWorld(t, registry.DefaultSettings())
	p := pusher{w, "Ledger", "v1"}
	files := shopFiles()
	w.must("push", p.all(context.Background(), w.janitor, files))
	meta, err := metastore.OpenSQLite(context.Background(), filepath.Join(t.TempDir(), "older.db"))
	w.must("open", err)
	t.Cleanup(func() { meta.Close() })
	ledger, err := metastore.OpenLedger(filepath.Join(w.dir, "ledger-1"))
	w.must("open the ledger", err)
	t.Cleanup(func() { ledger.Close() })
	restored, err := registry.New(context.Background(), registry.Deps{Blobs: w.blobs, Meta: meta, Ledger: ledger}, registry.DefaultSettings())
	w.must("start on the older store", err)
	old := w.bare
	w.bare = meta
	w.must("push", p.files(context.Background(), restored, files))
	if err := p.seal(context.Background(), restored, files); registry.CodeOf(err) != registry.Conflict || !strings.Contains(err.Error(), "never used twice") {
		t.Errorf("a version that the ledger knows: %v", err)
	}
	other := p
	other.version = "v2"
	w.must("another version", other.all(context.Background(), restored, files))
	w.bare = old
}

// TestManyFiles pushes as many files as a version may have, and one more.
func TestManyFiles(t *testing.T) {
	t.Parallel()
	w := newSQLiteWorld(t, registry.DefaultSettings())
	p := pusher{w, "many", "v1"}
	files := shopFiles()
	for i := range 10_000 - len(files) {
		files[fmt.Sprintf("tasks/of/a/long/path/%05d.json", i)] = fmt.Sprint(i)
	}
	w.alice()
	names := slices.Sorted(maps.Keys(files))
	var uploads sync.WaitGroup
	for part := range slices.Chunk(names, 320) {
		uploads.Go(func() {
			for _, name := range part {
				if err := p.put(context.Background(), w.other, name, files[name]); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	uploads.Wait()
	if err := p.put(context.Background(), w.other, "more", "x"); registry.CodeOf(err) != registry.TooLarge {
		t.Errorf("one file more: %v", err)
	}
	w.must("a file again", p.put(context.Background(), w.other, names[0], files[names[0]]))
	w.must("seal", p.seal(context.Background(), w.other, files))
	w.must("what was sealed", p.keeps(w.janitor, files))
}
