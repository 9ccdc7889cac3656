package nodecache

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// shelf is a registry in memory.
type shelf struct {
	mu       sync.Mutex
	archives map[digest.Digest][]byte // by manifest
	fetched  int
	down     bool
}

func (s *shelf) Fetch(_ context.Context, pin receipt.Pin) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.archives[pin.Manifest]
	if s.down || !ok {
		return nil, ErrNotFound
	}
	s.fetched++
	return io.NopCloser(bytes.NewReader(b)), nil
}

// publish puts files on the shelf.
func (s *shelf) publish(t testing.TB, id string, files map[string]string) receipt.Pin {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	found, err := tree.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := archive.Pack(&b, found); err != nil {
		t.Fatal(err)
	}
	pin := receipt.Pin{
		ID: id, Version: "1.0.0", Kind: "algorithm", Content: found.Listing().Content, Tree: found.Listing().Tree,
		Manifest: digest.FromBytes([]byte("manifest of " + id + digest.FromBytes(b.Bytes()).String())),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.archives == nil {
		s.archives = map[digest.Digest][]byte{}
	}
	s.archives[pin.Manifest] = b.Bytes()
	return pin
}

func open(t *testing.T, dir string, o Options) *Cache {
	t.Helper()
	c, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// texts are the texts of the files below dir, by path.
func texts(dir string) (map[string]string, error) {
	all := map[string]string{}
	return all, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is no regular file", path)
		}
		rel, _ := filepath.Rel(dir, path)
		b, err := os.ReadFile(path)
		all[rel] = string(b)
		return err
	})
}

var small = map[string]string{"plugin.yaml": "schema: forge-plugin/v1\n", "a/b.py": "x = 1\n"}

// However many agents make one entry at once, it is there once and whole.
func TestTreeIsMadeOnce(t *testing.T) {
	s := &shelf{}
	pin := s.publish(t, "lab/alpha", small)
	dir := filepath.Join(t.TempDir(), "cache")
	var wg sync.WaitGroup
	for range 8 {
		c := open(t, dir, Options{})
		wg.Go(func() {
			e, err := c.Tree(context.Background(), pin, s)
			if err != nil {
				t.Error(err)
				return
			}
			e.Release()
		})
	}
	wg.Wait()
	if got, err := texts(filepath.Join(dir, keyOf(trees, pin.Manifest))); err != nil || !maps.Equal(got, small) || s.fetched != 1 {
		t.Errorf("the entry holds %v (%v) after %d fetches, expected %v after one", got, err, s.fetched, small)
	}
}

// What a killed agent left in the cache goes with the next use by the node; what a living one makes stays.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, Options{})
	name, err := c.temporary("tmp")
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(dir, name)
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	left := strings.Replace(mine, "."+strconv.Itoa(os.Getpid())+".", "."+strconv.Itoa(dead.Process.Pid)+".", 1)
	if err := os.Mkdir(left, 0o555); err != nil {
		t.Fatal(err)
	}
	open(t, dir, Options{})
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("a dead process's folder is still there: %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("a living process's folder is gone: %v", err)
	}
}
