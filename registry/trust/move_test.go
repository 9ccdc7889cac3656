package trust_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/metastore"
	"github.com/gatehouse-registry/gatehouse/registry/trust"
)

// A key that moves from a folder to the metadata and back is the same key; another key is never overwritten.
func TestKeyMoves(t *testing.T) {
	dir := t.TempDir()
	meta, err := metastore.OpenSQLite(t.Context(), filepath.Join(dir, "db"))
	if err != nil {
		t.Fatal(err)
	}
	defer meta.Close()
	if _, err := trust.ReadKey(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no key in the folder: %v, want fs.ErrNotExist", err)
	}
	if _, err := trust.ReadShared(t.Context(), meta); !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("no key in the metadata: %v, want ErrNotFound", err)
	}
	ring, err := trust.Open(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := trust.ReadKey(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := trust.WriteShared(t.Context(), meta, key); err != nil {
		t.Fatal(err)
	}
	shared, err := trust.OpenShared(t.Context(), meta)
	if err != nil || shared.KeyID() != ring.KeyID() {
		t.Errorf("the shared key is %v (%v), want %s", shared, err, ring.KeyID())
	}
	back, err := trust.ReadShared(t.Context(), meta)
	if err != nil || !bytes.Equal(back, key) {
		t.Errorf("read back: %q (%v)", back, err)
	}
	for range 2 { // the second time it is there
		if err := trust.WriteKey(filepath.Join(dir, "b"), back); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "b", trust.KeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key file: %v, %v", info.Mode(), err)
	}
	other, err := trust.Open(filepath.Join(dir, "c"))
	if err != nil {
		t.Fatal(err)
	}
	if err := trust.WriteKey(filepath.Join(dir, "c"), key); registry.CodeOf(err) != registry.Conflict {
		t.Errorf("over another key: %v, want Conflict", err)
	}
	if again, err := trust.Open(filepath.Join(dir, "c")); err != nil || again.KeyID() != other.KeyID() {
		t.Errorf("the other key is %v (%v) now", again, err)
	}
	if err := trust.WriteKey(filepath.Join(dir, "d"), []byte("no key")); err == nil {
		t.Error("text that is no key: no error")
	}
	if err := trust.WriteShared(t.Context(), meta, []byte("no key")); err == nil {
		t.Error("text that is no key into the metadata: no error")
	}
}
