package moving_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	blobfs "github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
	"github.com/gatehouse-registry/gatehouse/registry/moving"
)

// live is a registry's stores, open as a server has them.
type live struct {
	t     *testing.T
	dir   string
	src   moving.Source
	meta  *metastore.Store
	blobs registry.BlobStore
}

func open(t *testing.T) *live {
	t.Helper()
	dir := t.TempDir()
	l := &live{t: t, dir: dir, src: moving.Source{Database: filepath.Join(dir, "gatehouse.db"), Ledger: filepath.Join(dir, "ledger.jsonl"), Blobs: dir,
		Files: []moving.Extra{{At: filepath.Join(dir, "none"), Path: "none"}, {At: filepath.Join(dir, "gatehouse.yaml"), Path: "gatehouse.yaml"}}}}
	meta, err := metastore.OpenSQLite(t.Context(), l.src.Database)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := blobfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(blobs.Close(), meta.Close()); err != nil {
			t.Error(err)
		}
	})
	l.meta, l.blobs = meta, blobs
	if _, err := registry.Identity(t.Context(), meta); err != nil {
		t.Fatal(err)
	}
	l.update(func(tx registry.Tx) error {
		if err := tx.InsertAccount(registry.Account{Name: "team", Role: "operator", CreatedAt: time.Now()}); err != nil {
			return err
		}
		return tx.EnsureRepository(registry.Repository{Name: "team/app", Owner: "team", CreatedAt: time.Now()})
	})
	return l
}

func (l *live) update(fn func(registry.Tx) error) {
	l.t.Helper()
	if err := l.meta.Update(l.t.Context(), fn); err != nil {
		l.t.Fatal(err)
	}
}

// put stores a blob and names it in a row, as a push does.
func (l *live) put(content string) digest.Descriptor {
	l.t.Helper()
	d := digest.Descriptor{Digest: digest.FromBytes([]byte(content)), Size: int64(len(content))}
	if err := l.blobs.Put(l.t.Context(), d, strings.NewReader(content)); err != nil {
		l.t.Fatal(err)
	}
	l.update(func(tx registry.Tx) error { return tx.LinkBlob("team/app", d, time.Now()) })
	return d
}

// remove takes a blob away as a collection does: first the row, then the bytes.
func (l *live) remove(d digest.Descriptor) {
	l.t.Helper()
	l.update(func(tx registry.Tx) error { return tx.UnlinkBlob("team/app", d.Digest) })
	if err := l.blobs.Delete(l.t.Context(), d.Digest); err != nil {
		l.t.Fatal(err)
	}
}

func target(dir string) moving.Target {
	return moving.Target{Data: dir, Database: filepath.Join(dir, "gatehouse.db"), Ledger: filepath.Join(dir, "ledger.jsonl"), Blobs: dir, Marker: filepath.Join(dir, "restoring")}
}

// A collection that removes what the snapshot names, before the bytes are copied, makes the backup begin anew; a blob that
// the registry has lost does not, for ever: it is named, and the rest is kept.
func TestCollectionDuringBackup(t *testing.T) {
	for name, lost := range map[string]bool{"collected": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			l, out := open(t), filepath.Join(t.TempDir(), "out")
			stays, goes := l.put("stays"), l.put("goes")
			rounds := 0
			m, err := moving.Backup(t.Context(), l.src, out, moving.BackupOptions{Progress: moving.Progress{Log: func(line string) {
				if !strings.Contains(line, "blobs follow") {
					return
				}
				if rounds++; rounds > 1 {
					return
				}
				if !lost {
					l.remove(goes)
				} else if err := l.blobs.Delete(t.Context(), goes.Digest); err != nil {
					t.Error(err)
				}
			}}})
			if err != nil {
				t.Fatal(err)
			}
			if rounds != 2 || m.Blobs != 1 || m.BlobBytes != stays.Size || lost != (len(m.Lost) == 1) {
				t.Errorf("%d rounds, manifest %+v; want 2 rounds, one blob, lost: %v", rounds, m, lost)
			}
			if _, err := moving.Restore(t.Context(), out, target(filepath.Join(t.TempDir(), "back")), "", moving.Progress{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A small blob that is damaged beside its row keeps nothing else from the backup: it is named as lost, and the restore takes it as
// it is. One that no row names is no loss.
func TestDamagedSmallInBackup(t *testing.T) {
	l, out, back := open(t), filepath.Join(t.TempDir(), "out"), target(filepath.Join(t.TempDir(), "back"))
	big := l.put("lies in the store")
	spoiled, loose := digest.FromBytes([]byte("good")), digest.FromBytes([]byte("loose"))
	l.update(func(tx registry.Tx) error {
		return errors.Join(tx.PutSmall(spoiled, []byte("evil"), time.Now()), tx.PutSmall(loose, []byte("LOOSE"), time.Now()),
			tx.LinkBlob("team/app", digest.Descriptor{Digest: spoiled, Size: 4}, time.Now()))
	})
	m, err := moving.Backup(t.Context(), l.src, out, moving.BackupOptions{})
	if err != nil || m.Blobs != 1 || m.BlobBytes != big.Size || m.Small != 2 || len(m.Lost) != 1 || m.Lost[0] != spoiled {
		t.Fatalf("backup: %+v, %v; want one blob, two small ones, and %s lost", m, err, spoiled)
	}
	if _, err := moving.Restore(t.Context(), out, back, "", moving.Progress{}); err != nil {
		t.Error(err)
	}
}

// A second backup into a folder copies only what is new, and removes what nobody names when it is told to.
func TestIncrementalBackup(t *testing.T) {
	l, out := open(t), filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(filepath.Join(l.dir, "gatehouse.yaml"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	old := l.put("old")
	make := func(opt moving.BackupOptions) (copied int64) {
		t.Helper()
		opt.Moved = func(n int64) { copied += n }
		if _, err := moving.Backup(t.Context(), l.src, out, opt); err != nil {
			t.Fatal(err)
		}
		return copied
	}
	if n := make(moving.BackupOptions{}); n != old.Size {
		t.Errorf("the first backup copied %d bytes, want %d", n, old.Size)
	}
	added := l.put("added later")
	l.remove(old)
	if n := make(moving.BackupOptions{}); n != added.Size {
		t.Errorf("the second backup copied %d bytes, want %d", n, added.Size)
	}
	path := filepath.Join(out, "blobs", "sha256", old.Digest.Hex()[:2], old.Digest.Hex())
	if _, err := os.Stat(path); err != nil {
		t.Errorf("without Prune: %v", err)
	}
	make(moving.BackupOptions{Prune: true})
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("with Prune: %v, want it gone", err)
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, e := range entries {
		kinds[strings.SplitN(e.Name(), "-", 2)[0]]++
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v (%v): others may look into it", e.Name(), info.Mode(), err)
		}
	}
	if kinds["gatehouse"] != 2 || kinds["ledger"] != 1 || kinds["files"] != 1 {
		t.Errorf("the folder holds %v, want one database, one ledger, one folder of files and the marker", kinds)
	}
}

// What is no place for a backup, or no backup, is left alone.
func TestRefusedFolders(t *testing.T) {
	l := open(t)
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "thesis.tex"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := moving.Backup(t.Context(), l.src, full, moving.BackupOptions{}); registry.CodeOf(err) != registry.Conflict {
		t.Errorf("a backup into a folder of something else: %v, want Conflict", err)
	}
	if _, err := moving.Restore(t.Context(), full, target(t.TempDir()), "", moving.Progress{}); registry.CodeOf(err) != registry.NotFound {
		t.Errorf("a restore from a folder of something else: %v, want NotFound", err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if _, err := moving.Backup(t.Context(), l.src, out, moving.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := moving.Restore(t.Context(), out, target(full), "", moving.Progress{}); registry.CodeOf(err) != registry.Conflict {
		t.Errorf("a restore into a folder of something else: %v, want Conflict", err)
	}
	if left, err := os.ReadDir(full); err != nil || len(left) != 1 {
		t.Errorf("it holds %v (%v) now", left, err)
	}
}

// A manifest is input: it leads nowhere outside the folder, and what it says is compared.
func TestHostileManifest(t *testing.T) {
	l := open(t)
	l.put("content")
	for name, change := range map[string]func(*moving.Manifest){
		"a database outside":  func(m *moving.Manifest) { m.Database.Name = "../gatehouse.db" },
		"a file to elsewhere": func(m *moving.Manifest) { m.Files = append(m.Files, moving.File{Name: m.Ledger.Name, Path: "../../x"}) },
		"another digest":      func(m *moving.Manifest) { m.Database.Digest = digest.FromBytes(nil) },
		"more blobs":          func(m *moving.Manifest) { m.Blobs++ },
		"a newer form":        func(m *moving.Manifest) { m.Format = 99 },
		"no ledger":           func(m *moving.Manifest) { m.Ledger.Name = "ledger-none.jsonl" },
	} {
		t.Run(name, func(t *testing.T) {
			out, back := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "back")
			m, err := moving.Backup(t.Context(), l.src, out, moving.BackupOptions{})
			if err != nil {
				t.Fatal(err)
			}
			change(&m)
			text, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(out, "manifest.json"), text, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := moving.Restore(t.Context(), out, target(back), "", moving.Progress{}); err == nil {
				t.Error("restored")
			}
			if _, err := os.Stat(filepath.Join(back, "gatehouse.db")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the database is in place: %v", err)
			}
		})
	}
}

// A move between forms that finds less at the target than the rows name is no move, and the source goes on.
func TestMigrateLost(t *testing.T) {
	from, to := open(t), openEmpty(t)
	from.put("there")
	gone := from.put("gone")
	if err := from.blobs.Delete(t.Context(), gone.Digest); err != nil {
		t.Fatal(err)
	}
	done, err := moving.Migrate(t.Context(), moving.Form{Meta: from.meta, Blobs: from.blobs}, to, moving.MigrateOptions{})
	if registry.CodeOf(err) != registry.DigestInvalid || len(done.Lost) != 1 || done.Lost[0] != gone.Digest {
		t.Errorf("%+v, %v; want one lost blob", done, err)
	}
	if reason, err := registry.ReadOnly(t.Context(), from.meta); err != nil || reason != "" {
		t.Errorf("the source is read-only: %q, %v", reason, err)
	}
	if err := from.blobs.Put(t.Context(), gone, bytes.NewReader([]byte("gone"))); err != nil {
		t.Fatal(err)
	}
	done, err = moving.Migrate(t.Context(), moving.Form{Meta: from.meta, Blobs: from.blobs}, to, moving.MigrateOptions{Reread: true})
	if err != nil || done.Blobs != 2 {
		t.Errorf("once it is there again: %+v, %v", done, err)
	}
	if reason, err := registry.ReadOnly(t.Context(), to.Meta); err != nil || reason != "" {
		t.Errorf("the target is read-only: %q, %v", reason, err)
	}
	if reason, err := registry.ReadOnly(t.Context(), from.meta); err != nil || reason == "" {
		t.Errorf("the source takes changes: %q, %v", reason, err)
	}
}

// A registry that was moved here can be moved on, and that move can be interrupted and taken up; each move ends once.
func TestMovedOn(t *testing.T) {
	first, second, third := open(t), openEmpty(t), openEmpty(t)
	first.put("content")
	from := moving.Form{Meta: first.meta, Blobs: first.blobs}
	move := func(from, to moving.Form, finish error) error {
		_, err := moving.Migrate(t.Context(), from, to, moving.MigrateOptions{Finish: func(context.Context) error { return finish }})
		return err
	}
	cut := errors.New("cut off")
	for _, step := range []struct {
		what     string
		from, to moving.Form
		finish   error
		want     func(error) bool
	}{
		{"a move", from, second, nil, func(err error) bool { return err == nil }},
		{"the same again", from, second, nil, func(err error) bool { return registry.CodeOf(err) == registry.Conflict }},
		{"a move on, interrupted", second, third, cut, func(err error) bool { return errors.Is(err, cut) }},
		{"a move on, taken up", second, third, nil, func(err error) bool { return err == nil }},
		{"the same again", second, third, nil, func(err error) bool { return registry.CodeOf(err) == registry.Conflict }},
		{"a move back onto what is left there", third, second, nil, func(err error) bool { return registry.CodeOf(err) == registry.Conflict }},
	} {
		if err := move(step.from, step.to, step.finish); !step.want(err) {
			t.Errorf("%s: %v", step.what, err)
		}
	}
}

func openEmpty(t *testing.T) moving.Form {
	t.Helper()
	dir := t.TempDir()
	meta, err := metastore.OpenSQLite(t.Context(), filepath.Join(dir, "gatehouse.db"))
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := blobfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(blobs.Close(), meta.Close()); err != nil {
			t.Error(err)
		}
	})
	return moving.Form{Meta: meta, Blobs: blobs}
}

// Changes that come while the rounds run are in the target in the end: none is lost between a round and the last pass.
func TestMigrateWhileWriting(t *testing.T) {
	from, to := open(t), openEmpty(t)
	var all []digest.Descriptor
	n, readOnly := 0, false
	_, err := moving.Migrate(t.Context(), moving.Form{Meta: from.meta, Blobs: from.blobs}, to, moving.MigrateOptions{Progress: moving.Progress{Log: func(line string) {
		readOnly = readOnly || strings.Contains(line, "last pass")
		if readOnly { // a server lets no change through from here on
			return
		}
		n++
		all = append(all, from.put(fmt.Sprint("blob ", n)))
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2 {
		t.Fatalf("%d blobs came meanwhile", len(all))
	}
	for i, d := range all {
		if _, err := to.Blobs.Stat(t.Context(), d.Digest); err != nil {
			t.Errorf("blob %d: %v", i, err)
		}
	}
}
