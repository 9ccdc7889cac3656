package fs_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gatehouse-registry/gatehouse/digest"
	blobfs "github.com/gatehouse-registry/gatehouse/registry/blobstore/fs"
)

// A second process reads what the first one has open and writes, and can change nothing.
func TestOpenReadOnly(t *testing.T) {
	dir := t.TempDir()
	owner, err := blobfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	reader, err := blobfs.OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	content := []byte("written while the other reads")
	want := digest.Descriptor{Digest: digest.FromBytes(content), Size: int64(len(content))}
	if err := owner.Put(t.Context(), want, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	blob, _, err := reader.Open(t.Context(), want.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer blob.Close()
	if err := owner.Delete(t.Context(), want.Digest); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(blob); err != nil || !bytes.Equal(got, content) {
		t.Errorf("a blob that was removed while it was read: %q, %v", got, err)
	}
	if err := owner.Put(t.Context(), want, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	other := []byte("other")
	if err := reader.Put(t.Context(), digest.Descriptor{Digest: digest.FromBytes(other), Size: 5}, bytes.NewReader(other)); err == nil {
		t.Error("Put of a new blob: no error")
	}
	if err := reader.Put(t.Context(), want, bytes.NewReader(content)); err == nil {
		t.Error("Put of a blob that is there: no error")
	}
	if err := reader.Delete(t.Context(), want.Digest); err == nil {
		t.Error("Delete: no error")
	}
	if err := reader.Quarantine(t.Context(), want.Digest); err == nil {
		t.Error("Quarantine: no error")
	}
	if err := reader.CreateUpload(t.Context(), "abc"); err == nil {
		t.Error("CreateUpload: no error")
	}
	if _, err := os.Stat(filepath.Join(dir, "uploads", "abc")); !os.IsNotExist(err) {
		t.Errorf("an upload was made: %v", err)
	}
	if _, err := owner.Stat(t.Context(), want.Digest); err != nil {
		t.Errorf("the blob is gone: %v", err)
	}
}
