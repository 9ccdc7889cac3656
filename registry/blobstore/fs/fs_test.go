package fs_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore"
	"github.com/gatehouse-registry/gatehouse/registry/blobstore/blobtest"
	blobfs "github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
)

// open opens the store in dir.
func open(t testing.TB, dir string) *blobstore.Store {
	t.Helper()
	store, err := blobfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestBlobStore(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T, dir string) registry.BlobStore {
		t.Cleanup(func() {
			if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
				t.Errorf("tmp after the test: holds %v, error %v, want nothing", left, err)
			}
		})
		return open(t, dir)
	})
}

// files lists every path below dir with its mode.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		rel, _ := filepath.Rel(dir, path)
		got[rel] = info.Mode().String()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestTree(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data")
	store := open(t, dir)
	defer store.Close()
	ctx := context.Background()
	d := digest.FromBytes([]byte("hello"))
	if err := store.Put(ctx, digest.Descriptor{Digest: d, Size: 5}, bytes.NewReader([]byte("hello"))); err != nil {
		t.Fatal(err)
	}
	if err := store.CreateUpload(ctx, "session"); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"blobs": "drwx------", "blobs/sha256": "drwx------", "blobs/sha512": "drwx------",
		"blobs/sha256/2c": "drwx------", "blobs/sha256/2c/" + d.Hex(): "-r--r--r--",
		"quarantine": "drwx------", "tmp": "drwx------", "uploads": "drwx------", "uploads/session": "-rw-------",
	}
	if diff := cmp.Diff(want, files(t, dir)); diff != "" {
		t.Errorf("tree differs (-want +got):\n%s", diff)
	}
	blob, _, err := store.Open(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	if _, ok := blob.(*os.File); !ok {
		t.Errorf("a blob is a %T, want an *os.File, which net/http sends without copying", blob)
	}
}

func TestOpenClearsTmp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir).Close()
	if err := os.WriteFile(filepath.Join(dir, "tmp", "HALFWRITTEN"), []byte("half"), 0o444); err != nil {
		t.Fatal(err)
	}
	store := open(t, dir)
	defer store.Close()
	if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("tmp after Open: holds %v, error %v, want nothing", left, err)
	}
}

func TestSecondOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := open(t, dir)
	if _, err := blobfs.Open(dir); registry.CodeOf(err) != registry.Conflict {
		t.Errorf("second Open: got error %v, want code Conflict", err)
	}
	store.Close()
	open(t, dir).Close()
}

func TestOpenWhereNoFolderCanBe(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if _, err := blobfs.Open(dir); err == nil {
			t.Errorf("Open(%q) succeeded on a file", dir)
		}
	}
}

// TestForeignFiles checks that what is no blob by its name and place is neither listed nor followed.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	store := open(t, dir)
	defer store.Close()
	d := digest.FromBytes([]byte("x"))
	shard := filepath.Join(dir, "blobs", "sha256", d.Hex()[:2])
	misplaced := filepath.Join(dir, "blobs", "sha256", "zz")
	for _, err := range []error{
		os.MkdirAll(shard, 0o700), os.MkdirAll(misplaced, 0o700),
		os.WriteFile(filepath.Join(misplaced, d.Hex()), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(shard, "note.txt"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "blobs", "sha256", "stray"), nil, 0o600),
		os.Symlink(outside, filepath.Join(shard, d.Hex())),
		os.Symlink(outside, filepath.Join(dir, "uploads", "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for got, err := range store.All(context.Background()) {
		t.Errorf("lists %v, error %v, want nothing", got, err)
	}
	for got, err := range store.Uploads(context.Background()) {
		t.Errorf("lists the upload %v, error %v, want nothing", got, err)
	}
	if _, _, err := store.Open(context.Background(), d); err == nil {
		t.Error("Open followed a link out of the folder")
	}
	if _, _, err := store.OpenUpload(context.Background(), "link"); err == nil {
		t.Error("OpenUpload followed a link out of the folder")
	}
	if _, err := store.AppendUpload(context.Background(), "link", 6, bytes.NewReader([]byte("!")), 100); err == nil {
		t.Error("AppendUpload followed a link out of the folder")
	}
	if content, _ := os.ReadFile(outside); string(content) != "secret" {
		t.Errorf("the file outside holds %q now", content)
	}
}

// TestDamagedBlobIsReplaced checks that a blob whose size is wrong on the disk is written again by the next put.
func TestDamagedBlobIsReplaced(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), context.Background()
	store := open(t, dir)
	defer store.Close()
	want := digest.Descriptor{Digest: digest.FromBytes([]byte("content")), Size: 7}
	put := func() error { return store.Put(ctx, want, bytes.NewReader([]byte("content"))) }
	if err := put(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "blobs", "sha256", want.Digest.Hex()[:2], want.Digest.Hex())
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 3); err != nil {
		t.Fatal(err)
	}
	if err := blobstore.Verify(ctx, store, want); err == nil {
		t.Error("Verify takes a damaged blob for whole")
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	if err := blobstore.Verify(ctx, store, want); err != nil {
		t.Errorf("after the put: %v", err)
	}

	// Of the same size: the first put finds it out and says so, never that the blob is stored.
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("cOntent"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := put(); registry.CodeOf(err) != registry.Unavailable {
		t.Errorf("put of what is there with other bytes: %v, want Unavailable", err)
	}
	if aside, err := os.ReadFile(filepath.Join(dir, "quarantine", "sha256-"+want.Digest.Hex())); err != nil || string(aside) != "cOntent" {
		t.Errorf("set aside: %q, %v", aside, err)
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	if err := blobstore.Verify(ctx, store, want); err != nil {
		t.Errorf("after the second put: %v", err)
	}
	if err := store.Put(ctx, want, bytes.NewReader([]byte("cOntent"))); err == nil {
		t.Error("a put of wrong bytes over good ones is taken")
	}
	if err := blobstore.Verify(ctx, store, want); err != nil {
		t.Errorf("after wrong bytes: %v", err)
	}
}

// TestUploadChangedBehindTheStore checks that the hash which runs during an upload is used only for the bytes it has seen.
func TestUploadChangedBehindTheStore(t *testing.T) {
	t.Parallel()
	dir, ctx := t.TempDir(), context.Background()
	store := open(t, dir)
	defer store.Close()
	add := func(id string, offset int64, text string) {
		t.Helper()
		if _, err := store.AppendUpload(ctx, id, offset, bytes.NewReader([]byte(text)), 100); err != nil {
			t.Fatal(err)
		}
	}
	for id, later := range map[string]string{"one": "", "two": "def"} {
		if err := store.CreateUpload(ctx, id); err != nil {
			t.Fatal(err)
		}
		add(id, 0, "abc")
		file, err := os.OpenFile(filepath.Join(dir, "uploads", id), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString("XYZ"); err != nil {
			t.Fatal(err)
		}
		file.Close()
		if later != "" {
			add(id, 6, later)
		}
		if _, err := store.CommitUpload(ctx, id, digest.FromBytes([]byte("abc"+later))); err == nil {
			t.Errorf("upload %s: the commit takes bytes that were never hashed", id)
		}
		if _, err := store.CommitUpload(ctx, id, digest.FromBytes([]byte("abcXYZ"+later))); err != nil {
			t.Errorf("upload %s: commit of what the session holds: %v", id, err)
		}
	}
}
